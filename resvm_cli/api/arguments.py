"""What functions and estimators share: documentation of arguments, threads and seeds.

The docstrings of functions that take a method's parameters are completed from the parameter
table, so that each parameter is described only once.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from resvm_cli.errors import Message, ParameterError, Text
from resvm_cli.parameter_types import Parameter
from resvm_cli.parameters import RANGE_HELP
from resvm_cli.running import parallel
from resvm_cli.running.run import Progress, Run

MAX_SEED = 2**31 - 1  # limit for seeds drawn from a generator
DOC_WIDTH = 90
JOBS = Parameter("integer", None, "", low=1, name="jobs")
N_JOBS = replace(JOBS, name="n_jobs", low=-(2**31))
TYPES = {"integer": "int", "number": "float", "words": "str", "text": "str", "flag": "bool"}

CALLING = ("jobs", "n_jobs", "random_state", "progress", "notice")
DATA = ("X", "y", "groups", "weights", "positive_label", "negative_label")
# Arguments that are not in the parameter table: type and meaning.
SHARED = {
    "X": ("array, sparse matrix, DataFrame or Arrow table", "Numbers, one row per example."),
    "y": (
        "array of labels",
        "Rows with ``positive_label`` are known positives, all others are unlabeled.",
    ),
    "groups": (
        "sequence, optional",
        "One group name per row. A row is scored out of bag only by members that have not seen any"
        " row of its group.",
    ),
    "weights": (
        "array, optional",
        "Confidence in each known positive, from 0 to 1. One number per row of X; numbers for"
        " unlabeled rows are ignored. Bags draw known positives in proportion to these numbers"
        " (resvm only).",
    ),
    "positive_label": (
        "label, optional",
        "The label of known positives. Default: 1, if the other labels are all 0 or all -1.",
    ),
    "negative_label": (
        "label, optional",
        "The label of known negatives, which have a separate penalty in training. Default: none,"
        " so every row that is not a known positive is unlabeled.",
    ),
    "oob": (
        "bool, default=False",
        "Keep the out-of-bag decision values of the training rows in ``Model.oob``.",
    ),
    "ids": (
        "iterable, optional",
        "One name per row of X. Default: the index of a DataFrame, or else row numbers from 0.",
    ),
    "model": ("Model or path, optional", "A model trained on the same rows. Default: train one."),
    "negatives": (
        "matrix, optional",
        "Trusted negatives. They are scored but not trained on, and add conformal p-values.",
    ),
    "tested": (
        "mapping, optional",
        "The outcomes (1 or 0) of tested rows of U, by id. Estimates of precision take these"
        " into account. Test either a random sample of U or all rows at the top of the ranking.",
    ),
    "exclude": (
        "iterable, optional",
        "With ``next``: ids of unlabeled rows that cannot be tested.",
    ),
    "importance": (
        "bool, default=False",
        "Whether to compute the permutation importance of features, for ``Ranking.importance`` and"
        " the page of ``save_html``. This takes about half as long as ranking. Only for method"
        " 'resvm', and not for precomputed kernels.",
    ),
    "intervals": (
        "bool, default=True",
        "Whether to resample members to compute ``rank_low`` and ``rank_high``.",
    ),
    "jobs": (
        "int, optional",
        "Number of threads; does not affect the result. Default: as many as the work can use.",
    ),
    "n_jobs": ("int, optional", "The same as ``jobs``; -1 means all cores, -2 all but one."),
    "random_state": (
        "int, RandomState or Generator, optional",
        "The same as ``seed``. A generator is used to draw a seed.",
    ),
    "progress": (
        "callable, optional",
        "Called with the stage, the number of steps done and their total (None while unknown).",
    ),
    "notice": ("callable, optional", "Called with the text of each note when it is issued."),
}
INVALID = "ValueError\n    If a parameter or the data is invalid."
SAVING = {
    "parameters": [
        "path : str or path-like\n    The directory to create.",
        "force : bool, default=False\n    Whether to replace an existing model.",
    ],
    "raises": [
        "ValueError\n    If the path exists, unless ``force`` is true.",
        "FileError\n    If the model cannot be written.",
    ],
}
# Entries that differ between Python and the command line.
PYTHON_TYPES = {"params": "Tuning, dict or path", "auto": "bool or {'committee', 'single'}"}
PYTHON_HELP = {
    "params": "Parameters chosen by ``tune``, or the path of a best.json. Explicit parameters take"
    " precedence.",
    "auto": "Score up to 15 settings out of bag (takes seconds), then pool the best, or with"
    " 'single' use only the best one. Parameters that differ from their defaults are not changed.",
    "kernel": "For fingerprints, use 'tanimoto' (bits) or 'minmax' (counts). If 'precomputed', X is"
    " the square matrix of kernel values.",
    "scale": "How to scale features: 'quantile' uses each value's rank, 'auto' scales if ``resvm"
    " check`` would advise it and out-of-bag scores confirm it. The scaling is learned from P and U"
    " and applied to the rows to predict.",
}

Documented = TypeVar("Documented", bound="Callable[..., Any] | type")


def documented(**sections: Sequence[str]) -> Callable[[Documented], Documented]:
    """Replace lines such as ``{parameters}`` in a docstring with sections in numpydoc's format."""

    def complete(target: Documented) -> Documented:
        for name, entries in sections.items():
            before, marker, after = (target.__doc__ or "").partition("{" + name + "}")
            if marker:
                indent = before.rpartition("\n")[2]  # empty if the compiler has dedented docstrings
                title = [name.capitalize(), "-" * len(name)]
                section = textwrap.indent("\n".join([*title, *entries]), indent)
                target.__doc__ = before + section.lstrip() + after
        return target

    return complete


def shared_entries(*names: str) -> list[str]:
    """Return the entries for arguments that are not in the parameter table."""
    return [entry(name, *SHARED[name]) for name in names]


def table_entries(
    table: Mapping[str, Parameter], names: Iterable[str], defaults: Mapping[str, Any] | None = None
) -> list[str]:
    """Return the entries for parameters in the table; ``defaults`` override theirs."""
    found = []
    for name in names:
        parameter = table[name]
        default = (defaults or {}).get(name, parameter.default)
        kind = PYTHON_TYPES.get(name) or _type_of(parameter)
        explained = parameter.shown is not None and default == parameter.default
        kind += ", optional" if explained or default is None else f", default={default!r}"
        text = PYTHON_HELP.get(name) or str(Message(parameter.help))
        if explained and parameter.shown is not None:
            text += f" Default: {Message(parameter.shown)}."
        found.append(entry(name, kind, text))
    return found


def range_entries(names: Iterable[str]) -> list[str]:
    """Return the entries for parameters that ``tune`` searches over a range."""
    return [
        entry(
            name, "number, list of numbers or str, optional", f"Values to try. {RANGE_HELP[name]}"
        )
        for name in names
    ]


def _type_of(parameter: Parameter) -> str:
    choices = "{" + ", ".join(map(repr, parameter.choices)) + "}"
    if parameter.kind == "choice":
        return choices
    return TYPES[parameter.kind] + (f" or {choices}" if parameter.choices else "")


def entry(name: str, kind: str, text: str) -> str:
    """Return an entry of a section: a name, its type and its meaning."""
    text = re.sub(r"\|(\w)\|", r"``|\1|``", text)  # not an rst substitution
    wrapped = textwrap.fill(text, DOC_WIDTH, break_on_hyphens=False, break_long_words=False)
    return f"{name} : {kind}\n{textwrap.indent(wrapped, '    ')}"


def require_known(given: Mapping[str, Any], known: Collection[str], function: str) -> None:
    """Reject unknown parameters with Python's own message."""
    for name in given:
        if name not in known:
            raise TypeError(f"{function}() got an unexpected keyword argument '{name}'")


def run_for(
    jobs: int | None,
    n_jobs: int | None = None,
    on_progress: Progress | None = None,
    on_notice: Callable[[str], None] | None = None,
) -> Run:
    """Return the run for a call, with notices worded for Python."""
    jobs = None if jobs is None else JOBS.convert(jobs)
    if n_jobs is not None:
        threads = N_JOBS.convert(n_jobs)
        if threads == 0:
            raise ParameterError("{n_jobs} must not be 0")
        if threads < 0:  # as in joblib
            threads = max(1, parallel.available_cores() + 1 + threads)
        jobs = _same("jobs", jobs, "n_jobs", threads)

    def notice(text: Text) -> None:
        if on_notice is not None:
            on_notice(str(text))

    return Run(jobs=jobs, on_progress=on_progress, on_notice=notice, on_remark=notice)


def with_seed(parameters: dict[str, Any], random_state: Any) -> dict[str, Any]:
    """Return the parameters, with a seed taken from ``random_state``."""
    if random_state is None:
        return parameters
    seed = _same("seed", parameters.get("seed"), "random_state", seed_from(random_state))
    return {**parameters, "seed": seed}


def seed_from(random_state: Any) -> int:
    """Return a seed: an integer as it is, or one drawn from a numpy generator."""
    if isinstance(random_state, (int, np.integer)):
        if random_state < 0:
            raise ParameterError("{random_state} must be at least 0, got {n}", n=random_state)
        return int(random_state)
    for name in ("integers", "randint"):
        if hasattr(random_state, name):
            return int(getattr(random_state, name)(MAX_SEED))
    raise ParameterError(
        "{random_state} must be an integer or a numpy random generator, got {value!r}",
        value=random_state,
    )


def _same(name: str, value: Any, other: str, other_value: Any) -> Any:
    """Return the value of a parameter that has two names; reject two different values."""
    if value is not None and value != other_value:
        raise ParameterError(
            "{" + name + "} is {value!r}, but {" + other + "} is {other_value!r}; both mean the"
            " same thing",
            "give only one of them",
            value=value,
            other_value=other_value,
        )
    return other_value

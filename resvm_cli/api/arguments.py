"""What functions and estimators share: documentation of arguments, threads and seeds.

Docstrings are completed from the parameter table, so that each parameter is described only once.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from resvm_cli import threads as parallel
from resvm_cli.errors import ParameterError
from resvm_cli.parameter_types import Parameter
from resvm_cli.parameters import METHOD_TABLE, RANGE_HELP
from resvm_cli.run import Progress, Run

MAX_SEED = 2**31 - 1  # limit for seeds drawn from a generator
DOC_WIDTH = 90
N_JOBS = Parameter("integer", None, "", low=-(2**31), name="n_jobs")
RANDOM_STATE = replace(METHOD_TABLE["seed"], name="random_state")
TYPES = {"integer": "int", "number": "float", "words": "str", "text": "str", "flag": "bool"}

DATA = ("X", "y", "positives", "unlabeled", "groups", "weights", "positive_label", "negative_label")
TABLE_ROLES = ("columns", "drop", "categorical", "missing", "smiles_column", "id_column")
CALLING = ("n_jobs", "random_state", "progress")
# Arguments that are not in the parameter table: type and meaning.
SHARED = {
    "X": (
        "array, sparse matrix, DataFrame or Arrow table",
        "One row per example. Text columns of a data frame become categories, as in a table on the"
        " command line.",
    ),
    "y": (
        "array of labels",
        "Rows with ``positive_label`` are known positives, all others are unlabeled, as are those"
        " without a label.",
    ),
    "positives": ("like X, optional", "Known positives, instead of X and y."),
    "unlabeled": ("like X, optional", "Unlabeled rows, with the same columns as ``positives``."),
    "columns": (
        "list of str, optional",
        "Columns of a data frame to use as features. Default: all others, except ids, dates and"
        " free text.",
    ),
    "drop": ("list of str, optional", "Columns to leave out."),
    "categorical": ("list of str, optional", "Columns to one-hot encode. Default: text columns."),
    "missing": (
        "{'refuse', 'drop', 'zero', 'mean', 'median'}, optional",
        "How to handle missing values: an error, leave the row out, or fill in zero or the column's"
        " mean or median. Default: 'refuse', or as in the model.",
    ),
    "smiles_column": (
        "str, optional",
        "Column with SMILES strings, which become Morgan fingerprints (RDKit); other columns are"
        " features only if listed in ``columns``. The kernel is then tanimoto, unless you set"
        " another; for minmax, the fingerprints have counts.",
    ),
    "id_column": ("str, optional", "Column with row ids, which is not a feature."),
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
    "ids": (
        "iterable, optional",
        "One name per row of X. Default: the index of a DataFrame, or else row numbers from 0.",
    ),
    "model": (
        "estimator or path, optional",
        "A fitted estimator or a model directory, trained on the same rows. Default: train one.",
    ),
    "tested": (
        "mapping, optional",
        "The outcomes (1 or 0) of tested rows of U, by id. Estimates of precision take these"
        " into account. Test either a random sample of U or all rows at the top of the ranking.",
    ),
    "n_jobs": (
        "int, optional",
        "Number of threads; -1 means all cores, -2 all but one. It does not affect the result."
        " Default: as many as the work can use.",
    ),
    "random_state": (
        "int, RandomState, Generator or None, default=0",
        "The seed: the same seed and data give a byte-for-byte identical model. A generator is used"
        " to draw a seed; None means a random seed.",
    ),
    "progress": (
        "callable, optional",
        "Called with the stage, the number of steps done and their total (None while unknown).",
    ),
}
INVALID = "ValueError\n    If a parameter or the data is invalid."
# Entries that differ between Python and the command line.
PYTHON_TYPES = {"params": "Tuning, dict or path"}
PYTHON_HELP = {
    "params": "Parameters chosen by ``tune``, or the path of a best.json. Explicit parameters take"
    " precedence.",
    "auto": "Search for what is not set: about ten settings are scored out of bag, and the best"
    " ones are pooled. If False, all that is not set has the fixed defaults of the paper.",
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
    """Return the entries for parameters in the table; ``defaults`` replace theirs."""
    entries = []
    for name in names:
        parameter = table[name]
        default = parameter.default if defaults is None else defaults[name]
        choices = "{" + ", ".join(map(repr, parameter.choices)) + "}"
        kind = choices
        if parameter.kind != "choice":
            kind = TYPES[parameter.kind] + (f" or {choices}" if parameter.choices else "")
        kind = PYTHON_TYPES.get(name, kind)
        shown = parameter.shown
        if shown is None and default is None and parameter.default is not None:
            shown = f"{parameter.default!r}"
        explained = shown is not None and default in (None, parameter.default)
        kind += ", optional" if explained or default is None else f", default={default!r}"
        text = PYTHON_HELP.get(name) or parameter.help
        if explained and shown is not None:
            text += f" Default: {shown}."
        entries.append(entry(name, kind, text))
    return entries


def range_entries(names: Iterable[str]) -> list[str]:
    """Return the entries for parameters that ``tune`` searches over a range."""
    kind = "number, list of numbers or str, optional"
    return [entry(name, kind, f"Values to try. {RANGE_HELP[name]}") for name in names]


def entry(name: str, kind: str, text: str) -> str:
    """Return an entry of a section: a name, its type and its meaning."""
    text = re.sub(r"\|(\w)\|", r"``|\1|``", text)  # not an rst substitution
    text = re.sub(r"(?<!`)`([^`]+)`(?!`)", r"``\1``", text)
    wrapped = textwrap.fill(text, DOC_WIDTH, break_on_hyphens=False, break_long_words=False)
    return f"{name} : {kind}\n{textwrap.indent(wrapped, '    ')}"


def require_known(given: Mapping[str, Any], known: Collection[str], function: str) -> None:
    """Reject unknown parameters with Python's own message."""
    for name in given:
        if name not in known:
            raise TypeError(f"{function}() got an unexpected keyword argument '{name}'")


def run_for(n_jobs: int | None, progress: Progress | None = None) -> Run:
    """Return the run for a call; negative numbers of jobs count as in joblib."""
    jobs = None if n_jobs is None else N_JOBS.convert(n_jobs)
    if jobs == 0:
        raise ParameterError("`n_jobs` must not be 0")
    if jobs is not None and jobs < 0:
        jobs = max(1, parallel.available_cores() + 1 + jobs)
    return Run(jobs=jobs, on_progress=progress)


def seed_from(random_state: Any) -> int:
    """Return a seed: an integer as it is, or one drawn from a numpy generator."""
    state = np.random if random_state is None else random_state
    if isinstance(state, (int, np.integer)):
        return int(RANDOM_STATE.convert(state))
    for name in ("integers", "randint"):
        if hasattr(state, name):
            return int(getattr(state, name)(MAX_SEED))
    raise ParameterError(
        f"`random_state` must be an integer or a numpy random generator, got {random_state!r}"
    )

"""Members as LIBSVM model text: written without loss, read without LIBSVM's loader.

LIBSVM's own writer keeps 8 digits of a support vector, and its loader crashes on damaged files. A
support vector's line is ``coefficient index:value ...``, so the svmlight tokenizer reads it; lines
repeat across members, and each distinct one is parsed once.
"""

from __future__ import annotations

import itertools
import math
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from resvm_cli.errors import DataError, ModelError
from resvm_cli.files import _numbers
from resvm_cli.files import _svmlight as tokenizer
from resvm_cli.files.svmlight import format_rows, parse_pieces
from resvm_cli.model.ensemble import Ensemble, Group, Member
from resvm_cli.rows import Rows
from resvm_cli.svm import kernels
from resvm_cli.svm.kernels import Kernel

Text: TypeAlias = bytes | memoryview

LIBSVM_NAMES = {"poly": "polynomial"}  # the others are called as here
# What follows the kernel; counts are short enough for any file.
_REST_OF_HEAD = re.compile(
    rb"\nnr_class 2\ntotal_sv ([0-9]{1,18})\nrho ([^\s_]+)\nlabel 1 -1"
    rb"\nnr_sv ([0-9]{1,18}) ([0-9]{1,18})\nSV\n"
)


@dataclass(frozen=True)
class MemberText:
    """A member as it is written."""

    text: bytes
    n_support: int


def format_members(ensemble: Ensemble) -> Iterator[MemberText]:
    """The text of each member; a row that several share is formatted once."""
    supports = [member.support for member in ensemble.members]
    uses_left = np.bincount(np.concatenate(supports), minlength=len(ensemble.pool))
    text: dict[int, bytes] = {}  # of each row the rest of its line, after the coefficient
    for place, member in enumerate(ensemble.members):
        kernel = _kernel_lines(ensemble.kernel_of(place))
        numbers = member.support.tolist()
        new = [number for number in numbers if number not in text]
        rows = format_rows(ensemble.pool.take(np.array(new, np.int64)))
        text.update(zip(new, [b" %b\n" % row if row else b"\n" for row in rows], strict=True))
        size = len(numbers)
        head = [*kernel, "nr_class 2", f"total_sv {size}", f"rho {member.rho!r}", "label 1 -1"]
        head += [f"nr_sv {member.n_positive} {size - member.n_positive}", "SV"]
        coefficients = _numbers.lines(None, member.coefficients, 1, b" ").splitlines()
        lines = zip(coefficients, [text[number] for number in numbers], strict=True)
        parts = ["\n".join(head).encode("ascii"), b"\n", *itertools.chain.from_iterable(lines)]
        yield MemberText(b"".join(parts), size)
        uses_left[member.support] -= 1
        for number in member.support[uses_left[member.support] == 0].tolist():
            del text[number]


def _kernel_lines(kernel: Kernel) -> list[str]:
    lines = ["svm_type c_svc", f"kernel_type {LIBSVM_NAMES.get(kernel.name, kernel.name)}"]
    if not kernel.known_to_libsvm:
        # its loader stops at a first word it does not know, and names it
        lines.insert(0, f"not_a_kernel_of_libsvm {kernel.name}")
    if kernel.uses_degree:
        lines.append(f"degree {kernel.degree}")
    if kernel.uses_gamma:
        lines.append(f"gamma {kernel.gamma!r}")
    if kernel.uses_coef0:
        lines.append(f"coef0 {kernel.coef0!r}")
    return lines


def parse_members(
    texts: Iterable[tuple[str, Text]], groups: Sequence[Group], single: bool
) -> Ensemble:
    """An ensemble from its members' names and texts, each of its group's kernel.

    Texts are taken one by one: of each, only rows that no other has had are kept.
    """
    shared = tokenizer.shared(int.from_bytes(os.urandom(8), "little"))
    members = []
    heads = [
        itertools.repeat("\n".join(_kernel_lines(group.kernel)).encode("ascii"), len(group.members))
        for group in groups
    ]
    for (name, text), head in zip(texts, itertools.chain(*heads), strict=True):
        try:
            members.append(_parse_member(text, head, shared))
        except ValueError as error:
            raise ModelError(
                f"{name}: not a member of this model: {error}", "train the model again"
            ) from None
    pool = _parse_lines(shared)
    if groups[0].kernel.is_precomputed and (wrong := kernels.wrong_serials(pool)):
        raise ModelError(f"members: a support vector: {wrong[0][1]}", "train the model again")
    return Ensemble(tuple(groups), pool, members, single)


def _parse_lines(shared: Any) -> Rows:
    """The distinct rows of all members; ModelError names what is wrong with one."""
    n_rows, n_entries = tokenizer.sizes(shared)
    indptr = np.zeros(n_rows + 1, np.int64)
    indices, values = np.empty(n_entries, np.int32), np.empty(n_entries)
    status, _, n_entries = tokenizer.parse(shared, indptr[1:], indices, values)
    if status == tokenizer.OK:
        return Rows(indptr, indices[:n_entries], values[:n_entries])
    try:  # again, to tell where
        list(parse_pieces([tokenizer.distinct(shared)], "support vectors", zero_based=True))
    except DataError as error:
        raise ModelError(f"members: {error.message}", "train the model again") from None
    raise AssertionError(status)


def _parse_member(text: Text, head: bytes, shared: Any) -> Member:
    """One member, its support vectors numbered by line; ValueError says what is wrong."""
    found = _REST_OF_HEAD.match(text, len(head)) if text[: len(head)] == head else None
    if found is None:
        raise ValueError("its header is not the one the manifest describes")
    size, n_positive, n_unlabeled = map(int, found.group(1, 3, 4))
    body = memoryview(text)[found.end() :]
    # each takes two bytes at least, which bounds what is allocated
    plausible = 0 < size <= len(body) // 2 and n_positive + n_unlabeled == size
    if not plausible or text[-1:] != b"\n":
        raise _miscounted(size, body)
    coefficients, numbers = np.empty(size), np.empty(size, np.int64)
    status, n_vectors = tokenizer.vectors(shared, body, coefficients, numbers)
    if status in (tokenizer.NOT_FINITE, tokenizer.VALUE_OVERFLOW):
        raise ValueError("a coefficient is not finite")
    if status == tokenizer.ROWS_FULL or (status == tokenizer.OK and n_vectors != size):
        raise _miscounted(size, body)
    if status != tokenizer.OK:
        raise ValueError("a support vector is not a coefficient and index:value pairs")
    rho = float(found[2])
    if not math.isfinite(rho):
        raise ValueError("rho is not finite")
    return Member(numbers, coefficients, rho, n_positive)


def _miscounted(size: int, body: memoryview) -> ValueError:
    n_lines = bytes(body).count(b"\n")
    return ValueError(f"it should hold {size} support vectors and holds {n_lines}")

"""Members as LIBSVM model text: written without loss, read without LIBSVM's loader.

LIBSVM's own writer keeps 8 digits of a support vector, and its loader crashes on damaged files. A
support vector's line is ``coefficient index:value ...``, so the svmlight tokenizer reads it; lines
repeat across members, and each distinct one is parsed once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from resvm_cli.ensemble.model import Ensemble, Group, Member
from resvm_cli.errors import DataError, ModelError
from resvm_cli.files import _numbers
from resvm_cli.files.svmlight import Block, format_rows, parse_pieces
from resvm_cli.svm.kernels import Kernel

LIBSVM_NAMES = {"linear": "linear", "poly": "polynomial", "rbf": "rbf", "sigmoid": "sigmoid"}


@dataclass(frozen=True)
class MemberText:
    """A member as it is written."""

    text: bytes
    n_support: int


def format_members(ensemble: Ensemble) -> Iterator[MemberText]:
    """The text of each member; a row that several share is formatted once."""
    supports = [member.support for member in ensemble.members]
    uses_left = np.bincount(np.concatenate(supports), minlength=len(ensemble.pool))
    text: dict[int, bytes] = {}
    for place, member in enumerate(ensemble.members):
        kernel = _kernel_lines(ensemble.kernel_of(place))
        numbers = member.support.tolist()
        new = [number for number in numbers if number not in text]
        text.update(zip(new, format_rows(ensemble.pool.take(np.array(new, np.int64))), strict=True))
        size = len(numbers)
        head = [*kernel, "nr_class 2", f"total_sv {size}", f"rho {member.rho!r}", "label 1 -1"]
        head += [f"nr_sv {member.n_positive} {size - member.n_positive}", "SV"]
        coefficients = _numbers.lines(None, member.coefficients, 1, b" ").splitlines()
        parts = ["\n".join(head).encode("ascii"), b"\n"]
        for number, coefficient in zip(numbers, coefficients, strict=True):
            row = text[number]
            parts += (coefficient, b" ", row, b"\n") if row else (coefficient, b"\n")
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
    texts: Sequence[tuple[str, bytes]], groups: Sequence[Group], single: bool
) -> Ensemble:
    """An ensemble from its members' names and texts, each of its group's kernel."""
    numbers: dict[bytes, int] = {}  # distinct support vectors in order of appearance
    members = []
    heads = [
        [line.encode("ascii") for line in _kernel_lines(group.kernel)]
        for group in groups
        for _ in group.members
    ]
    for (name, text), head in zip(texts, heads, strict=True):
        try:
            members.append(_parse_member(text, head, numbers))
        except ValueError as error:
            raise ModelError(
                f"{name}: not a member of this model: {error}", "train the model again"
            ) from None
    # a label stands where the coefficient stood, so that a row without features is still a row
    lines = b"".join([b"0 %b\n" % line for line in numbers])
    try:
        blocks = parse_pieces([lines], "support vectors", zero_based=True)
        pool = Block.concatenate(list(blocks)).rows
    except DataError as error:
        raise ModelError(f"members: {error.message}", "train the model again") from None
    return Ensemble(tuple(groups), pool, members, single)


def _parse_member(text: bytes, head: list[bytes], numbers: dict[bytes, int]) -> Member:
    """One member, its support vectors numbered by line; ValueError says what is wrong."""
    header, mark, body = text.partition(b"\nSV\n")
    lines = header.split(b"\n")
    if not mark or lines[: len(head)] != head or len(lines) != len(head) + 5:
        raise ValueError("its header is not the one the manifest describes")
    classes, total, rho, label, counts = lines[len(head) :]
    if classes != b"nr_class 2" or label != b"label 1 -1":
        raise ValueError("its classes are not 1 and -1")
    size = _count(_after(b"total_sv ", total))
    n_positive, n_unlabeled = map(_count, _after(b"nr_sv ", counts).split(b" "))
    vectors = body.split(b"\n")
    if vectors.pop() != b"" or len(vectors) != size or n_positive + n_unlabeled != size or not size:
        raise ValueError(f"it should hold {size} support vectors and holds {len(vectors)}")
    if b"#" in body or b"q" in body:
        raise ValueError("a support vector is not index:value pairs")
    parts = [line.partition(b" ") for line in vectors]
    member = Member(
        np.array([numbers.setdefault(row, len(numbers)) for _, _, row in parts], np.int64),
        np.array([_number(coefficient) for coefficient, _, _ in parts]),
        _number(_after(b"rho ", rho)),
        n_positive,
    )
    if not (np.isfinite(member.coefficients).all() and np.isfinite(member.rho)):
        raise ValueError("a coefficient is not finite")
    return member


def _after(key: bytes, line: bytes) -> bytes:
    if not line.startswith(key):
        raise ValueError(f"a line '{key.decode().strip()}' was expected")
    return line[len(key) :]


def _count(text: bytes) -> int:
    if not text.isdigit():  # int would take signs, blanks and underscores too
        raise ValueError(f"'{text[:40].decode('ascii', 'backslashreplace')}' is not a count")
    return int(text)


def _number(text: bytes) -> float:
    if b"_" in text or text != text.strip():
        raise ValueError(f"'{text[:40].decode('ascii', 'backslashreplace')}' is not a number")
    return float(text)

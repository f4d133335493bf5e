"""Member files: text in LIBSVM's model format, written without loss and read defensively.

LIBSVM's own writer keeps only 8 digits of each value in a support vector, and its loader crashes on
damaged files, so we check digests before parsing. Each support vector is a line ``coefficient
index:value ...``, which the svmlight tokenizer can read. Members share support vectors, so each
distinct line is parsed only once.
"""

from __future__ import annotations

import hashlib
import itertools
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from resvm_cli.data import _numbers
from resvm_cli.data import _svmlight as tokenizer
from resvm_cli.data.streams import read_regular
from resvm_cli.data.svmlight import format_rows, parse_pieces
from resvm_cli.ensemble.ensemble import Ensemble, Member, Section
from resvm_cli.errors import DataError, FileError, ModelError
from resvm_cli.rows import IntArray, Rows, distinct
from resvm_cli.svm.kernels import Kernel, wrong_serials

MEMBERS = "members"
MAX_WEIGHTS_LINE = 1 << 30
MAX_ENTRIES = 1 << 22  # of rows whose text is kept: 30 to 90 MB
TRAIN_AGAIN = "copy the model again, or train it again"
# Starts a member file with feature weights. LIBSVM's loader stops at this word and prints it.
WEIGHTS = b"multiply_features_by "
LIBSVM_NAMES = {"poly": "polynomial"}  # other kernels have the same names as in LIBSVM
# The header lines after the kernel; the limited number of digits keeps counts below 2^63.
_REST_OF_HEAD = re.compile(
    rb"\nnr_class 2\ntotal_sv ([0-9]{1,18})\nrho ([^\s_]+)\nlabel 1 -1"
    rb"\nnr_sv ([0-9]{1,18}) ([0-9]{1,18})\nSV\n"
)


def member_name(number: int) -> str:
    return f"{MEMBERS}/{number:05d}.model"


def member_entry(text: bytes) -> dict[str, Any]:
    """Return a member's entry in a manifest or record: digest, size, number of support vectors."""
    found = _REST_OF_HEAD.search(text)
    return {
        "sha256": hashlib.sha256(text).hexdigest(),
        "bytes": len(text),
        "support_vectors": 0 if found is None else int(found[1]),
    }


def read_bounded(name: str, limit: int) -> bytes:
    """Read a regular file of a model; if it exceeds ``limit`` bytes, return ``limit`` + 1 bytes."""
    try:
        return read_regular(name, limit + 1, follow_links=False)
    except FileError as error:
        raise ModelError(error.message, TRAIN_AGAIN) from None


def read_verified(name: str, entry: dict[str, Any]) -> bytes:
    """Read a file and check it against its entry in a manifest or record."""
    text = read_bounded(name, entry["bytes"])
    if len(text) != entry["bytes"] or hashlib.sha256(text).hexdigest() != entry["sha256"]:
        raise ModelError(f"{name}: changed since it was written (digest differs)", TRAIN_AGAIN)
    return text


def read_member(path: str, number: int, entry: dict[str, Any]) -> bytes:
    return read_verified(f"{path}/{member_name(number)}", entry)


def format_members(ensemble: Ensemble) -> Iterator[bytes]:
    """Yield the text of each member.

    A row that several members share is formatted only once, unless there are too many rows to keep
    the text of all of them.
    """
    for members in _chunks(ensemble):
        used = distinct(np.concatenate([ensemble.members[each].support for each in members]))
        texts = format_rows(ensemble.pool.take(used))
        for number in members:
            yield _format_member(ensemble, number, used, texts)


def _chunks(ensemble: Ensemble) -> Iterator[range]:
    """Split the members into ranges of at most ``MAX_ENTRIES``; a row counts once per member."""
    total = len(ensemble.members)
    if len(ensemble.pool.values) <= MAX_ENTRIES:
        yield range(total)
        return
    lengths = ensemble.pool.lengths
    first = size = 0
    for number, member in enumerate(ensemble.members):
        own = int(lengths[member.support].sum())
        if size and size + own > MAX_ENTRIES:
            yield range(first, number)
            first, size = number, 0
        size += own
    yield range(first, total)


def _format_member(
    ensemble: Ensemble, number: int, used: IntArray, texts: Sequence[bytes]
) -> bytes:
    """Return a member's text; ``texts`` are those of the rows with the numbers in ``used``."""
    member, kernel = ensemble.members[number], ensemble.kernel_of(number)
    size = len(member.support)
    head = [*_kernel_lines(kernel), "nr_class 2", f"total_sv {size}", f"rho {member.rho!r}"]
    head += ["label 1 -1", f"nr_sv {member.n_positive} {size - member.n_positive}", "SV\n"]
    if member.weights is not None:
        (factors,) = format_rows(member.weights)
        head.insert(0, (WEIGHTS + factors).decode("ascii"))
    numbers = np.searchsorted(used, member.support).tolist()
    coefficients = _numbers.lines(None, member.coefficients, 1, b" ").splitlines()
    lines = [
        coefficient + b" " + texts[at] if texts[at] else coefficient
        for coefficient, at in zip(coefficients, numbers, strict=True)
    ]
    return b"\n".join(["\n".join(head).encode("ascii") + lines[0], *lines[1:], b""])


def _kernel_lines(kernel: Kernel) -> list[str]:
    lines = ["svm_type c_svc", f"kernel_type {LIBSVM_NAMES.get(kernel.name, kernel.name)}"]
    if not kernel.known_to_libsvm:
        # LIBSVM's loader stops at an unknown first word and prints it
        lines.insert(0, f"not_a_kernel_of_libsvm {kernel.name}")
    used = [name for name in ("degree", "gamma", "coef0") if name in kernel.parameters]
    return lines + [f"{name} {getattr(kernel, name)!r}" for name in used]


def parse_members(
    texts: Iterable[tuple[str, bytes]], sections: Sequence[Section], single: bool
) -> Ensemble:
    """Parse the named texts of all members; each member's kernel must be its section's.

    Texts are read one at a time, and only distinct rows are kept in memory.
    """
    lines: dict[bytes, int] = {}  # the distinct rows, numbered in order of appearance
    members = []
    heads = [
        itertools.repeat("\n".join(_kernel_lines(each.kernel)).encode("ascii"), len(each.members))
        for each in sections
    ]
    for (name, text), head in zip(texts, itertools.chain(*heads), strict=True):
        try:
            members.append(_parse_member(text, head, lines))
        except ValueError as error:
            raise ModelError(
                f"{name}: not a member of this model: {error}", "train the model again"
            ) from None
    for section in sections:
        weighted = {member.weights is not None for member in members[section.columns]}
        if len(weighted) > 1 or (True in weighted and "gamma" not in section.kernel.parameters):
            raise ModelError("members: unexpected or missing feature weights", TRAIN_AGAIN)
    pool = _parse_lines(lines)
    if sections[0].kernel.is_precomputed and (wrong := wrong_serials(pool)):
        raise ModelError(f"members: invalid support vector: {wrong[0][1]}", "train the model again")
    return Ensemble(tuple(sections), pool, members, single)


def _parse_lines(lines: dict[bytes, int]) -> Rows:
    """Parse the distinct rows; a label keeps rows without entries."""
    text = b"0 ".join([b"", *lines])
    try:
        blocks = parse_pieces([text], "support vectors", zero_based=True)
        return Rows.concatenate([block.rows for block in blocks])
    except DataError as error:
        raise ModelError(f"members: {error.message}", "train the model again") from None


def _parse_member(text: bytes, head: bytes, lines: dict[bytes, int]) -> Member:
    """Parse a member, with line numbers as support vectors; raise ValueError if it is invalid."""
    weights, start = _parse_weights(text)
    stop = start + len(head)
    found = _REST_OF_HEAD.match(text, stop) if text.startswith(head, start) else None
    if found is None:
        raise ValueError("its header differs from the manifest")
    size, n_positive, n_unlabeled = map(int, found.group(1, 3, 4))
    body = memoryview(text)[found.end() :]
    # each support vector takes at least two bytes, which bounds the allocated memory
    plausible = 0 < size <= len(body) // 2 and n_positive + n_unlabeled == size
    if not plausible or not text.endswith(b"\n"):
        raise _miscounted(size, body)
    coefficients, numbers = np.empty(size), np.empty(size, np.int64)
    status, n_vectors = tokenizer.vectors(body, lines, coefficients, numbers)
    if status in (tokenizer.NOT_FINITE, tokenizer.VALUE_OVERFLOW):
        raise ValueError("a coefficient is not finite")
    if status == tokenizer.ROWS_FULL or (status == tokenizer.OK and n_vectors != size):
        raise _miscounted(size, body)
    if status != tokenizer.OK:
        raise ValueError("a support vector is not a coefficient followed by index:value pairs")
    rho = float(found[2])
    if not math.isfinite(rho):
        raise ValueError("rho is not finite")
    return Member(numbers, coefficients, rho, n_positive, weights)


def _parse_weights(text: bytes) -> tuple[Rows | None, int]:
    """Return the feature weights, or None, and the offset of the text after them."""
    if not text.startswith(WEIGHTS):
        return None, 0
    end = text.find(b"\n", 0, MAX_WEIGHTS_LINE)
    line = text[len(WEIGHTS) : max(0, end)]
    try:
        (block,) = parse_pieces([b"1 %b\n" % line], "feature weights", zero_based=True)
    except DataError:
        block = None
    # exactly as we write it: one row, without a comment
    plausible = block is not None and line and format_rows(block.rows) == [line]
    if block is None or not plausible or not (block.rows.values > 0).all():
        raise ValueError("its feature weights are not index:value pairs with values above 0")
    return block.rows, end + 1


def _miscounted(size: int, body: memoryview) -> ValueError:
    n_lines = bytes(body).count(b"\n")
    return ValueError(f"expected {size} support vectors, got {n_lines}")

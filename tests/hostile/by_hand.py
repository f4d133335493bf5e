"""Independent readers: slow, strict, by regular expressions; None where they refuse a text."""

from __future__ import annotations

import math
import re

NUMBER = r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?"
_number = re.compile(NUMBER)
_pair = re.compile(rf"\+?([0-9]+):({NUMBER})")
_qid = re.compile(r"qid:[0-9]{1,18}")
_blanks = re.compile(r"[ \t\v\f\r]+")
_head = re.compile(
    rf"svm_type c_svc\nkernel_type rbf\ngamma {NUMBER}\nnr_class 2\ntotal_sv ([0-9]+)\n"
    rf"rho ({NUMBER})\nlabel 1 -1\nnr_sv ([0-9]+) ([0-9]+)"
)


def rows(text: bytes) -> list[tuple[float, list[tuple[int, float]]]] | None:
    """svmlight text: the label and the features of every row."""
    found = []
    for line in text.removeprefix(b"\xef\xbb\xbf").split(b"\n"):
        content = line.removesuffix(b"\r").decode("latin-1").partition("#")[0]
        fields = [field for field in _blanks.split(content) if field]
        if not fields:
            continue
        label = math.nan
        if _number.fullmatch(fields[0]):
            label = float(fields.pop(0))
        if fields and _qid.fullmatch(fields[0]):
            fields.pop(0)
        features: list[tuple[int, float]] = []
        for field in fields:
            pair = _pair.fullmatch(field)
            if pair is None:
                return None
            index, value = int(pair[1]), float(pair[2])
            if math.isinf(value) or not (features[-1][0] if features else 0) < index < 2**31 - 1:
                return None
            features.append((index, value))
        if math.isinf(label):
            return None
        found.append((label, features))
    return found or None


def predictions(text: bytes) -> list[float] | None:
    """Predictions as plain text: a label and a value a line."""
    values = []
    for line in text.split(b"\n"):
        fields = line.decode("latin-1").partition("#")[0].split()
        if not fields:
            continue
        if not all(_number.fullmatch(field) for field in fields[:2]) or len(fields) < 2:
            return None
        values.append(float(fields[1]))
    return values


def labels(text: bytes) -> list[float] | None:
    """The first field of every line."""
    values = []
    for line in text.removeprefix(b"\xef\xbb\xbf").split(b"\n"):
        fields = _blanks.split(line.decode("latin-1").partition("#")[0].strip(" \t\v\f\r"))
        if fields == [""]:
            continue
        if not _number.fullmatch(fields[0]) or math.isinf(float(fields[0])):
            return None
        values.append(float(fields[0]))
    return values


def member_value(text: bytes, gamma: float, row: dict[int, float]) -> float | None:
    """What a member, as LIBSVM's model text of an rbf kernel, says of a row."""
    head, mark, body = text.decode("latin-1").partition("\nSV\n")
    fields = _head.fullmatch(head)
    lines = body.split("\n")
    if not mark or fields is None or lines.pop() != "":
        return None
    size, n_positive, n_unlabeled = (int(fields[place]) for place in (1, 3, 4))
    if size != len(lines) or n_positive + n_unlabeled != size:
        return None
    value = -float(fields[2])
    for line in lines:
        first, *pairs = [field for field in _blanks.split(line) if field] or [""]
        found = [_pair.fullmatch(pair) for pair in pairs]
        if not _number.fullmatch(first) or None in found:
            return None
        support = {int(pair[1]): float(pair[2]) for pair in found if pair}
        distance = sum(
            (row.get(index, 0.0) - support.get(index, 0.0)) ** 2 for index in {*row, *support}
        )
        value += float(first) * math.exp(-gamma * distance)
    return value


def table(text: bytes) -> list[list[float]] | None:
    """Numbers below a line of names, separated by commas; None also where there are quotes."""
    if b'"' in text or b"\r" in text:
        return None
    # bytes: a no-break space is a name, not an empty line
    filled = [line.decode("latin-1") for line in text.split(b"\n") if line.strip()]
    names, *lines = filled or [""]
    cells = [line.split(",") for line in lines]
    width = len(names.split(","))
    if any(len(line) != width for line in cells):
        return None
    if not all(_number.fullmatch(cell.strip(" \t")) for line in cells for cell in line):
        return None
    return [[float(cell) for cell in line] for line in cells]


def agree(first: list[float], second: list[float]) -> bool:
    """Whether these are the same numbers; nan is nan."""
    return len(first) == len(second) and all(
        a == b or (math.isnan(a) and math.isnan(b)) for a, b in zip(first, second, strict=True)
    )

from typing import Any, Final

OK: Final[int]
ROWS_FULL: Final[int]
NONZEROS_FULL: Final[int]
MALFORMED: Final[int]
NOT_FINITE: Final[int]
VALUE_OVERFLOW: Final[int]
INDEX_ZERO: Final[int]
INDEX_NEGATIVE: Final[int]
INDEX_DESCENDS: Final[int]
INDEX_REPEATS: Final[int]
INDEX_TOO_LARGE: Final[int]
NUL_BYTE: Final[int]
BAD_LABEL: Final[int]
BAD_QID: Final[int]
NO_VALUE: Final[int]

def scan(
    text: Any,
    zero_based: bool,
    first_line: int,
    ends: Any,
    labels: Any,
    qids: Any,
    lines: Any,
    starts: Any,
    comments: Any,
    indices: Any,
    values: Any,
    /,
) -> tuple[int, int, int, int, int, int, int, int, int]: ...
def columns(
    text: Any, separator: int, first: int, second: int, firsts: Any, seconds: Any, /
) -> tuple[int, int, int, int, int, int, int]: ...
def cells(
    text: Any, separator: int, kinds: Any, rows: int, values: Any, spans: Any, odd: Any, /
) -> tuple[int, int, int, int]: ...
def vectors(
    text: Any, lines: dict[bytes, int], coefficients: Any, numbers: Any, /
) -> tuple[int, int]: ...

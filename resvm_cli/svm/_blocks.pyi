from typing import Any

TILE: int
STEP: int
TOGETHER: int
LINE_END: int
LEAST_LINES: int
OWN_POWERS: int

def exponents(block: Any, row_norms: Any, support_norms: Any, gamma: float, /) -> None: ...
def shares(block: Any, row_norms: Any, support_norms: Any, /) -> None: ...
def powers(block: Any, /) -> None: ...
def add(
    block: Any, starts: Any, members: Any, coefficients: Any, sums: Any, width: int, /
) -> None: ...
def add_rbf(
    block: Any,
    row_norms: Any,
    support_norms: Any,
    gamma: float,
    starts: Any,
    members: Any,
    coefficients: Any,
    sums: Any,
    /,
) -> None: ...
def weigh(
    starts: Any,
    indices: Any,
    values: Any,
    places: Any,
    weights: Any,
    sums: Any,
    width: int,
    /,
) -> None: ...
def multiply(
    starts: Any,
    indices: Any,
    values: Any,
    places: Any,
    column_starts: Any,
    lines: Any,
    line_values: Any,
    block: Any,
    room: Any,
    smaller: bool = False,
    /,
) -> None: ...
def mark(starts: Any, indices: Any, values: Any, numbers: Any, marks: Any, /) -> int: ...
def spread(
    starts: Any,
    indices: Any,
    values: Any,
    numbers: Any,
    places: Any,
    matrix: Any,
    width: int,
    /,
) -> None: ...
def solve(
    values: Any,
    height: int,
    numbers: Any,
    starts: Any,
    n_positive: Any,
    settings: Any,
    room: Any,
    coefficients: Any,
    rhos: Any,
    steps: Any,
    /,
) -> None: ...
def transpose(
    starts: Any,
    indices: Any,
    values: Any,
    column_starts: Any,
    lines: Any,
    line_values: Any,
    /,
) -> None: ...
def rank(values: Any, descending: bool, room: Any, ranks: Any, /) -> None: ...
def listener() -> int: ...
def heard() -> int: ...

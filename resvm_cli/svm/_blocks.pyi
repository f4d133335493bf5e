from typing import Any

TILE: int
STEP: int
ROWS_TOGETHER: int
LINE_PADDING: int

def exponents(block: Any, row_norms: Any, support_norms: Any, gamma: float, /) -> None: ...
def exp(block: Any, /) -> None: ...
def add(
    block: Any, starts: Any, members: Any, coefficients: Any, sums: Any, width: int, /
) -> None: ...
def multiply_tiles(
    starts: Any,
    indices: Any,
    values: Any,
    places: Any,
    weights: Any,
    sums: Any,
    width: int,
    by_member: bool,
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
    scratch: Any,
    minimum: bool,
    /,
) -> None: ...
def spread(
    starts: Any, indices: Any, values: Any, numbers: Any, places: Any, matrix: Any, width: int, /
) -> None: ...
def solve(
    values: Any,
    height: int,
    numbers: Any,
    starts: Any,
    n_positive: Any,
    n_negative: Any,
    settings: Any,
    scratch: Any,
    coefficients: Any,
    rhos: Any,
    steps: Any,
    /,
) -> None: ...
def transpose(
    starts: Any, indices: Any, values: Any, column_starts: Any, lines: Any, line_values: Any, /
) -> None: ...
def rank(values: Any, descending: bool, scratch: Any, ranks: Any, /) -> None: ...
def follow(values: Any, curves: Any, starts: Any, knots: Any, heights: Any, /) -> None: ...
def summarize(indices: Any, values: Any, statistics: Any, /) -> None: ...
def print_function() -> int: ...
def iterations() -> int: ...

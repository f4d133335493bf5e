"""``make leaks`` fails when memory is lost or misused."""

from __future__ import annotations

import pytest

from tests import leaks

FRAME = "<frame><obj>{}</obj><fn>{}</fn></frame>"


def write_errors(path, *errors: tuple[str, str, int]) -> None:
    written = "".join(
        f"<error><kind>{kind}</kind><xwhat><leakedbytes>{lost}</leakedbytes></xwhat><stack>"
        f"{FRAME.format('/lib/libc.so', 'malloc')}{FRAME.format(place, 'inside')}</stack></error>"
        for kind, place, lost in errors
    )
    path.write_text(f"<valgrindoutput>{written}</valgrindoutput>")


@pytest.mark.parametrize(
    ("lost", "kind", "code"),
    [((8, 8, 8), leaks.LOST, 0), ((8, 8, 9), leaks.LOST, 1), ((0, 0, 0), "InvalidWrite", 1)],
)
def test_growing_losses_and_invalid_accesses_are_reported(lost, kind, code, tmp_path, capsys):
    names = []
    for number, (size, n_bytes) in enumerate(zip(leaks.SIZES, lost, strict=True)):
        write_errors(tmp_path / f"{number}.xml", (kind, "/libsvm/clib.so", n_bytes))
        names.append(f"{number} train libsvm {size}\n")
    (tmp_path / leaks.NAMES).write_text("".join(names))
    assert leaks._report(tmp_path) == code
    shown = capsys.readouterr().out
    assert ("none that grows" in shown) == (code == 0)
    assert ("InvalidWrite in inside" in shown) == (kind == "InvalidWrite")

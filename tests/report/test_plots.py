"""The formats of plots."""

from __future__ import annotations

import pytest

from resvm_cli.errors import CommandLineError
from resvm_cli.report import plots


@pytest.mark.parametrize("name", ["x", "x.gif", "png"])
def test_other_endings_are_refused(name):
    if name == "png":
        assert plots.kind_of("A.PNG") == "png"
        return
    with pytest.raises(CommandLineError, match=r"\.png, \.svg or \.pdf"):
        plots.kind_of(name)

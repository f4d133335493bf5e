"""One sound file of every kind that a command reads, made by the program itself."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tests.conftest import write_svm
from tests.hostile.oracle import resvm


def make_files(folder: Path) -> Path:
    """All of them; small, for what is wrong with a line does not depend on how many there are."""
    folder.mkdir(parents=True)
    rng = np.random.default_rng(7)
    ids = [f"r{number}" for number in range(30)]
    labels = np.repeat([1, -1], 15)
    write_svm(folder / "pos.svm", rng.standard_normal((20, 4)) + 1)
    write_svm(folder / "unl.svm", rng.standard_normal((40, 4)))
    write_svm(folder / "test.svm", rng.standard_normal((30, 4)), labels, comments=ids)
    (folder / "labels").write_text("".join(f"{label}\n" for label in labels))
    lines = [f"r{n},{n % 2},{a:.2f},{'xyz'[n % 3]}" for n, a in enumerate(rng.standard_normal(12))]
    (folder / "table.csv").write_text("\n".join(["id,label,a,colour", *lines]) + "\n")
    write_svm(folder / "labeled.svm", rng.standard_normal((60, 3)), np.repeat([1, -1], 30))
    sets = ["-P", folder / "pos.svm", "-U", folder / "unl.svm", "-q"]
    data = [*sets, "--n-models", 3]
    linear = ["-t", "linear", "--scale", "standard"]
    tune = ["tune", *data, "--trials", 3, "--no-extend", "-o"]
    for command in (
        ["train", "--no-auto", *data, "-o", folder / "m"],
        ["train", *data, *linear, "-o", folder / "linear"],
        ["train", *sets, "--n-models", 10, "-o", folder / "committee"],
        *(["train", *data, "--task", f"{n}/2", "-o", folder / f"part-{n}"] for n in (1, 2)),
        [*tune, folder / "t"],
        *(
            ["predict", folder / "m", folder / "test.svm", "--ids", "--format", form, "-o",
             folder / f"pred.{form}"]
            for form in ("tsv", "jsonl")
        ),
        ["convert", folder / "table.csv", "--id-column", "id", "--label-column", "label",
         "--categorical", "colour", "--map", folder / "map.json", "-o", folder / "table.svm", "-q"],
    ):  # fmt: skip
        ran = resvm(*command)
        assert ran.code == 0, ran.err
    return folder

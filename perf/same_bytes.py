"""Check that two resvm programs write the same bytes: ``python -m perf.same_bytes BEFORE AFTER``.

Use it to test a change that must not affect results. Both programs run the same commands with the
same relative paths, but in separate folders and on their own earlier outputs. Then all files are
compared.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

TIMES = "timings.jsonl"  # contains times, which differ in every run
PROGRESS = re.compile(r", \d+ s\b")  # progress lines, which depend on the speed
TIMEOUT = 900.0
NAMES_TOLD = 6


@dataclass(frozen=True)
class Draw:
    """One of the paper's data sets and what is drawn from it (paper, table of data sets)."""

    name: str
    stem: str
    positive_label: int
    n_pos: int
    n_unl: int
    contamination: float
    test: tuple[int, int] | None = None  # None: all remaining rows
    copies: int = 1  # of each row of P

    def arguments(self, folder: Path) -> list[str]:
        """Return the options of ``resvm simulate``."""
        path = folder / self.stem
        options: dict[str, object] = {
            "--data": path if path.exists() else folder / f"{self.stem}.gz",
            "--positive-label": self.positive_label,
            "--n-pos": self.n_pos,
            "--n-unl": self.n_unl,
            "--contamination-pos": self.contamination,
            "--contamination-unl": self.contamination,
        }
        if self.test is not None:
            options |= {"--test-pos": self.test[0], "--test-neg": self.test[1]}
        return [str(word) for option in options.items() for word in option]


DRAWS = (
    Draw("mnist 7", "mnist.scale", 7, 50, 2_000, 0.1, (1_000, 9_000)),
    Draw("cancer", "breast-cancer_scale", 4, 50, 200, 0.3, (100, 100)),
    Draw("ijcnn1", "ijcnn1", 1, 100, 10_000, 0.1),
)
# Cases not in the paper: so many positives that a model stores out-of-bag values only for a random
# sample, and duplicate rows, which count as seen if a copy of them is in the bag.
SPECIAL_DRAWS = (
    Draw("many positives", "ijcnn1", 1, 1_500, 10_000, 0.1, (1_000, 1_000)),
    Draw("repeated rows", "breast-cancer_scale", 4, 50, 200, 0.3, (100, 100), copies=2),
)

PU = "-P data/pos.svm -U data/unl.svm"
ONE_FILE = "--data all.svm --positive-ids known.txt"
GRID = "--search grid --no-extend --c-unl 0.1,1,10 --w-pos 0.5,2 --n-pos 10,20 --unl-per-pos 2,5"

# Each line has a name and a command; the output of the command goes to NAME.out.
TRAIN = f"""
rbf             train {PU} -o rbf --json
rbf-one-thread  train {PU} -o rbf-one-thread -j 1
linear          train {PU} -t linear -o linear
poly-scaled     train {PU} -t poly -r 1 --scale standard -o poly-scaled
sigmoid         train {PU} -t sigmoid --scale minmax -o sigmoid --seed 3
liblinear       train {PU} -t linear --solver liblinear -o liblinear
bagging         train {PU} --method bagging -o bagging
cwsvm           train {PU} --method cwsvm -o cwsvm
auto            train {PU} --auto -o auto
one-file        train {ONE_FILE} -o one-file
"""
PREDICT = """
text            predict rbf data/test.svm
one-job         predict rbf data/test.svm -j 1
two-jobs        predict rbf data/test.svm -j 2
gzip            predict rbf test.svm.gz --votes
csv             predict linear data/test.svm --format csv --votes
tsv             predict poly-scaled data/test.svm --format tsv
jsonl           predict liblinear data/test.svm --format jsonl --member-values
member-values   predict rbf data/test.svm --member-values
of-sigmoid      predict sigmoid data/test.svm --votes
of-bagging      predict bagging data/test.svm --votes
of-cwsvm        predict cwsvm data/test.svm
of-auto         predict auto data/test.svm
with-ids        predict one-file all.svm --ids --format csv
recall          predict rbf data/test.svm -T recall=0.9
"""
TUNE = f"""
grid            tune {PU} {GRID} --gamma 0.01,0.1 -v 5 -o grid --json
random-oob      tune {PU} --oob --trials 20 -o random-oob
random-folds    tune {PU} --search random --trials 20 -v 5 -o random-folds
three-methods   tune {PU} --method all --trials 4 -v 3 -t linear -o three-methods
committee       tune {PU} --oob --trials 6 --committee 3 --no-extend -o committee
of-grid         train {PU} --params grid/best.json -o of-grid
"""
RANK = f"""
rank            rank {PU} -o ranked --html rank.html
rank-jsonl      rank {PU} --format jsonl --with-known --top 50 --seed 5
rank-linear     rank {PU} -t linear --no-interval
rank-params     rank {PU} --params random-oob/best.json
rank-one-file   rank {ONE_FILE} --format csv
rank-model      rank {PU} --model rbf
audit           rank {PU} --audit
audit-expected  rank {PU} --audit --contamination-pos 0.1 --contamination-unl 0.1
audit-model     rank {PU} --audit --model rbf --json
"""
SCORE = """
score           score text.out --labels data/test.svm --html score.html --curve curve.csv
score-json      score gzip.out csv.out --labels data/test.svm --json
score-pu        score with-ids.out --positive-ids known.txt --pu
score-estimate  score text.out --labels data/test.svm --pu --contamination-unl estimate --json
check           check data/pos.svm data/unl.svm
inspect         inspect rbf
"""
SPECIAL = f"""
rbf             train {PU} -o rbf
recall          predict rbf data/test.svm -T recall=0.9
audit-model     rank {PU} --audit --model rbf
audit           rank {PU} --audit
random-oob      tune {PU} --oob --trials 4 --no-extend -o random-oob
"""


def steps(text: str) -> list[tuple[str, list[str]]]:
    """Return the name and the arguments of each command."""
    return [(words[0], words[1:]) for words in map(str.split, text.splitlines()) if words]


def run(program: Path, folder: Path, name: str, arguments: list[str]) -> None:
    """Run one command in its folder; store its output and exit code in files there."""
    out, messages = folder / f"{name}.out", folder / f"{name}.messages"
    with out.open("wb") as stdout, messages.open("wb") as stderr:
        done = subprocess.run(
            [program, *arguments], cwd=folder, stdout=stdout, stderr=stderr, timeout=TIMEOUT
        )
    said = messages.read_text().splitlines(keepends=True)
    messages.write_text("".join(line for line in said if not PROGRESS.search(line)))
    (folder / f"{name}.code").write_text(f"{done.returncode}\n")


def prepare(program: Path, folder: Path, draw: Draw, source: Path) -> None:
    """Draw P, U and test rows, write P and U to one file with ids, and compress the test rows."""
    folder.mkdir(parents=True)
    run(program, folder, "simulate", ["simulate", *draw.arguments(source), "-o", "data"])
    positives = (folder / "data/pos.svm").read_text().splitlines() * draw.copies
    (folder / "data/pos.svm").write_text("".join(f"{line}\n" for line in positives))
    unlabeled = (folder / "data/unl.svm").read_text().splitlines()
    rows = [f"{line} # row{number}" for number, line in enumerate(positives + unlabeled)]
    # mix P and U, so that rows are not in the same order as in the two files
    (folder / "all.svm").write_text("".join(f"{row}\n" for row in sorted(rows, key=_shuffling)))
    (folder / "known.txt").write_text("".join(f"row{n}\n" for n in range(len(positives))))
    test = (folder / "data/test.svm").read_bytes()
    (folder / "test.svm.gz").write_bytes(gzip.compress(test, 1, mtime=0))


def _shuffling(row: str) -> str:
    """Return the row reversed as a sort key, which separates neighboring rows."""
    return row[::-1]


def written(folder: Path) -> set[Path]:
    """Return all files below a folder except those with timings."""
    return {
        path.relative_to(folder)
        for path in folder.rglob("*")
        if path.is_file() and path.name != TIMES
    }


def differences(before: Path, after: Path, files: set[Path]) -> Iterator[str]:
    """Yield a line for each file that differs between the two folders."""
    for file in sorted(files):
        old, new = before / file, after / file
        if not (old.is_file() and new.is_file()):
            yield f"{file}: only {'before' if old.is_file() else 'after'}"
        elif old.read_bytes() != new.read_bytes():
            yield f"{file}: {describe(old, new)}"


def describe(old: Path, new: Path) -> str:
    """Describe how two files differ, by JSON keys, table columns or lines."""
    texts = [path.read_text(errors="replace") for path in (old, new)]
    old_lines, new_lines = (text.splitlines() for text in texts)
    lines = list(zip_longest(old_lines, new_lines, fillvalue=""))
    unequal = [number for number, (one, other) in enumerate(lines) if one != other]
    try:
        return _keys([(json.loads(texts[0]), json.loads(texts[1]))])
    except ValueError:
        count = f"{len(unequal)} of {len(lines)} lines"
    if old.suffix == ".jsonl":
        pairs = [lines[number] for number in unequal]
        values = [(json.loads(one or "null"), json.loads(other or "null")) for one, other in pairs]
        return f"{count} in {_keys(values)}"
    return f"{count}{_columns(lines, unequal)}"


def _keys(pairs: Iterable[tuple[object, object]]) -> str:
    """Name the first keys that differ in pairs of JSON values."""
    keys = list(dict.fromkeys(key for old, new in pairs for key in unequal_keys(old, new)))
    return ", ".join(keys[:NAMES_TOLD]) + (", ..." if len(keys) > NAMES_TOLD else "")


def _columns(lines: list[tuple[str, str]], unequal: list[int]) -> str:
    """Name the columns that differ if both files have the same header line."""
    header = lines[0][0]
    mark = next((mark for mark in "\t," if mark in header), None)
    if mark is None or " " in header or 0 in unequal:
        return f", the first is line {unequal[0] + 1}"
    names = header.split(mark)
    pairs = [[text.split(mark) for text in lines[number]] for number in unequal]
    changed = {
        name
        for old, new in pairs
        for name, one, other in zip_longest(names, old, new, fillvalue="")
        if one != other
    }
    return " in " + ", ".join(name for name in names if name in changed)


def unequal_keys(old: object, new: object, key: str = "") -> Iterator[str]:
    """Yield the keys under which two JSON values differ; all items of a list share one key."""
    if isinstance(old, dict) and isinstance(new, dict):
        for name in dict.fromkeys([*old, *new]):
            yield from unequal_keys(old.get(name), new.get(name), f"{key}.{name}".lstrip("."))
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for one, other in zip(old, new, strict=True):
            yield from unequal_keys(one, other, f"{key}[]")
    elif old != new:
        yield key


def arguments(argv: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m perf.same_bytes", description=__doc__)
    parser.add_argument("before", type=Path, help="the old resvm program")
    parser.add_argument("after", type=Path, help="the new resvm program")
    parser.add_argument("--data-dir", type=Path, required=True, help="the paper's data sets")
    names = [draw.name for draw in (*DRAWS, *SPECIAL_DRAWS)]
    parser.add_argument("--only", nargs="+", choices=names, metavar="NAME", help=", ".join(names))
    parser.add_argument("--keep", type=Path, metavar="DIR", help="new folder for the files")
    return parser.parse_args(argv)


def compare(draw: Draw, text: str, programs: dict[str, Path], folder: Path, source: Path) -> bool:
    """Run commands on a data set, print a line for each, and return whether all bytes agree."""
    before, after = (folder / side for side in programs)
    for side, program in programs.items():
        prepare(program, folder / side, draw, source)
    all_same, known = True, set[Path]()
    for name, words in [("simulate", ["simulate"]), *steps(text)]:
        if name != "simulate":
            for side, program in programs.items():
                run(program, folder / side, name, words)
        files = (written(before) | written(after)) - known
        known |= files
        lines = list(differences(before, after, files))
        code = (before / f"{name}.code").read_text().strip()
        verdict = "differs" if lines else "same" if code == "0" else f"same, exit code {code}"
        all_same = all_same and not lines
        print(f"{draw.name:15}{words[0]:10}{name:16}{len(files):5} files  {verdict}", flush=True)
        for line in lines:
            print(f"{'':25}{line}", flush=True)
    return all_same


def main(argv: list[str] | None = None) -> int:
    """Compare the programs on each requested data set; return 1 if any file differs."""
    given = arguments(argv)
    programs = {"before": given.before.absolute(), "after": given.after.absolute()}
    works = [(draw, TRAIN + PREDICT + TUNE + RANK + SCORE) for draw in DRAWS]
    works += [(draw, SPECIAL) for draw in SPECIAL_DRAWS]
    if given.keep is not None:
        given.keep.mkdir(parents=True)
    with tempfile.TemporaryDirectory(prefix="resvm-same-bytes-") as temporary:
        folder = Path(temporary) if given.keep is None else given.keep
        source = given.data_dir.absolute()
        outcomes = [
            compare(draw, text, programs, folder / draw.name.replace(" ", "-"), source)
            for draw, text in works
            if given.only is None or draw.name in given.only
        ]
    return 0 if all(outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())

"""Check that two resvm programs write the same: ``same_bytes BEFORE AFTER --data-dir DIR``.

Use it to test a change that must not affect results. Both programs run the same commands with the
same relative paths, but in separate folders and on their own earlier outputs. Then all files that a
command wrote, its output, messages and exit code are compared. Each command gets one verdict:

- ``same``: every byte is the same.
- ``same values``: other bytes, but in nothing that both programs compute. That is so if JSON keys
  or table columns come from one program alone, if only keys of BOOKKEEPING differ, or if only
  messages and pages for people differ. The lines below the verdict name them.
- ``differs``: anything else, such as another number, model, decision, list or exit code.
- ``skipped``: one of the programs does not know the command or one of its options.

So a program can be compared with one that has fewer options or keys. The exit code is 1 if a
command differs and, with ``--strict``, if any verdict is not ``same``. All data sets take 5 minutes
or more, ``--only cancer samples`` half a minute.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

SAMPLES = Path(__file__).parents[2] / "sample_data"
TIMES = "timings.jsonl"  # contains times, which differ in every run
PROGRESS = re.compile(r", \d+ s\b")  # progress lines, which depend on the speed
UNKNOWN = re.compile(r"has no option|there is no command|No such (option|command)")
SEAL = re.compile(r"\n[0-9a-f]{64}\n$")  # the digest of the line above
FOR_PEOPLE = (".messages", ".html")
# Keys that say how a file is written, not what was computed; files with digests are compared
# themselves.
BOOKKEEPING = (
    "format",
    "kind",
    "version",
    "command",
    "versions",
    "sha256",
    "bytes",
    "manifest_sha256",
)
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


PU = "-P data/pos.svm -U data/unl.svm"
ONE_FILE = "--data all.svm --positive-ids known.txt"
GRID = "--search grid --no-extend --c-unl 0.1,1,10 --w-pos 0.5,2 --n-pos 10,20 --unl-per-pos 2,5"
PAYMENTS = "payments/payments.csv --id-column payment"
FRAUD = f"--data {PAYMENTS} --label-column status --positive-label fraud"
GENOME = "--data genome/genome.svm --positive-ids genome/known.txt --groups genome/families.txt"

# Each line has a name and a command, whose output goes to NAME.out. After ||, another spelling
# follows: each program runs the first one that it knows.
STEPS = f"""
rbf             train {PU} -o rbf --json
rbf-one-thread  train {PU} -o rbf-one-thread -j 1
linear          train {PU} -t linear -o linear
poly-scaled     train {PU} -t poly -r 1 --scale standard -o poly-scaled
sigmoid         train {PU} -t sigmoid --scale minmax -o sigmoid --seed 3
quantile        train {PU} --scale quantile --feature-weights relevance -o quantile
liblinear       train {PU} -t linear --solver liblinear -o liblinear
bagging         train {PU} --method bagging -o bagging
cwsvm           train {PU} --method cwsvm -o cwsvm
auto            train {PU} --auto -o auto
one-file        train {ONE_FILE} -o one-file
part-1          train {PU} --task 1/2 -o part-1
part-2          train {PU} --task 2/2 -o part-2
merged          merge part-1 part-2 -o merged
text            predict rbf data/test.svm
one-job         predict rbf data/test.svm -j 1
two-jobs        predict rbf data/test.svm -j 2
gzip            predict rbf test.svm.gz --votes
csv             predict linear data/test.svm --format csv --votes
tsv             predict poly-scaled data/test.svm --format tsv
jsonl           predict liblinear data/test.svm --format jsonl --member-values
member-values   predict rbf data/test.svm --member-values
of-sigmoid      predict sigmoid data/test.svm --votes
of-quantile     predict quantile data/test.svm --votes
of-bagging      predict bagging data/test.svm --votes
of-cwsvm        predict cwsvm data/test.svm
of-auto         predict auto data/test.svm
probability     predict auto data/test.svm --probability --format csv
with-ids        predict one-file all.svm --ids --format csv
recall          predict rbf data/test.svm -T recall=0.9
grid            tune {PU} {GRID} --gamma 0.01,0.1 -v 5 -o grid --json
random-oob      tune {PU} --trials 20 -o random-oob
random-folds    tune {PU} --search random --trials 20 -v 5 -o random-folds
committee       tune {PU} --trials 6 --committee 3 --no-extend -o committee
of-grid         train {PU} --params grid/best.json -o of-grid
rank            rank {PU} --save-model ranked --html rank.html \
|| rank {PU} -o ranked --html rank.html
rank-jsonl      rank {PU} --format jsonl --top 50 --seed 5
rank-plain      rank {PU} --no-auto
rank-linear     rank {PU} --no-auto -t linear
rank-params     rank {PU} --params random-oob/best.json
rank-one-file   rank {ONE_FILE} --format csv
rank-model      rank {PU} --model rbf
rank-next       rank {PU} --model rbf --next 20
rank-why        rank {PU} --model rbf --why 5 --json
rank-fdr        rank {PU} --model auto --contamination-unl 0.1 --fdr 0.2
audit           rank {PU} --audit
audit-expected  rank {PU} --audit --contamination-pos 0.1 --contamination-unl 0.1
audit-model     rank {PU} --audit --model rbf --json
score           score text.out --labels data/test.svm --curve curve.csv --json
score-json      score gzip.out csv.out --labels data/test.svm --json
score-pu        score with-ids.out --positive-ids known.txt --pu --json
score-corrected score text.out --labels data/test.svm --pu --contamination-unl 0.2 --json
check           check data/pos.svm data/unl.svm --json
inspect         inspect rbf --json
importance      inspect rbf --importance {PU} --json
"""
SPECIAL = f"""
rbf             train {PU} -o rbf
recall          predict rbf data/test.svm -T recall=0.9
audit-model     rank {PU} --audit --model rbf
audit           rank {PU} --audit
random-oob      tune {PU} --trials 4 --no-extend -o random-oob
"""
SAMPLE_STEPS = f"""
check           check genome/genome.svm --json
table           rank {FRAUD} --why 5 --json -o ranked --html rank.html
table-audit     rank {FRAUD} --audit
table-model     train {FRAUD} -o table-model
of-table        predict table-model {PAYMENTS} --ids --format tsv --votes
convert         convert {PAYMENTS} --label-column status --positive-label fraud -P p.svm -U u.svm
molecules       convert compounds/compounds.csv --smiles-column smiles --id-column id \
--label-column outcome --positive-label hit -P hits.svm -U library.svm
tanimoto        rank -P hits.svm -U library.svm -t tanimoto
minmax          train -P hits.svm -U library.svm -t minmax -o minmax
groups          rank {GENOME} --no-auto
groups-audit    rank {GENOME} --audit
groups-tune     tune {GENOME} --trials 6 -o tuning
next            rank {GENOME} --no-auto --next 24
negatives       rank {GENOME} --no-auto --negative-ids genome/negatives.txt \
|| rank {GENOME} --no-auto -N genome/negatives.txt
tested          rank {GENOME} --no-auto --tested genome/tested.tsv
"""


@dataclass(frozen=True)
class Work:
    """A folder to prepare and the commands to run in it; without a draw, the sample data."""

    name: str
    steps: str
    draw: Draw | None = None


WORKS = [
    Work("samples", SAMPLE_STEPS),
    *(
        Work(draw.name, STEPS, draw)
        for draw in (
            Draw("cancer", "breast-cancer_scale", 4, 50, 200, 0.3, (100, 100)),
            Draw("mnist7", "mnist.scale", 7, 50, 2_000, 0.1, (1_000, 9_000)),
            Draw("ijcnn1", "ijcnn1", 1, 100, 10_000, 0.1),
        )
    ),
    # Not in the paper: duplicate rows, which count as seen if a copy of them is in the bag, and so
    # many positives that a model stores out-of-bag values only for a random sample.
    Work(
        "repeated",
        SPECIAL,
        Draw("repeated", "breast-cancer_scale", 4, 50, 200, 0.3, (100, 100), copies=2),
    ),
    Work("many", SPECIAL, Draw("many", "ijcnn1", 1, 1_500, 10_000, 0.1, (1_000, 1_000))),
]


def parse_steps(text: str) -> Iterator[tuple[str, list[list[str]]]]:
    """Yield the name and the spellings of each command."""
    for line in filter(None, text.splitlines()):
        name, _, spellings = line.partition(" ")
        written = [spelling.split() for spelling in spellings.split("||")]
        yield name, [words for spelling in written for words in in_both_versions(spelling)]


def in_both_versions(words: list[str]) -> Iterator[list[str]]:
    """Yield a command as programs spell it whose ``train`` searches by default, and as others do.

    What was ``train`` is ``train --no-auto`` now, what was ``train --auto`` is ``train``, and
    ``rank`` lists by the rule of its model, which was by mean values unless told otherwise.
    """
    if words[0] == "train" and not {"--auto", "--params"} & set(words):
        yield ["train", "--no-auto", *words[1:]]
    if words[0] == "rank" and {"--no-auto", "rbf", "random-oob/best.json"} & set(words):
        yield [*words, "--decision", "votes"]
    yield words
    if "--auto" in words:
        yield [word for word in words if word != "--auto"]


def run_known(program: Path, folder: Path, name: str, spellings: list[list[str]]) -> bool:
    """Run the first spelling that the program knows; return whether there is one."""
    return any(run(program, folder, name, arguments) for arguments in spellings)


def run(program: Path, folder: Path, name: str, arguments: list[str]) -> bool:
    """Run one command in its folder, keep what it says there; return whether it is known."""
    out, messages = folder / f"{name}.out", folder / f"{name}.messages"
    with out.open("wb") as stdout, messages.open("wb") as stderr:
        done = subprocess.run(
            [program, *arguments], cwd=folder, stdout=stdout, stderr=stderr, timeout=TIMEOUT
        )
    said = messages.read_text().splitlines(keepends=True)
    messages.write_text("".join(line for line in said if not PROGRESS.search(line)))
    (folder / f"{name}.code").write_text(f"{done.returncode}\n")
    return not (done.returncode == 2 and UNKNOWN.search("".join(said)))


def prepare(program: Path, folder: Path, draw: Draw | None, source: Path) -> None:
    """Draw P, U and test rows, write P and U to one file with ids, and compress the test rows."""
    if draw is None:
        shutil.copytree(SAMPLES, folder)
        hidden = (folder / "genome/hidden.txt").read_text().split()
        (folder / "genome/tested.tsv").write_text("".join(f"{name}\t1\n" for name in hidden[:9]))
        known = (folder / "genome/known.txt").read_text().split()
        rows = (folder / "genome/genome.svm").read_text().splitlines()
        others = [name for row in rows if (name := row.split()[-1]) not in {*known, *hidden}]
        (folder / "genome/negatives.txt").write_text("\n".join(others[:20]) + "\n")
        return
    folder.mkdir(parents=True)
    run(program, folder, "simulate", ["simulate", *draw.arguments(source), "-o", "data"])
    positives = (folder / "data/pos.svm").read_text().splitlines() * draw.copies
    (folder / "data/pos.svm").write_text("".join(f"{line}\n" for line in positives))
    unlabeled = (folder / "data/unl.svm").read_text().splitlines()
    rows = [f"{line} # row{number}" for number, line in enumerate(positives + unlabeled)]
    # sorted by the reversed text, so that rows are not in the same order as in the two files
    ordered = sorted(rows, key=lambda row: row[::-1])
    (folder / "all.svm").write_text("".join(f"{row}\n" for row in ordered))
    (folder / "known.txt").write_text("".join(f"row{n}\n" for n in range(len(positives))))
    test = (folder / "data/test.svm").read_bytes()
    (folder / "test.svm.gz").write_bytes(gzip.compress(test, 1, mtime=0))


@dataclass(frozen=True)
class Difference:
    """How a file differs, and whether in something that both programs compute."""

    text: str
    in_values: bool = True


def written(folder: Path) -> set[Path]:
    """Return all files below a folder except those with timings."""
    return {
        path.relative_to(folder)
        for path in folder.rglob("*")
        if path.is_file() and path.name != TIMES
    }


def differences(before: Path, after: Path, files: set[Path]) -> Iterator[Difference]:
    """Yield each file that differs between the two folders."""
    for file in sorted(files):
        old, new = before / file, after / file
        for_people = file.suffix in FOR_PEOPLE
        if not (old.is_file() and new.is_file()):
            side = "before" if old.is_file() else "after"
            yield Difference(f"{file}: only {side}", not for_people)
        elif old.read_bytes() != new.read_bytes():
            difference = describe(*(path.read_text(errors="replace") for path in (old, new)))
            in_values = difference.in_values and not for_people
            yield Difference(f"{file}: {difference.text}", in_values)


def describe(old: str, new: str) -> Difference:
    """Describe how two texts differ: by JSON keys, by columns of a table, or by lines."""
    for read in (_records, _table):
        values = read(old), read(new)
        if values[0] and values[1]:
            return _by_key(*values)
    lines = list(zip_longest(old.splitlines(), new.splitlines(), fillvalue=""))
    unequal = [number for number, (one, other) in enumerate(lines, 1) if one != other]
    first = f", the first is line {unequal[0]}" if unequal else ""
    return Difference(f"{len(unequal)} of {len(lines)} lines{first}")


def _records(text: str) -> list[object] | None:
    """Return the value of a JSON file, or those of the lines of a JSON Lines file."""
    text = SEAL.sub("", text)
    for parts in ([text], text.splitlines()):
        try:
            values = [json.loads(part) for part in parts]
        except ValueError:
            continue
        if all(isinstance(value, dict | list) for value in values):
            return values
    return None


def _table(text: str) -> list[object] | None:
    """Return the rows of a table with a header, as dicts."""
    header, *lines = text.splitlines() or [""]
    mark = next((mark for mark in "\t," if mark in header), None)
    if mark is None or " " in header or not header[0].isalpha():
        return None
    names = header.split(mark)
    return [dict(zip_longest(names, line.split(mark))) for line in lines]


def _by_key(old: list[object], new: list[object]) -> Difference:
    """Name the keys whose values differ, those of one side alone, and bookkeeping."""
    if len(old) != len(new):
        return Difference(f"{len(old)} and {len(new)} records")
    found: dict[str, dict[str, None]] = {"values": {}, "only before": {}, "only after": {}}
    for pair in zip(old, new, strict=True):
        for key, how in unequal_keys(*pair):
            found[how][key] = None
    bookkeeping = [key for key in found["values"] if key.rpartition(".")[2] in BOOKKEEPING]
    values = [key for key in found["values"] if key not in bookkeeping]
    texts = [_listed(values)] if values else []
    one_sided = {how: found[how] for how in ("only before", "only after")}
    for how, keys in {**one_sided, "bookkeeping": bookkeeping}.items():
        texts += [f"{how}: {_listed(list(keys))}"] if keys else []
    return Difference("; ".join(texts) or "the same values, written otherwise", bool(values))


def _listed(keys: list[str]) -> str:
    return ", ".join(keys[:NAMES_TOLD]) + (", ..." if len(keys) > NAMES_TOLD else "")


def unequal_keys(old: object, new: object, key: str = "") -> Iterator[tuple[str, str]]:
    """Yield the keys under which two JSON values differ, and how; items of a list share a key."""
    if isinstance(old, dict) and isinstance(new, dict):
        for name in dict.fromkeys([*old, *new]):
            inner = f"{key}.{name}".lstrip(".")
            if name in old and name in new:
                yield from unequal_keys(old[name], new[name], inner)
            else:
                yield inner, "only before" if name in old else "only after"
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for one, other in zip(old, new, strict=True):
            yield from unequal_keys(one, other, f"{key}[]")
    elif old != new:
        yield key, "values"


def compare(work: Work, programs: dict[str, Path], folder: Path, source: Path) -> set[str]:
    """Run the commands of a work in both programs, print a line for each; return the verdicts."""
    folders = {side: folder / side for side in programs}
    for side, program in programs.items():
        prepare(program, folders[side], work.draw, source)
    verdicts, seen = set(), set[Path]()
    for name, spellings in [("prepared", []), *parse_steps(work.steps)]:
        unknown = [
            side
            for side in programs
            if spellings and not run_known(programs[side], folders[side], name, spellings)
        ]
        files = set.union(*map(written, folders.values())) - seen
        found = []
        if unknown:
            verdict = f"skipped: {' and '.join(unknown)} does not know it"
            for side in folders.values():  # the other program wrote it, so later commands would
                shutil.rmtree(side / name, ignore_errors=True)  # differ because of it
                for file in files:
                    (side / file).unlink(missing_ok=True)
        else:
            found = list(differences(*folders.values(), files))
            differs = any(difference.in_values for difference in found)
            verdict = "differs" if differs else "same values" if found else "same"
            seen |= files
        verdicts.add(verdict.partition(":")[0])
        code = folders["before"] / f"{name}.code"
        if code.exists() and (shown := code.read_text().strip()) != "0":
            verdict += f", exit code {shown}"
        command = spellings[0][0] if spellings else "files"
        print(f"{work.name:9}{command:9}{name:15}{len(files):5} files  {verdict}", flush=True)
        for difference in found:
            mark = "!" if difference.in_values else " "
            print(f"{'':16}{mark} {difference.text}", flush=True)
    return verdicts


def main(argv: list[str] | None = None) -> int:
    """Compare the programs on each requested data set."""
    parser = argparse.ArgumentParser(
        "python -m experiments.speed same_bytes",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("before", type=Path, help="the old resvm program")
    parser.add_argument("after", type=Path, help="the new resvm program")
    parser.add_argument("--data-dir", type=Path, default=Path(), help="the paper's data sets")
    names = [work.name for work in WORKS]
    parser.add_argument("--only", nargs="+", choices=names, default=names, metavar="NAME")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="new folder for the files")
    parser.add_argument("--strict", action="store_true", help="every byte must be the same")
    given = parser.parse_args(argv)
    programs = {"before": given.before.absolute(), "after": given.after.absolute()}
    if given.keep is not None:
        given.keep.mkdir(parents=True)
    verdicts: set[str] = set()
    with tempfile.TemporaryDirectory(prefix="resvm-same-bytes-") as temporary:
        folder = Path(temporary) if given.keep is None else given.keep.absolute()
        for work in WORKS:
            if work.name in given.only:
                source = given.data_dir.absolute()
                verdicts |= compare(work, programs, folder / work.name, source)
    allowed = {"same"} if given.strict else {"same", "same values", "skipped"}
    return 0 if verdicts <= allowed else 1

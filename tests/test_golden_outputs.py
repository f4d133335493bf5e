"""The outputs of commands on small seeded data stay the same to six digits.

The expected outputs are in tests/golden/outputs. If a change is meant to affect results, run
``python -m tests.test_golden_outputs`` to write them again, and read the diff before you commit it.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest

from tests.programs import run_resvm

GOLDEN = Path(__file__).parent / "golden" / "outputs"
PU = "-P data/pos.svm -U data/unl.svm -q"
MORE = "-P more/pos.svm -U more/unl.svm -q"  # enough known positives to estimate precision
# each output file and its command; later commands read files written by earlier ones
COMMANDS = f"""
simulate.json   simulate --synthetic --n-pos 30 --n-unl 120 --contamination-pos 0.1
    --contamination-unl 0.2 --test-pos 25 --test-neg 35 --decimals 3 -q -o data --json
more.json       simulate --synthetic --n-pos 80 --n-unl 200 --contamination-pos 0
    --contamination-unl 0.2 --test-pos 1 --test-neg 1 --decimals 3 -q -o more --json
spies.json      simulate --data data/test.svm --positive-label 1 --n-pos 9 --n-unl 20
    --contamination-pos 0.2 --contamination-unl 0.3 --test-pos 8 --test-neg 9 -q -o spies --json
train.json      train {PU} --no-auto --n-models 7 -o model --json
weighted.json   train {PU} --no-auto -t linear --scale quantile --feature-weights relevance
    --n-models 5 -o linear --json
cwsvm.json      train {PU} --no-auto --method cwsvm -t poly -r 1 --scale standard -o cwsvm --json
bagging.json    train {PU} --no-auto --method bagging --n-unl 40 --n-models 5 -o bagging --json
negatives.json  train {PU} --no-auto -N spies/unl.svm --w-neg 2 --n-models 5 -o negatives --json
auto.json       train {PU} -o auto --json
predict.jsonl   predict model data/test.svm --votes --member-values --format jsonl
linear.jsonl    predict linear data/test.svm -T -4.602 --format jsonl
score.json      score predict.jsonl linear.jsonl --labels data/test.svm --top 5,20 --json
curve.csv       score predict.jsonl --labels data/test.svm -q --curve -
pu.json         score predict.jsonl --labels data/test.svm --pu --contamination-unl 0.2 --json
out-of-bag.json tune {PU} --n-models 5 --trials 6 --search random -o random --json
folds.json      tune {PU} -v 3 --n-models 5 --search grid --no-extend -c 0.1,1
    -g 0.1,1 --n-pos 10 --unl-per-pos 2 -o grid --json
methods.json    tune {PU} -v 2 --n-models 5 --trials 4 --search random --method bagging
    --no-extend -o methods --json
rank.json       rank {MORE} --no-auto --why 2 --top 9 --html page.html --json
rank-linear.json rank {PU} --no-auto -t linear --top 9 --json
list.json       rank {MORE} --no-auto --contamination-unl 0.2 --fdr 0.4 --json
calibrated.json rank {MORE} --no-auto -N data/unl.svm --fdr 0.99 --json
next.json       rank {PU} --no-auto --next 8 --json
audit.json      rank {MORE} --no-auto --audit --json
inspect.json    inspect model --json
check.json      check data/pos.svm data/unl.svm --json
"""
# keys whose values depend on the machine or on how the processor rounds
PASSING = ("sha256", "digest", "version", "fingerprint", "seconds", "resvm", "command")


def commands() -> dict[str, list[str]]:
    lines = COMMANDS.replace("\n    ", " ").strip().splitlines()
    return {words[0]: words[1:] for words in map(str.split, lines)}


def outputs() -> dict[str, str]:
    """Run all commands and return their outputs by file name."""
    folder = Path(mkdtemp())
    try:
        for name, arguments in commands().items():
            ran = run_resvm(*arguments, cwd=folder)
            assert ran.code == 0, (name, ran.err)
            (folder / name).write_bytes(ran.out)
        return {name: (folder / name).read_text() for name in commands()}
    finally:
        shutil.rmtree(folder)


def content(name: str, text: str) -> Any:
    if name.endswith(".json"):
        return _steady(json.loads(text))
    if name.endswith(".jsonl"):
        return [_steady(json.loads(line)) for line in text.splitlines()]
    first, *lines = text.splitlines()
    return [first, *([float(cell or "nan") for cell in line.split(",")] for line in lines)]


def _steady(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.9g}")  # the last digits depend on the processor
    if isinstance(value, dict):
        return {
            key: _steady(one)
            for key, one in value.items()
            if not any(word in key for word in PASSING)
        }
    return [_steady(one) for one in value] if isinstance(value, list) else value


def differences(found: Any, expected: Any, where: str = "") -> list[str]:
    """Describe how a value differs from the expected one, allowing for rounding of numbers."""
    if isinstance(found, dict) and isinstance(expected, dict):
        # keys may be added; tests/test_schemas.py checks them
        pairs = [(f"{where}.{key}", found.get(key), one) for key, one in expected.items()]
    elif isinstance(found, list) and isinstance(expected, list) and len(found) == len(expected):
        pairs = [
            (f"{where}[{at}]", one, other)
            for at, (one, other) in enumerate(zip(found, expected, strict=True))
        ]
    else:
        numbers = isinstance(found, (int, float)) and isinstance(expected, (int, float))
        same = (
            found == pytest.approx(expected, rel=1e-6, abs=1e-9, nan_ok=True)
            if numbers
            else found == expected
        )
        return [] if same else [f"{where}: {found!r} instead of {expected!r}"]
    return [told for name, one, other in pairs for told in differences(one, other, name)]


def test_commands_find_what_they_found_before():
    # a single test, because a second one might run all commands again in another process
    told = [
        line
        for name, text in outputs().items()
        for line in differences(
            content(name, text), content(name, (GOLDEN / name).read_text()), name
        )
    ]
    assert told == []


def test_every_number_is_compared():
    expected = {"a": [1.0, {"b": 0.25}], "c": "x", "seconds": 1}
    assert differences(expected, expected) == []
    assert differences({**expected, "a": [1.0, {"b": 0.2500010}]}, expected) == [
        ".a[1].b: 0.250001 instead of 0.25"
    ]
    assert differences({**expected, "a": [1.0]}, expected)
    assert differences({"a": expected["a"]}, expected)
    assert differences({**expected, "added": 1}, expected) == []


if __name__ == "__main__":
    os.makedirs(GOLDEN, exist_ok=True)
    for name, text in outputs().items():
        steady = content(name, text)
        if name.endswith(".json"):
            text = json.dumps(steady, indent=1) + "\n"
        elif name.endswith(".jsonl"):
            text = "".join(json.dumps(line) + "\n" for line in steady)
        (GOLDEN / name).write_text(text)

"""Files that once did harm, or came close, and strange values of options."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.hostile import attacks, oracle, seeds

CASES = sorted(oracle.KEPT.iterdir())
COMMANDS = ("predictions", "predictions, jsonl", "rows, checked", "table")


@pytest.fixture(scope="module")
def sound_files(tmp_path_factory):
    return seeds.make_files(tmp_path_factory.mktemp("sound") / "files")


@pytest.mark.parametrize("case", CASES, ids=lambda path: path.name)
def test_a_kept_file_is_read_or_refused(case, sound_files):
    for name, _, _, command in attacks.single_files(sound_files, case):
        if name in COMMANDS:
            assert oracle.fault_of(oracle.resvm(*command)) is None, command


# no value here is one with which a command would run for long
NUMBERS = st.one_of(
    st.integers(max_value=0),
    st.integers(min_value=2**40),
    st.integers(min_value=10**400, max_value=10**401),
    st.sampled_from(["nan", "inf", "-inf", "1e400", "1e-400", "9" * 5000]),
    st.sampled_from(["1_0", "", " ", "0x1", "\u0661", "1,,2"]),
    st.text(max_size=8).filter(lambda text: not text.strip().isdecimal() and "\0" not in text),
).map(str)
OPTIONS = {
    "train": ["--n-models", "--n-pos", "--n-unl", "--w-pos", "--c-pos", "-g", "-d", "-r", "-B",
              "-e", "--seed", "--scale", "-j", "-t",
              "--method", "--solver"],
    "rank": ["-k", "--contamination-pos", "--contamination-unl", "--seed"],
    "tune": ["-c", "--n-pos", "-g", "-v", "--trials", "--metric",
             "--search", "--n-models"],
    "score": ["-T", "-k", "--seed", "--contamination-pos", "--contamination-unl"],
    "simulate": ["--n-pos", "--n-unl", "--contamination-pos", "--test-pos", "--decimals", "--seed"],
    "predict": ["-T", "--format", "-j"],
    "check": ["--max"],
}  # fmt: skip


@settings(max_examples=2, derandomize=True)  # make hostile tries others
@given(
    values=st.lists(
        st.sampled_from([(c, o) for c, names in OPTIONS.items() for o in names]).flatmap(
            lambda pair: st.tuples(st.just(pair), NUMBERS)
        ),
        min_size=20,
        max_size=40,
    )
)
def test_a_strange_value_of_an_option_is_refused_or_used(values, problem, model, tmp_path_factory):
    place = tmp_path_factory.mktemp("options")
    pred, labels = place / "pred", place / "labels"
    pred.write_text("1 0.9\n-1 0.1\n")
    labels.write_text("1\n-1\n")
    data = ["-P", str(problem / "pos.svm"), "-U", str(problem / "unl.svm"), "-q"]
    rest = {
        "train": [*data, "--no-auto", "--n-models", "2", "-o"],
        "rank": [*data, "--no-auto", "--audit"],
        "tune": [*data, "--trials", "2", "-o"],
        "score": [str(pred), "--labels", str(labels), "--bootstrap", "0", "--pu"],
        "simulate": ["--synthetic", "-q", "-o"],
        "predict": [str(model), str(problem / "test.svm")],
        "check": [str(pred)],
    }
    for number, ((command, option), value) in enumerate(values):
        new = [str(place / str(number))] if rest[command][-1] == "-o" else []
        ran = oracle.resvm(command, *rest[command], *new, option, value)
        assert oracle.fault_of(ran) is None, (command, option, value)

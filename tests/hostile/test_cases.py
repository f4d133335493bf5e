"""Files that once did harm, or came close, before every reader; and strange values of options."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import ROOT
from tests.hostile import harm, readers
from tests.programs import run, script_command

CASES = sorted(harm.KEPT.iterdir())


@pytest.mark.parametrize("case", CASES, ids=lambda path: path.name)
def test_a_kept_file_is_read_or_refused(case, sound_files, tmp_path):
    for reader in readers.texts(sound_files).values():
        reader.read(case.read_bytes(), tmp_path)


@pytest.mark.parametrize("form", ["text", "tsv", "csv", "jsonl"])
def test_a_predictions_reader_that_is_wrong_is_noticed(form, tmp_path, monkeypatch):
    from dataclasses import replace

    from resvm_cli.files import predictions

    real = predictions.read_predictions

    def wrong(path, *, with_ids=False):
        answer = real(path, with_ids=with_ids)
        return replace(answer, values=answer.values + with_ids)

    monkeypatch.setattr(predictions, "read_predictions", wrong)
    rows = {
        "text": "1 0.5 # a\n",
        "tsv": "id\tdecision_value\na\t0.5\n",
        "csv": "id,decision_value\na,0.5\n",
        "jsonl": '{"id": "a", "decision_value": 0.5}\n',
    }
    with pytest.raises(AssertionError):
        readers.predictions(rows[form].encode(), tmp_path)


# no value here is one with which a command would run for long
NUMBERS = st.one_of(
    st.integers(max_value=0),
    st.integers(min_value=2**40),
    st.integers(min_value=10**400, max_value=10**401),
    st.sampled_from(
        ["nan", "inf", "-inf", "1e400", "1e-400", "1_0", "", " ", "0x1", "\u0661", "1,,2"]
    ),
    st.text(max_size=8).filter(lambda text: not text.strip().isdecimal() and "\0" not in text),
).map(str)
OPTIONS = {
    "train": ["--n-models", "--n-pos", "--n-unl", "--w-pos", "--c-pos", "-g", "-d", "-r", "-B",
              "-e", "-m", "--seed", "--features", "--scale", "-j", "--memory-mb", "-t",
              "--method", "--solver"],
    "rank": ["-k", "--contamination-pos", "--contamination-unl", "--seed", "--n-models"],
    "tune": ["-c", "--n-pos", "-g", "-v", "--trials", "--metric",
             "--search", "--n-models", "--max-unl"],
    "score": ["-T", "-k", "--seed", "--contamination-pos", "--contamination-unl"],
    "simulate": ["--n-pos", "--n-unl", "--contamination-pos", "--test-pos", "--decimals", "--seed",
                 "--labelling"],
    "predict": ["-T", "--format", "-j"],
    "check": ["--max"],
}  # fmt: skip
SCRIPT = """
import json, sys
from tests.hostile import forked
forked.warm_up()
for arguments in json.loads(sys.stdin.read()):
    ran = forked.resvm(*arguments)
    print(json.dumps([ran.code, ran.err[-300:], arguments]))
"""


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
        "train": [*data, "--n-models", "2", "-o"],
        "rank": [*data, "--audit"],
        "tune": [*data, "--oob", "--trials", "2", "-o"],
        "score": [str(pred), "--labels", str(labels), "--bootstrap", "0", "--pu"],
        "simulate": ["--synthetic", "-q", "-o"],
        "predict": [str(model), str(problem / "test.svm")],
        "check": [str(pred)],
    }
    commands = []
    for number, ((command, option), value) in enumerate(values):
        new = [str(place / str(number))] if rest[command][-1] == "-o" else []
        commands.append([command, *rest[command], *new, option, value])
    ran = run(script_command(SCRIPT), stdin=json.dumps(commands).encode(), cwd=ROOT)
    assert ran.code == 0, ran.err
    for line in ran.out.splitlines():
        code, err, arguments = json.loads(line)
        assert code in harm.CODES, (code, err, arguments)
        assert "Traceback" not in err, (err, arguments)

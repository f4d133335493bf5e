"""A training run interrupted at any point leaves the old model, the new model or none."""

from __future__ import annotations

import os
import signal

import pytest

from tests.conftest import assert_exit, hidden_files, train_arguments
from tests.programs import resvm_signaled_at, run, run_resvm


def training(problem, folder, *more):
    return [*train_arguments(problem), "--n-models", 5, "-o", folder, *more]


def test_the_next_run_removes_what_a_killed_run_left(problem, tmp_path):
    command = training(problem, tmp_path / "m")
    for function in ("mkdir", "fsync"):
        for _ in range(3):
            ran = run(resvm_signaled_at(function, signal.SIGKILL, *command))
            assert ran.code == -signal.SIGKILL
    assert len(hidden_files(tmp_path)) == 1  # each run removes what the previous one left behind
    assert_exit(run_resvm(*command), 0)
    assert os.listdir(tmp_path) == ["m"]


@pytest.mark.parametrize("function", ["mkdir", "open", "fsync"])
def test_a_signal_at_any_call_leaves_nothing(function, problem, tmp_path):
    ran = run(resvm_signaled_at(function, signal.SIGTERM, *training(problem, tmp_path / "m")))
    assert_exit(ran, 128 + signal.SIGTERM)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("more", [[], ["--json"]])
def test_a_signal_after_the_model_is_in_place_keeps_it(more, number, problem, tmp_path):
    command = training(problem, tmp_path / "m", *more)
    assert_exit(run(resvm_signaled_at("rename", number, *command)), 128 + number)
    assert os.listdir(tmp_path) == ["m"]

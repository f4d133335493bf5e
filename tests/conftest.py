"""Fixtures: small data sets, small models and the real command line."""

from __future__ import annotations

import gc
import json
import os
import re
import signal
import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from threadpoolctl import threadpool_limits

from resvm_cli.data.svmlight import Block, format_block
from resvm_cli.parameters import Params
from resvm_cli.rows import Rows
from resvm_cli.svm import libsvm
from tests.forks import spare_the_disk
from tests.programs import Ran, run_resvm

spare_the_disk()
# Background jobs of a shell ignore Ctrl-C, and programs started by tests would inherit this.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
# One test runs on each core, so a second thread would only spin.
threadpool_limits(1)
libsvm.use_threads(1)
settings.register_profile("untimed", deadline=None)  # the machine may be busy
settings.register_profile("quick", deadline=None, max_examples=10)
settings.load_profile("untimed")

# These tests start no programs but take seconds; only make test runs them.
THOROUGH = (
    *("api/test_base.py", "api/test_estimators.py", "api/test_functions.py"),
    *("data/test_numbers.py", "ensemble/test_expected_performance.py", "ensemble/test_train.py"),
    *("metrics/test_evaluation.py", "tuning/test_committee.py"),
)
STARTS_OR_MEASURES = re.compile(
    r"^from (tests\.programs import (?!PATIENCE_SECONDS$)|experiments\.(speed|quality)\b)",
    re.MULTILINE,
)

ROOT = Path(__file__).parent.parent
SAMPLE = ROOT / "sample_data"


@cache
def is_thorough(path: Path) -> bool:
    """Whether a module has no quick tests."""
    return str(path).endswith(THOROUGH) or STARTS_OR_MEASURES.search(path.read_text()) is not None


def only_quick(config: pytest.Config) -> bool:
    return str(config.option.markexpr).startswith("quick")


def pytest_configure(config: pytest.Config) -> None:
    if only_quick(config):
        settings.load_profile("quick")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Skip modules without quick tests: importing one takes longer than many tests."""
    if only_quick(config) and collection_path.suffix == ".py" and is_thorough(collection_path):
        return True
    return None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests as quick unless they start programs, measure something or are thorough."""
    for item in items:
        starts_program = "resvm" in getattr(item, "fixturenames", ())
        thorough = item.get_closest_marker("thorough") or is_thorough(item.path)
        if not thorough and not starts_program:
            item.add_marker("quick")


def pytest_collection_finish() -> None:
    """Exclude imported modules from garbage collection: each full collection took 0.3 s."""
    gc.collect()
    gc.freeze()


def make_block(
    features: np.ndarray,
    labels: np.ndarray | None = None,
    comments: list[str] | None = None,
    first_index: int = 1,
) -> Block:
    written = np.zeros(len(features)) if labels is None else labels
    return Block.from_rows(Rows.from_dense(features, first_index), written, comments)


def write_svm(path: Path, features: np.ndarray, labels: np.ndarray | None = None, **more) -> Path:
    path.write_bytes(format_block(make_block(features, labels, **more)))
    return path


@pytest.fixture(scope="session")
def resvm() -> Callable[..., Ran]:
    return run_resvm


@pytest.fixture(scope="session")
def problem(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with pos.svm, unl.svm and test.svm: two overlapping clouds in 5 features."""
    folder = tmp_path_factory.mktemp("problem")
    rng = np.random.default_rng(7)

    def cloud(size: int, centre: float) -> np.ndarray:
        return (rng.standard_normal((size, 5)) + centre) * (rng.random((size, 5)) < 0.8)

    write_svm(folder / "pos.svm", cloud(30, 1.0))
    write_svm(folder / "unl.svm", np.concatenate([cloud(20, 1.0), cloud(80, -1.0)]))
    write_svm(
        folder / "test.svm",
        np.concatenate([cloud(100, 1.0), cloud(200, -1.0)]),
        np.repeat([1, -1], [100, 200]),
        comments=[f"row {number}" for number in range(300)],
    )
    return folder


@pytest.fixture(scope="session")
def model(problem: Path, resvm: Callable[..., Ran]) -> Path:
    """A small trained ensemble; tests must not write to it."""
    path = problem / "model"
    ran = resvm(
        "train", "-P", problem / "pos.svm", "-U", problem / "unl.svm", "-o", path, "--n-models", 9
    )
    assert ran.code == 0, ran.err
    return path


def data_arguments(folder: Path) -> list[object]:
    return ["-P", folder / "pos.svm", "-U", folder / "unl.svm", "-q"]


def train_arguments(folder: Path) -> list[object]:
    """Return the command that trains with fixed defaults."""
    return ["train", "--no-auto", *data_arguments(folder)]


def setting(params: Params, weight: float = 1.0, scale: str | None = None) -> Params:
    """Return parameters as one of the settings that a model pools."""
    return replace(params, weight=weight, scale=scale)


FOLDER = tempfile.TemporaryDirectory()


@cache
def few_members(n_models: int, method: str = "resvm", decision: str = "mean", **more: Any) -> Path:
    """Return a file of parameters with which ``rank`` trains few members."""
    setting = {"weight": 1, "kernel": "rbf", "scale": "none", "feature_weights": "none"}
    content = {
        "kind": "resvm-params",
        "format": 1,
        "method": method,
        "settings": [{**setting, "n_models": n_models, **more}],
        "decision": decision,
    }
    path = Path(tempfile.mkdtemp(dir=FOLDER.name)) / "best.json"
    path.write_text(json.dumps(content))
    return path


def assert_exit(ran: Ran, code: int, *words: str) -> None:
    """Check the exit code, the words of the message, and that there is no traceback."""
    assert ran.code == code, (ran.code, ran.err)
    assert "Traceback" not in ran.err
    assert all(word in ran.err for word in words), ran.err


def hidden_files(folder: Path) -> list[str]:
    """Return the names of temporary files and locks, which begin with a dot."""
    return sorted(name for name in os.listdir(folder) if name.startswith("."))

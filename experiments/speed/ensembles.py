"""A set of bags, with the inputs that each program needs and the members' expected values."""

from __future__ import annotations

import json
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np

from experiments.speed.bench import Bench
from experiments.speed.data import Problem
from experiments.speed.measure import Steps, run
from resvm_cli.data.inputs import read_file
from resvm_cli.data.svmlight import Block, format_block
from resvm_cli.ensemble.plan import DEFAULT_TOLERANCE, bag_of, resolve_defaults
from resvm_cli.parameters import Params

PROBE_ROWS = 500


class Ensemble:
    """An ensemble with one kernel on one P and U, to be trained by resvm and by its peers."""

    def __init__(
        self,
        bench: Bench,
        problem: Problem,
        kernel: Literal["linear", "rbf"],
        n_models: int,
    ) -> None:
        self.bench = bench
        self.problem = problem
        self.kernel = kernel
        self.n_models = n_models
        self._n_aside = 0
        self.title = f"{n_models} {kernel} members of {problem.scenario.bag}"
        self.folder = bench.folder / f"{problem.scenario.data}.{kernel}.{n_models}"
        self.folder.mkdir(exist_ok=True)

    def resvm_train(self, target: Path, solver: str, threads: int | None) -> Steps:
        """Return the resvm command that trains these members."""
        sizes = self.problem.scenario
        return self.bench.resvm(
            *("train", "--no-auto", "-q"),
            *("-P", self.problem.positives, "-U", self.problem.unlabeled),
            *("-t", self.kernel, "--n-models", self.n_models, "--solver", solver),
            *("-c", sizes.c_unl),
            *("--n-pos", sizes.n_pos, "--n-unl", sizes.n_unl, "-o", target),
            threads=threads,
        )

    def model(self, solver: str = "libsvm") -> Path:
        """Return the model directory of resvm, trained on first use."""
        path = self.folder / f"resvm.{solver}"
        if not path.exists():
            run(self.resvm_train(path, solver, None))
        return path

    def unfinished(self, solver: str) -> int:
        """Return how many members stopped at the solver's iteration limit."""
        return self._manifest(solver)["unconverged"]

    def _manifest(self, solver: str) -> dict[str, Any]:
        return json.loads((self.model(solver) / "manifest.json").read_text())

    @cached_property
    def bags(self) -> Path:
        """A file for the peers with the bags, penalties and kernel that resvm uses."""
        path = self.folder / "bags.npz"
        manifest = self._manifest("libsvm")
        sizes, group = self.problem.scenario, manifest["groups"][0]
        parameters = group["parameters"]
        plan = resolve_defaults(
            Params(
                kernel=self.kernel,
                gamma=group["kernel"].get("gamma", "auto"),
                n_models=self.n_models,
                n_pos=sizes.n_pos,
                n_unl=sizes.n_unl,
                w_pos=parameters["w_pos"],
                c_unl=sizes.c_unl,
            ),
            sizes.rows_pos,
            sizes.rows_unl,
            self.problem.n_features,
            lambda: 1.0,
        )
        bags = [bag_of(plan, member) for member in range(self.n_models)]
        positive, unlabeled = (np.array(part) for part in zip(*bags, strict=True))
        norms = [
            np.sqrt(read_file(str(name)).rows.squared_norms())
            for name in (self.problem.positives, self.problem.unlabeled)
        ]
        both = np.concatenate([norms[0][positive], norms[1][unlabeled]], axis=1)
        np.savez(
            path,
            positive=positive,
            unlabeled=unlabeled,
            bias=both.mean(axis=1),  # the value that resvm passes to LIBLINEAR
            kernel=self.kernel,
            gamma=plan.kernel.gamma,
            c_pos=parameters["c_pos"],
            c_unl=parameters["c_unl"],
            tolerance=parameters["tolerance"],
            linear_tolerance=DEFAULT_TOLERANCE["liblinear"],
            n_features=self.problem.n_features,
        )
        return path

    @cached_property
    def bag_files(self) -> list[Path]:
        """One file per bag, for programs that can only train on files."""
        folder = self.folder / "bags"
        folder.mkdir(exist_ok=True)
        positives = read_file(str(self.problem.positives)).rows
        unlabeled = read_file(str(self.problem.unlabeled)).rows
        paths = []
        with np.load(self.bags) as bags:
            labels = np.repeat([1, -1], [bags["positive"].shape[1], bags["unlabeled"].shape[1]])
            for number, (pos, unl) in enumerate(
                zip(bags["positive"], bags["unlabeled"], strict=True)
            ):
                rows = positives.concatenate([positives.take(pos), unlabeled.take(unl)])
                paths.append(folder / f"{number:05d}.svm")
                paths[-1].write_bytes(format_block(Block.from_rows(rows, labels)))
        return paths

    @cached_property
    def parameters(self) -> dict[str, np.ndarray]:
        """The contents of the file with the bags."""
        with np.load(self.bags) as bags:
            return dict(bags)

    @cached_property
    def probe(self) -> Path:
        """A few rows on which the values of every member are compared."""
        n_rows = min(PROBE_ROWS, self.problem.scenario.test_rows)
        return self.bench.data.head(self.problem.test, n_rows)

    def reference(self, rows: Path, solver: str) -> np.ndarray:
        """Return the members' decision values from resvm (rows x members)."""
        path = self.folder / f"{rows.name}.{solver}.npy"
        if not path.exists():
            text = path.with_suffix(".txt")
            run(
                self.bench.resvm(
                    "predict", "-q", "--votes", "--member-values", self.model(solver), rows
                ),
                stdout=text,
            )
            np.save(path, np.loadtxt(text, ndmin=2)[:, 3:])
            text.unlink()
        return np.load(path)

    def set_aside(self, path: Path) -> None:
        """Move the output of an earlier run aside instead of deleting it.

        ext4 creates files slowly right after many were deleted, which would distort the times.
        """
        if path.exists():
            self._n_aside += 1
            path.rename(path.with_name(f"{path.name}.{self._n_aside}.old"))

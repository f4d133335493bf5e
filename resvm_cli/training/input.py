"""Where P and U come from, as the user said it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from resvm_cli.errors import CommandLineError
from resvm_cli.files.streams import STDIN, name_of, same_source
from resvm_cli.model.scaling import ScaleChoice
from resvm_cli.parameters import KernelName
from resvm_cli.svm.kernels import Kernel

QID = "qid"


@dataclass(frozen=True)
class TrainingInput:
    """Where P and U come from, two files or one labelled file, and how they are to be read."""

    positives: str | None = None
    unlabeled: str | None = None
    data: str | None = None
    positive_label: float | None = None
    zero_based: bool = False
    features: int | None = None
    scale: ScaleChoice | None = None
    unchecked: bool = False
    groups: str | None = None  # a file of names, one a row, or "qid" for those in the data
    weights: str | None = None  # a file: how sure each row of P is
    positive_ids: str | None = None  # with data: a file of the ids of P, instead of a label
    ids_file: str | None = None  # the ids of all rows; None: their comments
    allow_missing: bool = False  # ids of P that no row has
    keep_ids: bool = False
    precomputed: bool = False  # rows are kernel values, numbered by index 0

    def check(self) -> None:
        """Refuse what is missing or contradictory, before any file is read."""
        if self.features is not None and self.features < 1:
            raise CommandLineError(f"--features is {self.features}; it must be at least 1")
        if self.unchecked:
            self._check_unchecked()
        if self.data is not None:
            if self.positives is not None or self.unlabeled is not None:
                raise CommandLineError("--data and -P/-U exclude each other")
            if self.positive_label is None and self.positive_ids is None:
                raise CommandLineError(
                    "--data needs --positive-label or --positive-ids",
                    "say which rows are positive: --data train.svm --positive-label 1",
                )
            if self.positive_label is not None and self.positive_ids is not None:
                raise CommandLineError("--positive-label and --positive-ids exclude each other")
            self._check_ids()
            return
        if self.positive_label is not None:
            raise CommandLineError("--positive-label goes with --data")
        if self.positive_ids is not None:
            raise CommandLineError(
                "--positive-ids goes with --data",
                "rows of known positives in a file of their own go to -P",
            )
        if self.positives is None or self.unlabeled is None:
            missing = "-P (known positives)" if self.positives is None else "-U (unlabeled)"
            raise CommandLineError(
                f"{missing} is missing",
                "resvm train -P pos.svm -U unl.svm, or --data train.svm --positive-label 1",
            )
        if same_source(self.positives, self.unlabeled):
            raise CommandLineError(
                f"-P and -U are the same: {name_of(self.positives)}",
                "known positives and unlabeled rows come from two files",
            )
        self._check_ids()

    def for_kernel(self, name: KernelName) -> TrainingInput:
        """As rows of this kernel are read; scaling that was left open is none where it harms."""
        kernel = Kernel(name)
        if kernel.is_precomputed and self.scale not in (None, "auto"):
            raise CommandLineError(
                f"--scale {self.scale} and -t precomputed exclude each other: rows have kernel"
                " values, and no features to scale",
                "leave --scale out; scale before the kernel is computed",
            )
        scale = None if self.scale == "auto" and not kernel.takes_scaling else self.scale
        return replace(
            self,
            scale=scale,
            zero_based=self.zero_based or kernel.is_precomputed,
            precomputed=kernel.is_precomputed,
        )

    def _check_ids(self) -> None:
        if self.allow_missing and self.positive_ids is None:
            raise CommandLineError("--allow-missing goes with --positive-ids")
        if self.ids_file is not None and self.positive_ids is None and not self.keep_ids:
            raise CommandLineError("--ids-file goes with --positive-ids")
        paths = (
            *(self.positives, self.unlabeled, self.data),
            *(self.positive_ids, self.ids_file, self.weights),
        )
        if [name_of(path) for path in paths if path].count(name_of(STDIN)) > 1:
            raise CommandLineError("only one input can be stdin")

    def _check_unchecked(self) -> None:
        why = "it does not look into the rows of U that are not drawn"
        if self.data is not None:
            raise CommandLineError(f"--no-check goes with -P and -U: {why}")
        if self.features is None:
            raise CommandLineError(f"--no-check needs --features N: {why}")
        if self.scale is not None:
            raise CommandLineError(f"--no-check needs --scale none: {why}")

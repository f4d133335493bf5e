"""The input files of P and U, and how to read them."""

from __future__ import annotations

import shlex
from dataclasses import field, replace

from resvm_cli.errors import ParameterError
from resvm_cli.files.streams import STDIN, name_of, same_source
from resvm_cli.parameters import KernelName, ScaleChoice
from resvm_cli.records import dataclass
from resvm_cli.svm.kernels import Kernel
from resvm_cli.tables.encoding import FeatureMap, TableReading

QID = "qid"


@dataclass(frozen=True)
class TrainingInput:
    """The files of P and U (two files, or one labeled file) and how to read them."""

    positives: str | None = None
    unlabeled: str | None = None
    data: str | None = None
    positive_label: float | None = None
    zero_based: bool = False
    features: int | None = None
    scale: ScaleChoice | None = None
    unchecked: bool = False
    groups: str | None = None  # a file with one group name per row, or "qid" for the data's own
    weights: str | None = None  # a file with the confidence in each row of P
    positive_ids: str | None = None  # with data: a file of the ids in P, instead of a label
    known_negatives: str | None = None  # a file of known negatives
    negative_label: float | None = None  # with data: the label of known negatives
    negative_ids: str | None = None  # with data: a file of their ids, instead of a label
    ids_file: str | None = None  # a file of all row ids; None: ids are trailing comments
    allow_missing: bool = False  # accept listed ids that no row has
    drop_repeated: bool = False  # drop rows from U that are also in P
    keep_ids: bool = False
    precomputed: bool = False  # rows are kernel values; index 0 holds their serial number
    table: TableReading = field(default_factory=TableReading)  # how to read tables
    encoding: FeatureMap | None = None  # of a stored model: how columns become features

    def check(self) -> None:
        """Reject missing or contradictory inputs before any file is read."""
        if self.features is not None and self.features < 1:
            raise ParameterError("{features} must be at least 1, got {value}", value=self.features)
        if self.unchecked:
            self._check_unchecked()
        self.table.check()
        self._check_negatives()
        if self.data is not None:
            if self.positives is not None or self.unlabeled is not None:
                raise ParameterError("give either {data}, or {positives} and {unlabeled}, not both")
            if not self.has_label and self.positive_ids is None:
                if self.table.roles.label is not None:
                    raise ParameterError(
                        "{label_column} needs {positive_label}",
                        "say which labels are positive: {label_column:{column}}"
                        " {positive_label:LABEL}",
                        column=shlex.quote(self.table.roles.label),
                    )
                raise ParameterError(
                    "{data} needs {positive_label} or {positive_ids}",
                    "say which rows are positive: {data:train.svm} {positive_label:1}",
                )
            if self.has_label and self.positive_ids is not None:
                raise ParameterError("give either {positive_label} or {positive_ids}, not both")
            self._check_ids()
            return
        if self.has_label:
            raise ParameterError("{positive_label} requires {data}")
        if self.positive_ids is not None:
            raise ParameterError(
                "{positive_ids} requires {data}",
                "if a file contains only known positives, give it as {positives}",
            )
        if self.positives is None or self.unlabeled is None:
            missing = "{positives} (known positives)"
            if self.positives is not None:
                missing = "{unlabeled} (unlabeled rows)"
            raise ParameterError(
                missing + " is missing",
                "give {positives:pos.svm} {unlabeled:unl.svm}, or {data:train.svm}"
                " {positive_label:1}",
            )
        if same_source(self.positives, self.unlabeled):
            raise ParameterError(
                "{positives} and {unlabeled} are the same file: {name}",
                "known positives and unlabeled rows must be in two different files",
                name=name_of(self.positives),
            )
        self._check_ids()

    @property
    def has_label(self) -> bool:
        """Whether a label marks the known positives; only a table can have text labels."""
        return self.positive_label is not None or bool(self.table.roles.positive_labels)

    @property
    def has_negative_label(self) -> bool:
        """Whether a label marks the known negatives."""
        return self.negative_label is not None or bool(self.table.roles.negative_labels)

    @property
    def has_negatives(self) -> bool:
        listed = self.known_negatives is not None or self.negative_ids is not None
        return listed or self.has_negative_label

    def _check_negatives(self) -> None:
        """Reject known negatives that are given twice or by the wrong parameter."""
        roles = self.table.roles
        if self.data is None:
            if self.has_negative_label or self.negative_ids is not None:
                name = "negative_label" if self.has_negative_label else "negative_ids"
                raise ParameterError(
                    "{" + name + "} requires {data}",
                    "if a file contains only known negatives, give it as {known_negatives}",
                )
            return
        if self.known_negatives is not None:
            raise ParameterError(
                "{known_negatives} requires {positives} and {unlabeled}",
                "with {data}, give {negative_label} or {negative_ids}",
            )
        if self.has_negative_label and self.negative_ids is not None:
            raise ParameterError("give either {negative_label} or {negative_ids}, not both")
        if self.has_negative_label and not self.has_label:
            raise ParameterError("{negative_label} needs {positive_label}")
        same = self.positive_label is not None and self.positive_label == self.negative_label
        if same or set(roles.positive_labels) & set(roles.negative_labels):
            raise ParameterError("{positive_label} and {negative_label} are the same label")

    def for_kernel(self, name: KernelName) -> TrainingInput:
        """Return the input for this kernel, without automatic scaling if that would do harm."""
        kernel = Kernel(name)
        if kernel.is_precomputed and self.scale not in (None, "auto"):
            raise ParameterError(
                "{scale:" + self.scale + "} does not apply to {kernel:precomputed}: rows hold"
                " kernel values, not features",
                "leave {scale} out; scale the features before computing the kernel",
            )
        scale = None if self.scale == "auto" and not kernel.takes_scaling else self.scale
        return replace(
            self,
            scale=scale,
            zero_based=self.zero_based or kernel.is_precomputed,
            precomputed=kernel.is_precomputed,
        )

    def _check_ids(self) -> None:
        listed = self.positive_ids is not None or self.negative_ids is not None
        if self.allow_missing and not listed:
            raise ParameterError("{allow_missing:True} requires {positive_ids}")
        uses_ids = listed or self.keep_ids or self.drop_repeated
        if self.ids_file is not None and not uses_ids:
            raise ParameterError("{ids_file} requires {positive_ids}")
        paths = (
            *(self.positives, self.unlabeled, self.data),
            *(self.positive_ids, self.ids_file, self.weights),
            *(self.known_negatives, self.negative_ids),
        )
        if [name_of(path) for path in paths if path].count(name_of(STDIN)) > 1:
            raise ParameterError("only one input can be stdin")

    def _check_unchecked(self) -> None:
        for holds, problem in (
            (self.data is not None, "requires {positives} and {unlabeled}"),
            (self.has_negatives, "and {known_negatives} cannot be combined"),
            (self.drop_repeated, "and {drop_repeated:True} cannot be combined"),
            (self.features is None, "needs {features}"),
            (self.scale is not None, "needs {scale:none}"),
        ):
            if holds:
                raise ParameterError(
                    "{unchecked:True} " + problem + ": rows of U that are not drawn are never read"
                )

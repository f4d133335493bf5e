"""Which files contain P, U and known negatives, and how to read them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field, replace

from resvm_cli.data.encoding import ColumnRoles, FeatureMap
from resvm_cli.data.streams import STDIN, name_of, same_source
from resvm_cli.errors import ParameterError
from resvm_cli.parameters import KernelName, ScaleChoice
from resvm_cli.records import dataclass
from resvm_cli.svm import kernels


@dataclass(frozen=True)
class TrainingInput:
    """The files of P and U (two files, or one labeled file) and how to read them."""

    positives: str | None = None
    unlabeled: str | None = None
    data: str | None = None
    positive_label: float | None = None
    zero_based: bool = False
    features: int | None = None  # of a stored model; None: the largest index
    scale: ScaleChoice | None = None
    groups: str | None = None  # a file with one group name per row, or "qid"
    weights: str | None = None  # a file with the confidence in each row of P
    positive_ids: str | None = None  # with data: a file of the ids of P, instead of a label
    known_negatives: str | None = None  # a file of known negatives; with data: of their ids
    negative_label: float | None = None  # with data: the label of known negatives
    ids_file: str | None = None  # a file of all row ids; None: ids are trailing comments
    keep_ids: bool = False
    precomputed: bool = False  # rows are kernel values; index 0 holds their serial number
    table: ColumnRoles = field(default_factory=ColumnRoles)  # how to read tables
    encoding: FeatureMap | None = None  # of a stored model: how columns become features

    def check(self) -> None:
        """Reject missing or contradictory inputs before any file is read."""
        for is_broken, problem, advice in self._rules():
            if is_broken:
                raise ParameterError(problem, advice or None)

    def _rules(self) -> Iterator[tuple[bool, str, str]]:
        """Yield for each rule whether it is broken, the error message, and advice, if any."""
        yield from self._rules_for_two_files() if self.data is None else self._rules_for_data()
        listed = self.positive_ids is not None or self.negative_ids is not None
        unused = self.ids_file is not None and not (listed or self.keep_ids)
        yield unused, "`ids_file` requires `positive_ids`", ""
        paths = (
            *(self.positives, self.unlabeled, self.data),
            *(self.positive_ids, self.ids_file, self.weights),
            self.known_negatives,
        )
        n_stdin = [name_of(path) for path in paths if path].count(name_of(STDIN))
        yield n_stdin > 1, "only one input can be stdin", ""

    def _rules_for_data(self) -> Iterator[tuple[bool, str, str]]:
        """Yield the rules for one labeled file."""
        roles = self.table
        alone = self.has_negative_label and not self.has_label
        yield alone, "`known_negatives='label=LABEL'` needs `positive_label`", ""
        same = self.positive_label is not None and self.positive_label == self.negative_label
        same = same or bool(set(roles.positive_labels) & set(roles.negative_labels))
        yield same, "`positive_label` and `known_negatives` are the same label", ""
        both = self.positives is not None or self.unlabeled is not None
        yield both, "give either `data`, or `positives` and `unlabeled`, not both", ""
        unknown = not self.has_label and self.positive_ids is None
        advice = f"say which labels are positive: `label_column={roles.label!r}`"
        advice += " `positive_label='LABEL'`"
        yield unknown and roles.label is not None, "`label_column` needs `positive_label`", advice
        advice = "say which rows are positive: `data='train.svm'` `positive_label=1`"
        yield unknown, "`data` needs `positive_label` or `positive_ids`", advice
        both = self.has_label and self.positive_ids is not None
        yield both, "give either `positive_label` or `positive_ids`, not both", ""

    def _rules_for_two_files(self) -> Iterator[tuple[bool, str, str]]:
        """Yield the rules for a file of P and a file of U."""
        advice = "if a file contains only known negatives, give it as `known_negatives='FILE'`"
        yield self.has_negative_label, "`known_negatives='label=LABEL'` requires `data`", advice
        yield self.has_label, "`positive_label` requires `data`", ""
        advice = "if a file contains only known positives, give it as `positives`"
        yield self.positive_ids is not None, "`positive_ids` requires `data`", advice
        advice = "give `positives='pos.svm'` `unlabeled='unl.svm'`,"
        advice += " or `data='train.svm'` `positive_label=1`"
        yield self.positives is None, "`positives` (known positives) is missing", advice
        yield self.unlabeled is None, "`unlabeled` (unlabeled rows) is missing", advice
        same = same_source(self.positives or "", self.unlabeled or "")
        advice = "known positives and unlabeled rows must be in two different files"
        name = name_of(self.positives or "")
        yield same, f"`positives` and `unlabeled` are the same file: {name}", advice

    @property
    def has_label(self) -> bool:
        """Whether a label marks the known positives; only a table can have text labels."""
        return self.positive_label is not None or bool(self.table.positive_labels)

    @property
    def has_negative_label(self) -> bool:
        """Whether a label marks the known negatives."""
        return self.negative_label is not None or bool(self.table.negative_labels)

    @property
    def negative_ids(self) -> str | None:
        """The file of the ids of known negatives, if any."""
        return None if self.data is None else self.known_negatives

    @property
    def negative_rows(self) -> str | None:
        """The file of the rows of known negatives, if any."""
        return self.known_negatives if self.data is None else None

    def for_kernel(self, name: KernelName) -> TrainingInput:
        """Return the input for this kernel, without automatic scaling if it would do harm."""
        kernel = kernels.Kernel(name)
        if kernel.is_precomputed and self.scale not in (None, "auto"):
            raise ParameterError(
                f"`scale={self.scale!r}` does not apply to `kernel='precomputed'`: rows contain"
                " kernel values, not features",
                "leave `scale` out; scale the features before computing the kernel",
            )
        scale = None if self.scale == "auto" and not kernel.takes_scaling else self.scale
        counts = self.table.counts or (kernel.uses_minimum and self.table.smiles is not None)
        return replace(
            self,
            table=replace(self.table, counts=counts),
            scale=scale,
            zero_based=self.zero_based or kernel.is_precomputed,
            precomputed=kernel.is_precomputed,
        )

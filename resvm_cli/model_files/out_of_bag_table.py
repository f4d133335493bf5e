"""The table of out-of-bag values for rows of P and U that is stored with a model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from resvm_cli.errors import Message, ModelError
from resvm_cli.model_files.members import TRAIN_AGAIN, read_verified
from resvm_cli.parameters import MethodName, RuleName
from resvm_cli.records import dataclass
from resvm_cli.rows import FloatArray, IntArray

if TYPE_CHECKING:
    import numpy.typing as npt

    from resvm_cli.metrics.class_mixture import ClassMixture

OUT_OF_BAG = "out_of_bag.tsv"
HEADER = "set\trow\tdecision_value\tmean_value\tmembers"
HEADER_1 = "row\tdecision_value\tmembers"  # format 1 has only known positives, and no means
MAX_DIGITS = 18


@dataclass(frozen=True, eq=False)
class OutOfBag:
    """Rows, numbered from 1, and their decision values from members that have not seen them."""

    positive: npt.NDArray[np.bool_]  # true for P
    rows: IntArray
    values: FloatArray  # decision values under the votes rule
    means: FloatArray | None  # None in format 1
    members: IntArray  # the number of such members
    negative: npt.NDArray[np.bool_]  # true for known negatives; the remaining rows are in U

    def negatives_by(self, rule: RuleName) -> FloatArray:
        """Return the decision values of known negatives under this rule."""
        values = self.values if rule == "votes" else self.means
        return np.zeros(0) if values is None else values[self.negative]

    @property
    def unlabeled(self) -> npt.NDArray[np.bool_]:
        return ~(self.positive | self.negative)

    def by(self, rule: RuleName) -> tuple[FloatArray, FloatArray] | None:
        """Return the decision values of P and U under this rule; None if they were not stored."""
        values = self.values if rule == "votes" else self.means
        return None if values is None else (values[self.positive], values[self.unlabeled])

    def format(self) -> bytes:
        """Format as text, one line per row, with numbers that can be read back exactly."""
        assert self.means is not None
        columns = zip(
            np.where(self.positive, "P", np.where(self.negative, "N", "U")).tolist(),
            self.rows.tolist(),
            self.values.tolist(),
            self.means.tolist(),
            self.members.tolist(),
            strict=True,
        )
        lines = [
            f"{name}\t{row}\t{value!r}\t{mean!r}\t{members}"
            for name, row, value, mean, members in columns
        ]
        return ("\n".join([HEADER, *lines]) + "\n").encode("ascii")

    @classmethod
    def parse(cls, text: bytes) -> OutOfBag:
        """Parse the output of ``format``; raise ValueError for anything else."""
        lines = text.decode("ascii").split("\n")
        if lines[0] not in (HEADER, HEADER_1) or lines[-1]:
            raise ValueError("not a table of out-of-bag values")
        fields = [line.split("\t") for line in lines[1:-1]]
        if lines[0] == HEADER_1 and all(len(row) == 3 for row in fields):
            fields = [["P", row, value, "0", members] for row, value, members in fields]
        if any(len(row) != 5 or row[0] not in ("P", "U", "N") for row in fields):
            raise ValueError("expected five columns")
        numbers = np.array([[float(row[2]), float(row[3])] for row in fields]).reshape(-1, 2)
        if not np.isfinite(numbers).all():
            raise ValueError("a value is not finite")
        return cls(
            np.array([row[0] == "P" for row in fields], bool),
            np.array([_count(row[1]) for row in fields], np.int64),
            numbers[:, 0],
            numbers[:, 1] if lines[0] == HEADER else None,
            np.array([_count(row[4]) for row in fields], np.int64),
            np.array([row[0] == "N" for row in fields], bool),
        )


def load_out_of_bag(path: str, manifest: dict[str, Any], *, of_positives: bool = True) -> OutOfBag:
    """Load the out-of-bag values; with ``of_positives``, some must belong to known positives."""
    entry = manifest.get("out_of_bag")
    if entry is None:
        why, hint = _why_missing(manifest["method"])
        raise ModelError(
            f"{path}: contains no out-of-bag values for known positives: {why}",
            Message(hint + ", or set {threshold} to a number"),
        )
    name = f"{path}/{OUT_OF_BAG}"
    text = read_verified(name, entry)
    try:
        table = OutOfBag.parse(text)
    except ValueError:
        raise ModelError(f"{name}: damaged", TRAIN_AGAIN) from None
    if of_positives and not table.positive.any():
        raise ModelError(
            f"{path}: every member was trained on every known positive, so none is out of bag",
            Message("train with a smaller {n_pos}, or set {threshold} to a number"),
        )
    return table


def _why_missing(method: MethodName) -> tuple[str, str]:
    """Return why a model has no out-of-bag values, and what to do about it."""
    if method == "resvm":
        return "an older version of resvm wrote it", "train it again with the same seed"
    return f"{method} trains every member on all of P", "use {method:resvm}"


def fitted_classes(
    table: OutOfBag | None,
    method: MethodName,
    rule: RuleName,
    contamination_pos: float | None,
    contamination_unl: float | None,
) -> ClassMixture | None:
    """Fit a class mixture to a model's out-of-bag values; return None if there are too few."""
    values = None if table is None else table.by(rule)
    if table is None or values is None:
        why, hint = _why_missing(method)
        raise ModelError(
            f"the model cannot estimate probabilities because it has no out-of-bag values: {why}",
            Message(hint),
        )
    from resvm_cli.metrics.class_mixture import ClassMixture  # imports scipy, which is slow

    fractions = contamination_pos, contamination_unl
    sampled = not table.negative.any()
    return ClassMixture.fit(*values, *fractions, n_replicates=0, sampled=sampled)


def unknown_probability(classes: ClassMixture | None) -> ModelError | None:
    """Return an error that explains why probabilities are unknown; None if they are known."""
    if classes is None:
        return ModelError(
            "too few rows of P or U are out of bag to estimate probabilities",
            Message("train on more rows, or with smaller bags ({n_pos}, {n_unl})"),
        )
    if classes.claims:
        return None
    return ModelError(
        f"probabilities cannot be estimated: {classes.why_unknown}",
        Message("give {contamination_unl}, the fraction of U that is positive"),
    )


def _count(text: str) -> int:
    if not text.isdigit() or len(text) > MAX_DIGITS:
        raise ValueError("not a count")
    return int(text)

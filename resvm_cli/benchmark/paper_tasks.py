"""The learning tasks of the paper: which rows they are made of, and the sizes of its table 1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

SettingName: TypeAlias = Literal["supervised", "pu", "semi-supervised"]
SETTING_NAMES: tuple[SettingName, ...] = get_args(SettingName)
OWN = "own"  # the setting of a user's own data: contamination is as it was asked for
# On tasks with linear members class-weighted SVM also as the published figures have it: LIBLINEAR
# without a bias.
PUBLISHED_CWSVM = "cwsvm-published"
PAGE = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets"


@dataclass(frozen=True)
class DataFile:
    """A file as LIBSVM's page of data sets has it."""

    name: str
    folder: Literal["binary", "multiclass"]

    @property
    def address(self) -> str:
        """Where it can be fetched."""
        return f"{PAGE}/{self.folder}/{self.name}.bz2"


@dataclass(frozen=True)
class LearningTask:
    """Rows of one class against all others, and how many are drawn of them."""

    name: str
    n_pos: int
    n_unl: int
    contamination: float  # of U, or of P and U, where the setting has any
    file: DataFile | None = None  # None: the synthetic problem
    test_file: DataFile | None = None
    positive_label: float = 1.0
    # Where the test rows are drawn from the same file; None: all rows of the test file.
    test_pos: int | None = None
    test_neg: int | None = None
    # Of a large file so many rows are drawn once, and all sets from these.
    n_pool: int | None = None

    @property
    def family(self) -> str:
        """The data set: its classes share a grid, and count as one where data sets are compared."""
        return self.name.partition("-")[0]

    @property
    def files(self) -> tuple[DataFile, ...]:
        return tuple(file for file in (self.file, self.test_file) if file is not None)

    def contaminations(self, setting: str) -> tuple[float, float]:
        """The shares of P and of U that are wrong in one of the paper's settings."""
        of_pos = self.contamination if setting == "semi-supervised" else 0.0
        return of_pos, 0.0 if setting == "supervised" else self.contamination


def _digits() -> list[LearningTask]:
    train, test = DataFile("mnist.scale", "multiclass"), DataFile("mnist.scale.t", "multiclass")
    return [
        LearningTask(f"mnist-{digit}", 50, 2000, 0.1, train, test, float(digit))
        for digit in range(10)
    ]


def _vehicles() -> list[LearningTask]:
    train = DataFile("combined_scale", "multiclass")
    test = DataFile("combined_scale.t", "multiclass")
    return [
        LearningTask(f"sensit-{kind}", 100, 1000, 0.3, train, test, float(kind))
        for kind in (1, 2, 3)
    ]


# In the order of the paper's tables.
PAPER_TASKS: dict[str, LearningTask] = {
    task.name: task
    for task in (
        LearningTask("synthetic", 100, 200, 0.3, test_pos=5000, test_neg=5000),
        LearningTask(
            "cancer",
            50,
            200,
            0.3,
            DataFile("breast-cancer_scale", "binary"),
            positive_label=4.0,  # malignant
            test_pos=100,
            test_neg=100,
        ),
        LearningTask(
            "ijcnn1",
            100,
            10_000,
            0.1,
            DataFile("ijcnn1", "binary"),
            DataFile("ijcnn1.t", "binary"),
        ),
        LearningTask(
            "covtype",
            100,
            1000,
            0.3,
            DataFile("covtype.libsvm.binary.scale", "binary"),
            test_pos=20_000,
            test_neg=20_000,
            n_pool=140_000,
        ),
        *_digits(),
        *_vehicles(),
    )
}

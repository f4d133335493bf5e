"""What rank is asked for, and what cannot be asked of it."""

from __future__ import annotations

from dataclasses import dataclass, field

from resvm_cli.errors import ParameterError
from resvm_cli.model_files.directory import check_model_target
from resvm_cli.parameters import RankingParameters, RuleName
from resvm_cli.training.choice import TrainingChoice
from resvm_cli.training.input import TrainingInput
from resvm_cli.training.train import check

SEEN_BY_ALL = "bagging trains every member on all of P: none is left to score a known positive"
ONE_MODEL = "cwsvm is one model that has seen every row: nothing is out of bag"


@dataclass(frozen=True, kw_only=True)
class RankRequest(RankingParameters):
    """What to rank, by which ensemble, and what to tell of it."""

    source: TrainingInput = field(default_factory=TrainingInput)  # unless rows are at hand
    choice: TrainingChoice = field(default_factory=TrainingChoice)
    model: str | None = None  # instead of training
    target: str | None = None  # where the trained model is kept
    force: bool = False
    negatives: str | None = None  # a file of trusted ones
    feature_map: str | None = None  # names of features, for linear members
    intervals: bool = True
    page: bool = False  # what a page shows besides the list

    @property
    def rule(self) -> RuleName:
        """By the members' mean value, which ranks best (docs/quality.md), unless told otherwise."""
        return self.choice.decision or "mean"

    def check(self) -> None:
        """Refuse what cannot work, before any file is read."""
        check(self.source, self.choice)
        self.check_list()

    def check_list(self) -> None:
        """Refuse a list that cannot be made, wherever the rows come from."""
        super().check_list()
        if self.negatives is not None and self.audit:
            raise ParameterError(
                "{negatives} are compared with rows of U, and {audit:True} lists P"
            )
        if self.feature_map is not None and self.why is None:
            raise ParameterError("{feature_map} goes with {why}: it names the features that count")
        if self.model is None:
            self.check_method(self.choice.params.method)
            if self.target is not None:
                check_model_target(self.target, force=self.force)

    def check_method(self, method: str) -> None:
        """Refuse what this method has no out-of-bag values for."""
        hint = "{method:resvm} resamples P as well as U"
        if method == "cwsvm":
            raise ParameterError(f"{ONE_MODEL}; it cannot rank its own rows", hint)
        if method != "bagging":
            return
        if self.audit or self.with_known:
            what = "audit P" if self.audit else "rank known positives among others"
            raise ParameterError(f"{SEEN_BY_ALL}; it cannot {what}", hint)
        for name, value in (
            ("fdr", self.fdr if self.negatives is None else None),
            ("contamination_pos", self.contamination_pos),
            ("contamination_unl", self.contamination_unl),
        ):
            if value is not None:
                raise ParameterError(SEEN_BY_ALL + ", which {" + name + "} needs", hint)

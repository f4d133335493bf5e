"""What rank is asked for, and what cannot be asked of it."""

from __future__ import annotations

from dataclasses import dataclass, field

from resvm_cli.errors import CommandLineError
from resvm_cli.model.ensemble import RuleName
from resvm_cli.model_files.directory import check_model_target
from resvm_cli.training.input import TrainingInput
from resvm_cli.training.train import TrainingChoice, check

SEEN_BY_ALL = "bagging trains every member on all of P: no member is left to judge a known positive"
MOST_REASONS = 10_000
ONE_MODEL = "cwsvm is one model that has seen every row: there is nothing out of bag"


@dataclass(frozen=True)
class RankRequest:
    """What to rank, by which ensemble, and what to tell of it."""

    source: TrainingInput = field(default_factory=TrainingInput)  # unless rows are at hand
    choice: TrainingChoice = field(default_factory=TrainingChoice)
    model: str | None = None  # instead of training
    target: str | None = None  # where the trained model is kept
    force: bool = False
    audit: bool = False
    with_known: bool = False
    top: int | None = None
    contamination_pos: float | None = None
    contamination_unl: float | None = None
    fdr: float | None = None  # the longest list of no larger share of negatives
    negatives: str | None = None  # a file of trusted ones
    why: int | None = None  # tell what speaks for and against so many rows
    feature_map: str | None = None  # names of features, for linear members
    intervals: bool = True
    page: bool = False  # what a page shows besides the list
    jobs: int | None = None
    memory_mb: float | None = None

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
        if self.audit and self.with_known:
            raise CommandLineError(
                "--audit lists known positives alone, --with-known among others: choose one"
            )
        if self.fdr is not None:
            self._check_fdr(self.fdr)
        if self.negatives is not None and self.audit:
            raise CommandLineError("--negatives are compared with rows of U, and --audit lists P")
        if self.why is not None and not 1 <= self.why <= MOST_REASONS:
            raise CommandLineError(
                f"--why is {self.why}; a number of rows from 1 to {MOST_REASONS:,} is meant"
            )
        if self.feature_map is not None and self.why is None:
            raise CommandLineError("--map goes with --why: it names the features that count")
        for name, share in (
            ("--contamination-pos", self.contamination_pos),
            ("--contamination-unl", self.contamination_unl),
        ):
            if share is not None and not 0 <= share < 1:
                raise CommandLineError(f"{name} is {share:g}; a share from 0 to below 1 is meant")
        if (self.contamination_pos or 0.0) + (self.contamination_unl or 0.0) >= 1:
            raise CommandLineError(
                "the contaminations add up to 1 or more: P would be no richer in positives than U"
            )
        if self.model is None:
            self.check_method(self.choice.params.method)
            if self.target is not None:
                check_model_target(self.target, force=self.force)

    def _check_fdr(self, fdr: float) -> None:
        if not 0 < fdr < 1:
            raise CommandLineError(
                f"--fdr is {fdr:g}; a share above 0 and below 1 is meant",
                "--fdr 0.1 asks for a list of which 90 % are expected to be positive",
            )
        if self.audit or self.with_known:
            other = "--audit lists" if self.audit else "--with-known adds"
            raise CommandLineError(f"--fdr chooses among rows of U, and {other} known positives")
        if self.top is not None:
            raise CommandLineError("--fdr and --top each say how long the list is: choose one")

    def check_method(self, method: str) -> None:
        """Refuse what this method has no out-of-bag values for."""
        hint = "--method resvm resamples P as well as U"
        if method == "cwsvm":
            raise CommandLineError(f"{ONE_MODEL}; it cannot rank its own rows", hint)
        if method == "bagging" and (self.audit or self.with_known):
            what = "audit P" if self.audit else "rank known positives among others"
            raise CommandLineError(f"{SEEN_BY_ALL}; it cannot {what}", hint)
        if method == "bagging":
            for name, value in (
                ("--fdr", self.fdr if self.negatives is None else None),
                ("--contamination-pos", self.contamination_pos),
                ("--contamination-unl", self.contamination_unl),
            ):
                if value is not None:
                    raise CommandLineError(f"{SEEN_BY_ALL}, which {name} needs", hint)

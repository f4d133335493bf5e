"""What is to be ranked, and what no ensemble can do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from resvm_cli.ensemble.methods import ResvmParams
from resvm_cli.errors import CommandLineError
from resvm_cli.files import model_dir
from resvm_cli.jobs.train import check
from resvm_cli.jobs.training_input import TrainingInput

SEEN_BY_ALL = "bagging trains every member on all of P: no member is left to judge a known positive"
ONE_MODEL = "cwsvm is one model that has seen every row: there is nothing out of bag"


@dataclass(frozen=True)
class RankRequest:
    """What to rank, by which ensemble, and what to tell of it."""

    source: TrainingInput
    params: ResvmParams = field(default_factory=ResvmParams)
    auto: Sequence[str] | None = None
    model: str | None = None  # instead of training
    target: str | None = None  # where the trained model is kept
    force: bool = False
    audit: bool = False
    with_known: bool = False
    top: int | None = None
    contamination_pos: float | None = None
    contamination_unl: float | None = None
    intervals: bool = True
    page: bool = False  # what a page shows besides the list
    jobs: int | None = None

    def check(self) -> None:
        """Refuse what cannot work, before any file is read."""
        check(self.source, self.params)
        if self.audit and self.with_known:
            raise CommandLineError(
                "--audit lists known positives alone, --with-known among others: choose one"
            )
        if not self.audit and self.contamination_pos is not None:
            raise CommandLineError("--contamination-pos goes with --audit")
        if self.contamination_unl is not None and self.contamination_pos is None:
            raise CommandLineError("--contamination-unl goes with --contamination-pos")
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
            self.check_method(self.params.method)
            if self.target is not None:
                model_dir.check_target(self.target, force=self.force)

    def check_method(self, method: str) -> None:
        """Refuse what this method has no out-of-bag values for."""
        hint = "--method resvm resamples P as well as U"
        if method == "cwsvm":
            raise CommandLineError(f"{ONE_MODEL}; it cannot rank its own rows", hint)
        if method == "bagging" and (self.audit or self.with_known):
            what = "audit P" if self.audit else "rank known positives among others"
            raise CommandLineError(f"{SEEN_BY_ALL}; it cannot {what}", hint)

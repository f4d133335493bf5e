"""Where P and U come from, and how their files are read."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from resvm_cli.options.option_groups import table_options
from resvm_cli.parameters import TRAINING_TABLE, ScaleChoice

if TYPE_CHECKING:
    from resvm_cli.training.input import TrainingInput

data_option = partial(typer.Option, rich_help_panel="Data")

ZeroBased = Annotated[bool, data_option("--zero-based", help="The files count features from 0.")]
Groups = Annotated[
    str | None,
    data_option(
        metavar="FILE|qid",
        help="Rows of one group are never split between a bag and the rows it judges:"
        " a name a row, or the data's qid:.",
    ),
]


@table_options({"scale": TRAINING_TABLE["scale"]}, lambda name: data_option, last=True)
class DataOptions:
    """P and U, as two files or one; each field is named as in TrainingInput."""

    positives: Annotated[
        str | None,
        data_option(
            "-P", "--positives", metavar="FILE", help="Known positives (svmlight; - is stdin)."
        ),
    ] = None
    unlabeled: Annotated[
        str | None, data_option("-U", "--unlabeled", metavar="FILE", help="Unlabeled rows.")
    ] = None
    data: Annotated[
        str | None, data_option(metavar="FILE", help="One labelled file instead of -P and -U.")
    ] = None
    positive_label: Annotated[
        float | None,
        data_option(metavar="LABEL", help="With --data: rows of this label are P, all others U."),
    ] = None
    positive_ids: Annotated[
        str | None,
        data_option(
            metavar="FILE",
            help="With --data: rows whose ids are listed here, one a line, are P, all others U.",
        ),
    ] = None
    ids_file: Annotated[
        str | None,
        data_option(
            metavar="FILE",
            help="The ids of all rows in their order, one a line.",
            show_default="their trailing comments, # name",
        ),
    ] = None
    allow_missing: Annotated[
        bool,
        data_option(
            "--allow-missing", help="Go on where ids of --positive-ids are not in the data."
        ),
    ] = False
    weights: Annotated[
        str | None,
        data_option(
            metavar="FILE",
            help="How sure known positives are: a number from 0 to 1 a row of P (with"
            " --positive-ids an id before it); bags hold rows of P in proportion.",
        ),
    ] = None
    zero_based: ZeroBased = False
    features: Annotated[
        int | None,
        data_option(
            metavar="N", help="How many features there are.", show_default="the largest index"
        ),
    ] = None

    def chosen_scale(self) -> ScaleChoice | None:
        """The scaling of --scale."""
        name = TRAINING_TABLE["scale"].convert(vars(self)["scale"])
        return None if name == "none" else name

    def training_input(
        self,
        scale: ScaleChoice | None,
        *,
        groups: str | None = None,
        unchecked: bool = False,
        keep_ids: bool = False,
    ) -> TrainingInput:
        """The data to train on, with this scaling: a file of parameters may differ from --scale."""
        from resvm_cli.training.input import TrainingInput

        declared = {**vars(self), "scale": scale}
        return TrainingInput(**declared, groups=groups, unchecked=unchecked, keep_ids=keep_ids)

"""Many rows of few features: rows a second, and memory that must not grow with them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from perf import agreement
from perf.bench import Bench
from perf.case import Asked, Case, Group, Part
from perf.data import IJCNN, IJCNN_TEST
from perf.ensembles import Ensemble
from perf.programs import SVC_DENSE, SVC_SPARSE
from perf.work.predict import OURS, THREADED, resvm

TITLE = "A million rows"


def groups(bench: Bench) -> Iterator[Group]:
    sizes, data = bench.sizes, bench.data
    problem = data.problem(IJCNN, IJCNN_TEST, 1, bench.command)
    source = data.plain(IJCNN_TEST)
    rows = data.head(source, sizes.long_rows)
    n_models = min(sizes.members)
    ensemble = Ensemble(bench, replace(problem, test=rows), "rbf", n_models)
    fewer = data.head(source, sizes.short_rows)
    short = f"{OURS}, {sizes.short_rows:,} rows"
    short_output = ensemble.folder / "resvm.short.pred"
    cases = [
        *resvm(ensemble),
        Case(
            short,
            bench.resvm("predict", "-q", "--votes", ensemble.model(), fewer, threads=1),
            short_output,
            check=partial(
                agreement.same_start, ensemble.folder / "resvm.pred", short_output, sizes.short_rows
            ),
            amount=sizes.short_rows,
        ),
    ]
    if bench.wants("scikit-learn"):
        cases += _scikit_learn(ensemble)
    yield Group(
        f"{n_models} rbf members of {sizes.n_pos} + {sizes.n_unl} rows, {sizes.long_rows:,} rows x"
        f" {problem.n_features} features ({data.describe(IJCNN_TEST)}, repeated)",
        cases,
        (
            Asked(
                f"{sizes.long_rows:,} rows against {sizes.short_rows:,}",
                *(1.1, OURS, (short,), "most", "peak_mb"),
            ),
            Asked("default threads against one", 1.6, THREADED, (OURS,), "least"),
        ),
        sizes.long_rows,
        "rows/s",
    )


def _scikit_learn(ensemble: Ensemble) -> Iterator[Case]:
    sizes, data = ensemble.bench.sizes, ensemble.bench.data
    less, more = (data.head(ensemble.problem.test, count) for count in sizes.part_rows)
    for program in (SVC_SPARSE, SVC_DENSE):
        model = program.target(ensemble)
        output = ensemble.folder / f"{program.title}.pred"
        yield Case(
            program.title,
            program.predict(ensemble, model, more, output),
            prepare=partial(program.trained, ensemble),
            check=partial(program.check_predictions, ensemble, more, output),
            part=Part(
                program.predict(ensemble, model, less, output.with_suffix(".less")),
                sizes.part_rows,
                sizes.long_rows,
                "rows",
            ),
        )

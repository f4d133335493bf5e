"""resvm inspect: show the contents of a model directory and verify its digests.

numpy is imported inside functions, so that --help stays fast.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, TypeAlias

from resvm_cli.cli import options as shared
from resvm_cli.cli.option_groups import argument, expand_option_groups
from resvm_cli.cli.terminal import aligned, print_data, print_json, print_table
from resvm_cli.cli.training_report import predicted_positive
from resvm_cli.errors import CommandLineError, ModelError, listed

if TYPE_CHECKING:
    from resvm_cli.data.pu_input import TrainingInput
    from resvm_cli.run import Run
    from resvm_cli.storage.model import StoredModel

Feature: TypeAlias = dict[str, Any]  # one line of --weights or --importance
SHOWN = 20  # columns of a table


@expand_option_groups
def inspect(
    *,
    model: str = argument("MODEL", "Directory written by resvm train."),
    weights: bool = shared.output_option(
        "--weights",
        "Print the feature weights of a linear model, or of members trained with --feature-weights,"
        " as TSV, largest first.",
    ),
    importance: bool = shared.output_option(
        "--importance",
        "Print the importance of each feature, for any kernel, as TSV, largest first: how much the"
        " out-of-bag ROC AUC drops when the feature is permuted. Requires the training data.",
    ),
    trained: shared.SourceOptions,
    positive_weights: str | None = shared.data_option(
        "--positive-weights FILE", "The --weights file used in training."
    ),
    table: shared.TableOptions,
    groups: str | None = shared.GROUPS,
    feature_map: str | None = shared.data_option(
        "--map FILE",
        "With --weights or --importance: feature names from resvm convert --map.",
        show_default="the model's own, if it was trained on a table",
    ),
    json: bool = shared.JSON,
    running: shared.RunningOptions,
) -> None:
    """Show the contents of a model and verify that it is intact (exit code 4 if not).

    For example:

    - `resvm inspect model`
    - `resvm inspect model --weights --map features.json`
    - `resvm inspect model --importance -P pos.svm -U unl.svm`
    """
    if feature_map is not None and not (weights or importance):
        raise CommandLineError("--map requires --weights or --importance")
    if weights and importance and not json:
        raise CommandLineError("give either --weights or --importance, or both with --json")
    if importance != any((trained.positives, trained.unlabeled, trained.data)):
        raise CommandLineError(
            "--importance requires the training data"
            if importance
            else "the training data is used only with --importance",
            "use --importance with -P and -U, or with --data",
        )
    names = None
    if feature_map is not None:
        from resvm_cli.data.encoding import read_feature_map

        names = read_feature_map(feature_map).names
    from resvm_cli.storage.model import load_with_out_of_bag

    stored = load_with_out_of_bag(model, required=False)
    features = {}
    if weights:
        features["weights"] = _weights(model, stored, names)
    if importance:
        source = trained.training_input(table, groups=groups, weights=positive_weights)
        with running.run() as run:
            features["importance"] = _importance(model, stored, source, names, run)
    members, manifest = stored.ensemble.members, stored.manifest
    counts = {
        "n_members": len(members),
        "n_support_vectors": sum(len(member.support) for member in members),
        "n_distinct_support_vectors": len(stored.ensemble.pool),
        "member_bytes": sum(int(entry["bytes"]) for entry in manifest["members"]),
    }
    if json:
        content = {"model": model, "intact": True, **counts, **features, "manifest": manifest}
        print_json("inspect", content)
    elif features:
        (lines,) = features.values()
        text = "\t".join(lines[0]) + "\n" if lines else ""
        for line in lines:
            cells = {name: repr(value) for name, value in line.items()}
            cells["name"] = line["name"].replace("\t", " ").replace("\n", " ")
            text += "\t".join(cells.values()) + "\n"
        print_data(text)
    else:
        rows = [("model", model), *_contents(manifest, counts)]
        print_table("".join(f"{line}\n" for line in aligned(rows, left=(0, 1))))


def _importance(
    path: str, stored: StoredModel, source: TrainingInput, names: list[str] | None, run: Run
) -> list[Feature]:
    """Compute out-of-bag permutation importance; the training data is verified by digest."""
    from resvm_cli import threads as parallel
    from resvm_cli.data.pufiles import PUFiles
    from resvm_cli.ensemble.importance import feature_importance
    from resvm_cli.ensemble.oob import UnseenMask
    from resvm_cli.tuning.learn import as_stored, redrawn_rows

    with parallel.one_blas_thread(), PUFiles(as_stored(source, stored), run) as data:
        plan, problems, rows = redrawn_rows(stored, path, data, run)
        mask = UnseenMask(problems, rows)
        found = feature_importance(stored.ensemble, data, mask, plan.seed, run, names)
    return [asdict(one) for one in found]


def _weights(path: str, stored: StoredModel, names: list[str] | None) -> list[Feature]:
    """Return the weight of each feature: mean and deviation over members, largest first."""
    from resvm_cli.data.pudata import feature_name
    from resvm_cli.ensemble.importance import feature_weights

    if names is None and stored.encoding is not None:
        names = stored.encoding.names
    weights = feature_weights(stored.ensemble)
    if weights is None:
        kernel = stored.ensemble.sections[0].kernel.name
        raise ModelError(
            f"{path}: the kernel is {kernel}; only linear models and members that weight features"
            " have feature weights",
            "train with --kernel linear or --feature-weights relevance",
        )
    return [
        {
            "feature": feature,
            "name": feature_name(feature, names, stored.zero_based),
            "weight": weight,
            "deviation": deviation,
        }
        for feature, weight, deviation in weights
    ]


def _contents(manifest: dict[str, Any], counts: dict[str, int]) -> Iterator[tuple[str, str]]:
    """Yield what the model contains, as pairs of name and text."""
    groups, encoding = manifest["groups"], manifest["encoding"]
    kernels = {group["kernel"]["name"] for group in groups}
    yield "state", "intact: every digest verified"
    yield "method", manifest["method"]
    for number, group in enumerate(groups, 1):
        kernel = dict(group["kernel"])
        name = kernel.pop("name")
        if group["scaling"]:
            kernel["scaled by"] = group["scaling"]
        several = f" {number}" if len(groups) > 1 else ""
        yield f"kernel{several}", f"{name}, {_pairs(kernel)}" if kernel else name
        yield f"parameters{several}", _pairs(group["parameters"])
        if several:
            yield f"weight {number}", f"{group['weight']:.3g} of the pooled values"
    decision = manifest["decision"]
    for rule, threshold in decision["thresholds"].items():
        values = (threshold[name] for name in ("value", "recall", "fraction_unlabeled"))
        text = predicted_positive(rule, *values, single=manifest["method"] == "cwsvm")
        own = "; the model's rule" if rule == decision["rule"] else ""
        yield f"T ({rule})", f"predicted positive: {text}{own}"
    yield "seed", str(manifest["seed"])
    yield "members", f"{counts['n_members']:,} ({counts['member_bytes']:,} bytes)"
    n_vectors, n_distinct = counts["n_support_vectors"], counts["n_distinct_support_vectors"]
    vectors = "weight vectors" if kernels == {"linear"} else "support vectors"
    yield vectors, f"{n_vectors:,}, {n_distinct:,} distinct"
    if scored := manifest.get("out_of_bag"):
        yield (
            "out of bag",
            f"{scored['positives']:,} known positives scored, {scored['unlabeled']:,} rows of U",
        )
    if manifest["unconverged"]:
        yield "unconverged", f"{manifest['unconverged']} members"
    if kernels == {"precomputed"}:
        yield "kernel values", f"with rows 1 to {manifest['n_features'] - 1:,}"
    else:
        features = f"{manifest['n_features']:,}"
        if kinds := [scaling["kind"] for scaling in manifest["scalings"]]:
            features += f", scaled by {' and '.join(kinds)}"
        yield "features", features + (", indices start at 0" if manifest["zero_based"] else "")
    if encoding is not None:
        columns = encoding["columns"]
        numbers = [column["name"] for column in columns if column["kind"] == "number"]
        texts = [column for column in columns if column["kind"] == "text"]
        categories = [f"{column['name']} ({len(column['values']):,})" for column in texts]
        for title, names in (("numbers", numbers), ("categories", categories)):
            if names:
                counted = "1 column" if len(names) == 1 else f"{len(names):,} columns"
                yield title, f"{counted}: {listed(names, SHOWN)}"
        yield "missing", encoding["missing"]
    for which, data in manifest["data"].items():
        size = f"{data['count']:,} groups" if which == "groups" else f"{data['rows']:,} rows"
        yield which, f"{size}, sha256 {data['sha256'][:16]}..."
    yield "versions", _pairs(manifest["versions"])
    yield "format", str(manifest["format"])


def _pairs(mapping: dict[str, Any]) -> str:
    return ", ".join(
        f"{name} {value:.6g}" if isinstance(value, float) else f"{name} {value}"
        for name, value in mapping.items()
        if value is not None
    )

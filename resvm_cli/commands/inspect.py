"""resvm inspect: show the contents of a model directory and verify its digests.

numpy is imported inside functions, so that --help stays fast.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, TypeAlias

from resvm_cli.errors import CommandLineError, Message, ModelError, listed
from resvm_cli.options import shared
from resvm_cli.options.option_groups import argument, fold_options
from resvm_cli.report.terminal import aligned, print_data, print_json, print_table

if TYPE_CHECKING:
    from resvm_cli.model_files.directory import StoredModel
    from resvm_cli.running.run import Run
    from resvm_cli.training.input import TrainingInput

Feature: TypeAlias = dict[str, Any]  # one line of --weights or --importance
# Manifest keys repeated at the top level of the JSON output.
DESCRIBING = (
    *("format", "method", "seed", "groups", "kernel", "parameters", "decision"),
    *("n_features", "zero_based", "scaling", "scalings", "encoding", "unconverged"),
)
SHOWN = 20  # columns of a table


@fold_options
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
        from resvm_cli.tables.encoding import read_feature_map

        names = read_feature_map(feature_map).names
    from resvm_cli.model_files.directory import load_with_out_of_bag

    stored = load_with_out_of_bag(model, required=False)
    features = {}
    if weights:
        features["weights"] = _weights(model, stored, names)
    if importance:
        source = trained.training_input(table, groups=groups, weights=positive_weights)
        with running.run() as run:
            features["importance"] = _importance(model, stored, source, names, run)
    if json:
        _print_json(model, stored, features)
    elif features:
        _print_features(*features.values())
    else:
        show_model(model, stored)


def _importance(
    path: str, stored: StoredModel, source: TrainingInput, names: list[str] | None, run: Run
) -> list[Feature]:
    """Compute out-of-bag permutation importance; the training data is verified by digest."""
    from resvm_cli.model.importance import feature_importance
    from resvm_cli.model.out_of_bag import UnseenMask
    from resvm_cli.running import parallel
    from resvm_cli.training.data import TrainingData
    from resvm_cli.training.train import as_stored, redrawn_rows

    with parallel.inner_threads_held(), TrainingData(as_stored(source, stored), run) as data:
        plan, problems, rows = redrawn_rows(stored, path, data, run)
        mask = UnseenMask(problems, rows)
        found = feature_importance(stored.ensemble, data, mask, plan.seed, run, names)
    return [asdict(one) for one in found]


def _weights(path: str, stored: StoredModel, names: list[str] | None) -> list[Feature]:
    """Return the weight of each feature: mean and deviation over members, largest first.

    For members that weight features, the weight is the square of the factor that multiplies the
    feature (mean 1 over all features), and all other members are left out. Otherwise, all members
    must be linear. In a committee, each group's weights are scaled and averaged in the same way as
    its decision values.
    """
    import numpy as np

    from resvm_cli.model.pu_data import feature_name
    from resvm_cli.rows import Columns, Rows

    ensemble = stored.ensemble
    of_members = [member.weights for member in ensemble.members]
    if any(each is not None for each in of_members):
        lines = [each or Rows.empty() for each in of_members]
        lines = [Rows(each.indptr, each.indices, each.values**2) for each in lines]
    elif ensemble.linear:
        lines = []
        for member in ensemble.members:
            rows = ensemble.pool.take(member.support)
            values = rows.values * np.repeat(member.coefficients, rows.lengths)
            lines.append(Rows(rows.indptr, rows.indices, values))
    else:
        kernel = ensemble.groups[0].kernel.name
        raise ModelError(
            f"{path}: the kernel is {kernel}; only linear models and members that weight features"
            " have feature weights",
            Message("train with {kernel:linear} or {feature_weights:relevance}"),
        )
    columns = Columns(np.concatenate([line.indices for line in lines]))
    table = np.zeros((len(lines), len(columns)))
    for values, line in zip(table, lines, strict=True):
        np.add.at(values, columns.places(line.indices), line.values)
    weights = np.ones(len(table))
    if len(ensemble.groups) > 1:
        for group in ensemble.groups:
            if ensemble.linear:
                table[group.columns] /= group.scale
            weights[group.columns] = group.weight / len(group.members)
    if not ensemble.linear:
        weights[[each is None for each in of_members]] = 0.0
    means = np.average(table, axis=0, weights=weights)
    deviations = np.sqrt(np.average((table - means) ** 2, axis=0, weights=weights))
    order = np.argsort(-np.abs(means), kind="stable")
    if names is None and stored.encoding is not None:
        names = stored.encoding.names
    return [
        {
            "feature": int(columns.present[place]),
            "name": feature_name(int(columns.present[place]), names, stored.zero_based),
            "weight": float(means[place]),
            "deviation": float(deviations[place]),
        }
        for place in order
    ]


def show_model(path: str, stored: StoredModel) -> None:
    """Print a table of the model's contents on stdout."""
    lines = aligned([*_contents(path, stored)], left=(0, 1))
    print_table("".join(f"{line}\n" for line in lines))


def _contents(path: str, stored: StoredModel) -> Iterator[tuple[str, str]]:
    """Yield the lines of the table as pairs of name and text."""
    from resvm_cli.model_files.directory import described_scalings

    manifest = stored.manifest
    groups = manifest.get("groups", [manifest])  # format 1 has only one group
    names = {group["kernel"]["name"] for group in groups}
    yield "model", path
    yield "state", "intact: every digest verified"
    yield "method", manifest["method"]
    for number, group in enumerate(groups, 1):
        kernel = dict(group["kernel"])
        name = kernel.pop("name")
        if group.get("scaling"):
            kernel["scaled by"] = group["scaling"]
        several = f" {number}" if len(groups) > 1 else ""
        yield f"kernel{several}", f"{name}, {_pairs(kernel)}" if kernel else name
        yield f"parameters{several}", _pairs(group["parameters"])
        if several:
            counts = {key: group[key] for key in ("weight", "shift", "scale")}
            yield f"pooling{several}", _pairs(counts)
    if decision := manifest.get("decision"):
        for rule, threshold in decision["thresholds"].items():
            own = " (the model's rule)" if rule == decision["rule"] else ""
            yield f"T ({rule})", _pairs(threshold) + own
    yield "seed", str(manifest["seed"])
    yield "members", f"{len(manifest['members']):,} ({_member_bytes(manifest):,} bytes)"
    vectors = "weight vectors" if names == {"linear"} else "support vectors"
    n_vectors, n_distinct = _support_vectors(stored)
    yield vectors, f"{n_vectors:,}, {n_distinct:,} distinct"
    if scored := manifest.get("out_of_bag"):
        yield (
            "out of bag",
            f"{scored['positives']:,} known positives scored"
            + (f", {scored['unlabeled']:,} rows of U" if "unlabeled" in scored else ""),
        )
    if manifest["unconverged"]:
        yield "unconverged", f"{manifest['unconverged']} members"
    features = f"{manifest['n_features']:,}"
    if kinds := [scaling["kind"] for scaling in described_scalings(manifest)]:
        features += f", scaled by {' and '.join(kinds)}"
    if names == {"precomputed"}:
        yield "kernel values", f"with rows 1 to {manifest['n_features'] - 1:,}"
    else:
        counted = ", indices start at 0" if manifest["zero_based"] else ""
        yield "features", features + counted
    yield from _columns(manifest.get("encoding"))
    for which, data in manifest["data"].items():
        size = f"{data['count']:,} groups" if which == "groups" else f"{data['rows']:,} rows"
        yield which, f"{size}, sha256 {data['sha256'][:16]}..."
    yield "versions", _pairs(manifest["versions"])
    yield "format", str(manifest["format"])


def _support_vectors(stored: StoredModel) -> tuple[int, int]:
    """Return the total number of support vectors over all members, and how many are distinct."""
    members = stored.ensemble.members
    return sum(len(member.support) for member in members), len(stored.ensemble.pool)


def _member_bytes(manifest: dict[str, Any]) -> int:
    return sum(int(entry["bytes"]) for entry in manifest["members"])


def _columns(encoding: dict[str, Any] | None) -> Iterator[tuple[str, str]]:
    """Yield lines that describe how the columns of a table become features."""
    if encoding is None:
        return
    columns = encoding["columns"]
    numbers = [column["name"] for column in columns if column["kind"] == "number"]
    texts = [f"{one['name']} ({len(one['values']):,})" for one in columns if one["kind"] == "text"]
    for name, names in (("numbers", numbers), ("categories", texts)):
        if names:
            yield name, f"{len(names):,} columns: {listed(names, SHOWN)}"
    yield "missing", encoding["missing"]


def _pairs(mapping: dict[str, Any]) -> str:
    return ", ".join(
        f"{name} {format(value, 'g') if float(format(value, 'g')) == value else repr(value)}"
        if isinstance(value, float)
        else f"{name} {value}"
        for name, value in mapping.items()
        if value is not None
    )


def _print_features(features: list[Feature]) -> None:
    """Print one line per feature, with a header, on stdout."""
    lines = ["\t".join(features[0])] if features else []
    for one in features:
        cells = {name: repr(value) for name, value in one.items()}
        cells["name"] = one["name"].replace("\t", " ").replace("\n", " ")
        lines.append("\t".join(cells.values()))
    print_data("\n".join([*lines, ""]))


def _print_json(path: str, stored: StoredModel, features: dict[str, list[Feature]]) -> None:
    manifest = stored.manifest
    n_vectors, n_distinct = _support_vectors(stored)
    print_json(
        "inspect",
        {
            "model": path,
            "intact": True,
            **{name: manifest[name] for name in DESCRIBING if name in manifest},
            "n_members": len(manifest["members"]),
            "n_support_vectors": n_vectors,
            "n_distinct_support_vectors": n_distinct,
            "member_bytes": _member_bytes(manifest),
            **features,
            "manifest": manifest,
        },
    )

"""New."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from resvm_cli.report.json_output import print_json
from resvm_cli.report.terminal import print_data, rendered

if TYPE_CHECKING:
    from resvm_cli.commands.inspect.inspect import FeatureWeight, Inspection


def show_inspection(inspection: Inspection) -> None:
    """A table of what a model holds, on stdout."""
    from rich.table import Table
    from rich.text import Text

    manifest = inspection.manifest
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")

    def pairs(mapping: dict[str, Any]) -> str:
        return ", ".join(
            f"{name} {format(value, 'g') if float(format(value, 'g')) == value else repr(value)}"
            if isinstance(value, float)
            else f"{name} {value}"
            for name, value in mapping.items()
            if value is not None
        )

    groups = manifest.get("groups", [manifest])  # format 1 has one
    name = groups[0]["kernel"]["name"]
    table.add_row("model", Text(inspection.path))
    table.add_row("state", "intact: every digest verified")
    table.add_row("method", manifest["method"])
    for number, group in enumerate(groups, 1):
        kernel = {key: value for key, value in group["kernel"].items() if key != "name"}
        several = f" {number}" if len(groups) > 1 else ""
        table.add_row(f"kernel{several}", f"{name}, {pairs(kernel)}" if kernel else name)
        table.add_row(f"parameters{several}", pairs(group["parameters"]))
        if several:
            counts = {key: group[key] for key in ("weight", "shift", "scale")}
            table.add_row(f"counts{several}", pairs(counts))
    if decision := manifest.get("decision"):
        for rule, threshold in decision["thresholds"].items():
            own = " (the model's rule)" if rule == decision["rule"] else ""
            table.add_row(f"T of {rule}", pairs(threshold) + own)
    table.add_row("seed", str(manifest["seed"]))
    table.add_row("members", f"{inspection.n_members:,} ({inspection.n_bytes:,} bytes)")
    vectors = "weight vectors" if name == "linear" else "support vectors"
    table.add_row(vectors, f"{inspection.n_support_vectors:,}, {inspection.n_pool:,} distinct")
    if judged := manifest.get("out_of_bag"):
        table.add_row(
            "out of bag",
            f"{judged['positives']:,} known positives judged"
            + (f", {judged['unlabeled']:,} rows of U" if "unlabeled" in judged else ""),
        )
    if manifest["unconverged"]:
        table.add_row("unconverged", f"{manifest['unconverged']} members")
    features = f"{manifest['n_features']:,}"
    if manifest["scaling"]:
        features += f", scaled by {manifest['scaling']['kind']}"
    if name == "precomputed":
        table.add_row("kernel values", f"with rows 1 to {manifest['n_features'] - 1:,}")
    else:
        counted = ", counted from 0" if manifest["zero_based"] else ""
        table.add_row("features", features + counted)
    for which, data in manifest["data"].items():
        table.add_row(which, f"{data['rows']:,} rows, sha256 {data['sha256'][:16]}...")
    table.add_row("versions", pairs(manifest["versions"]))
    table.add_row("format", str(manifest["format"]))
    colours = sys.stdout is not None and sys.stdout.isatty()
    print_data(rendered(table, None if colours else 100, colours=colours))


# What the manifest says first of a model, and what programs ask for.
DESCRIBING = (
    *("format", "method", "seed", "groups", "kernel", "parameters", "decision"),
    *("n_features", "zero_based", "scaling", "unconverged"),
)


def print_weights(weights: Sequence[FeatureWeight]) -> None:
    """A line a feature, with a header."""
    lines = ["feature\tname\tweight\tdeviation"]
    for one in weights:
        name = one.name.replace("\t", " ").replace("\n", " ")
        lines.append(f"{one.feature}\t{name}\t{one.weight!r}\t{one.deviation!r}")
    print_data("\n".join([*lines, ""]))


def print_inspection(inspection: Inspection) -> None:
    asked, manifest = inspection.weights, inspection.manifest
    weights = {} if asked is None else {"weights": [asdict(one) for one in asked]}
    print_json(
        "inspect",
        {
            "model": inspection.path,
            "intact": True,
            **{name: manifest[name] for name in DESCRIBING if name in manifest},
            "n_members": inspection.n_members,
            "n_support_vectors": inspection.n_support_vectors,
            "n_distinct_support_vectors": inspection.n_pool,
            "member_bytes": inspection.n_bytes,
            **weights,
            "manifest": manifest,
        },
    )

"""Read a resvm model directory and predict, without resvm: a second implementation of the format.

    python docs/read_model.py MODEL FILE

prints what ``resvm predict MODEL FILE`` prints for rows in svmlight text: label and decision value.
Read it beside docs/model-format.md. It is plain Python and numpy, scores one row at a time and is
slow. It checks digests, but otherwise trusts the model.
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

Row = dict[int, float]  # the nonzero features of a row


def read_row(pairs: str) -> Row:
    """Read ``index:value index:value ...``."""
    pieces = [pair.split(":") for pair in pairs.split()]
    return {int(index): float(value) for index, value in pieces if index != "qid"}


def read_rows(path: Path) -> list[Row]:
    """Read svmlight text: an optional label, features, an optional comment after #."""
    rows = []
    for line in path.read_text().splitlines():
        words = line.partition("#")[0].split()
        if words:
            rows.append(read_row(" ".join(word for word in words if ":" in word)))
    return rows


def read_manifest(model: Path) -> dict[str, Any]:
    manifest: dict[str, Any] = json.loads((model / "manifest.json").read_bytes())
    content = {key: value for key, value in manifest.items() if key != "manifest_sha256"}
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    if hashlib.sha256(text.encode()).hexdigest() != manifest["manifest_sha256"]:
        raise SystemExit("manifest.json: the digest differs")
    if manifest["format"] != 1:
        raise SystemExit(f"manifest.json: unknown format {manifest['format']}")
    return manifest


class Member:
    """One member: psi(x) = sum of coefficient * K(support vector, x) - rho."""

    def __init__(self, text: str, kernel: dict[str, Any]) -> None:
        head, _, body = text.partition("\nSV\n")
        lines = dict(line.split(" ", 1) for line in head.splitlines())
        self.kernel = kernel
        self.rho = float(lines["rho"])
        factors = lines.get("multiply_features_by")
        self.factors = None if factors is None else read_row(factors)
        pairs = [line.partition(" ") for line in body.splitlines()]
        self.vectors = [(float(coefficient), read_row(row)) for coefficient, _, row in pairs]

    def value(self, row: Row) -> float:
        if self.factors is not None:  # support vectors have been multiplied already
            row = {
                index: row[index] * self.factors[index] for index in row if index in self.factors
            }
        terms = [coefficient * self._kernel(vector, row) for coefficient, vector in self.vectors]
        return float(np.sum(terms)) - self.rho

    def _kernel(self, vector: Row, row: Row) -> float:
        name, gamma = self.kernel["name"], self.kernel.get("gamma", 0.0)
        if name == "precomputed":  # the vector is a serial number: look the value up
            return row.get(int(vector[0]), 0.0)
        if name in ("rbf", "laplacian"):
            features = vector.keys() | row.keys()
            apart = np.array([vector.get(each, 0.0) - row.get(each, 0.0) for each in features])
            distance = apart @ apart if name == "rbf" else np.abs(apart).sum()
            return float(np.exp(-gamma * distance))
        common = [(vector[each], row[each]) for each in vector.keys() & row.keys()]
        if name == "minmax":
            both = sum(min(pair) for pair in common)
            either = sum(vector.values()) + sum(row.values()) - both
            return both / either if either else 1.0
        dot = float(np.sum([one * other for one, other in common]))
        if name == "tanimoto":
            either = sum(one * one for each in (vector, row) for one in each.values()) - dot
            return dot / either if either else 1.0
        if name == "linear":
            return dot
        argument = gamma * dot + self.kernel["coef0"]
        return float(np.tanh(argument)) if name == "sigmoid" else argument ** self.kernel["degree"]


def scaled(row: Row, scaling: dict[str, Any] | None) -> Row:
    """Scale the features of the training data, zeros included; others stay as they are."""
    if scaling is None:
        return row
    result = dict(row)
    for number, feature in enumerate(scaling["features"]):
        value = row.get(feature, 0.0)
        if scaling["kind"] == "quantile":
            knots = slice(scaling["starts"][number], scaling["starts"][number + 1])
            value = float(np.interp(value, scaling["knots"][knots], scaling["heights"][knots]))
        elif scaling["kind"] == "maxabs":
            value /= scaling["factor"][number]
        elif scaling["kind"] == "minmax":
            value = value * scaling["factor"][number] + scaling["shift"][number]
        else:
            value = (value - scaling["shift"][number]) / scaling["factor"][number]
        result[feature] = value
    return result


class Model:
    """The members of a model, and how their values become a decision."""

    def __init__(self, path: Path) -> None:
        manifest = read_manifest(path)
        self.single = manifest["method"] == "cwsvm"
        self.rule = manifest["decision"]["rule"]
        self.threshold = manifest["decision"]["thresholds"][self.rule]["value"]
        self.labels = manifest["labels"]
        self.scalings = {scaling["kind"]: scaling for scaling in manifest["scalings"]}
        self.groups: list[tuple[dict[str, Any], list[Member]]] = []
        entries = iter(manifest["members"])
        for group in manifest["groups"]:
            members = []
            for _ in range(group["members"]):
                entry = next(entries)
                text = (path / entry["file"]).read_bytes()
                if hashlib.sha256(text).hexdigest() != entry["sha256"]:
                    raise SystemExit(f"{entry['file']}: the digest differs")
                members.append(Member(text.decode("ascii"), group["kernel"]))
            self.groups.append((group, members))

    def decision_value(self, row: Row) -> float:
        """Votes with sums at both ends, or the mean value: docs/method.md has the formulas."""
        values = []
        means = []
        for group, members in self.groups:
            seen = scaled(row, self.scalings.get(group["scaling"]))
            own = [member.value(seen) for member in members]
            values += own
            means.append(float(np.mean(own)))
        if self.rule == "mean":
            if len(means) == 1:
                return means[0]
            groups = [group for group, _ in self.groups]
            weights = [group["weight"] for group in groups]
            standard = [
                (mean - group["shift"]) / group["scale"]
                for mean, group in zip(means, groups, strict=True)
            ]
            return float(np.average(standard, weights=weights))
        if self.single:
            return values[0]
        votes = float((len(values) + np.sign(values).sum()) / (2 * len(values)))
        return votes if 0 < votes < 1 else votes + float(np.sum(values))

    def label(self, value: float) -> int | float:
        label: int | float = self.labels["positive" if value > self.threshold else "unlabeled"]
        return label


def main() -> None:
    model = Model(Path(sys.argv[1]))
    for row in read_rows(Path(sys.argv[2])):
        value = model.decision_value(row)
        sys.stdout.write(f"{model.label(value)} {value!r}\n")


if __name__ == "__main__":
    main()

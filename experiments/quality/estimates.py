"""Are the estimates that ``rank`` reports correct?

P and U are drawn from data with known classes, as KINDS says. The log has the order of all rows by
out-of-bag values, which takes an hour for 46 sets; the tables are computed from it in a minute, so
that rules can be compared. The results are in docs/quality.md.
"""

from __future__ import annotations

import argparse
import gzip
import zlib
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import resvm_cli
from experiments.markdown import markdown_table
from experiments.quality.log import run_log
from experiments.quality.tasks import TASKS, labeled, matrix
from resvm_cli.metrics import class_mixture
from resvm_cli.metrics.class_mixture import ClassMixture, RankedOutcomes

Record = dict[str, Any]
DEPTHS = np.array([10, 20, 50, 100, 200])
FDR, N_TESTED, N_UNL = 0.1, 30, 1000
HIDDEN = {"rare": 0.03, "low": 0.07, "noise, low": 0.07}  # fraction of U that is positive
FALSE = {"10% false": 0.1}  # fraction of P
SHARES = (0, 0.05, 0.1, 0.3)
FEW = {f"{n} known, {a:.0%} false": (n, a) for n in (30, 60, 100, 200) for a in SHARES}
BIASED = ("by feature", "by score", "by distance")
KINDS = ("random", "rare", "low", "noise", "noise, low", "skewed", *FALSE, *BIASED)
OF_FEW = ("a9a", "ijcnn1", "magic", "australian", "hpc", "monica", "rotterdam", "page-blocks0")
TASKS_TOO = (
    "a9a,ijcnn1,magic,australian,german,splice +,svmguide1,phishing 0,banana,chess,optdigits 8"
)
TASKS_TOO += ",page-blocks0,phoneme,ring,segment 3,spambase,yeast1,dna 2"
GROUPS = (("b below 5%", 0, 0.05), ("5 to 10%", 0.05, 0.1), ("over 10%", 0.1, 1))
PURITIES = (0.35, 0.5, 0.75, 1.0)
PARTS = 4


@cache
def read(name: str, folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows of a set, and whether each is positive."""
    if name in TASKS:
        rows, truth = labeled(TASKS[name], folder)
        return matrix(rows, rows.max_index).toarray(), truth
    with gzip.open(folder / "tables" / f"{name}.csv.gz", "rt") as file:
        column = [cell.strip('"') for cell in file.readline().strip().split(",")].index("positive")
        table = np.loadtxt(file, delimiter=",")
    return np.delete(table, column, 1), table[:, column] > 0


def weights(kind: str, X: np.ndarray, truth: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return how likely each positive is to be known."""
    scaled = (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-9)
    if kind == "by feature":
        varied = np.flatnonzero(X[truth].std(axis=0) > 1e-9)
        values = scaled[truth, rng.choice(varied)] * rng.choice([-1, 1])
    elif kind == "by score":
        from sklearn.linear_model import LogisticRegression

        model = LogisticRegression(C=0.1, max_iter=300).fit(scaled, truth)
        values = model.decision_function(scaled[truth])
    elif kind == "by distance":
        values = np.sqrt(((scaled[truth] - scaled[~truth].mean(axis=0)) ** 2).sum(axis=1))
    else:
        return np.full(truth.sum(), 1 / truth.sum())
    found = 1 / (1 + np.exp(-2 * (values - values.mean()) / max(values.std(), 1e-9)))
    return found / found.sum()


def draw(key: Record, folder: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """Return rows, which of them are known, and the truth; None if the set has too few rows."""
    name, kind = key["set"], key["kind"]
    X, truth = read(name, folder)
    rng = np.random.default_rng([key["draw"], zlib.crc32(f"{name} {kind}".encode())])
    pos, neg = np.flatnonzero(truth), rng.permutation(np.flatnonzero(~truth))
    n_pos, a = FEW.get(kind, (min(200, int(0.4 * len(pos))), FALSE.get(kind, 0.0)))
    n_false = round(a * n_pos)
    n_true = n_pos - n_false
    if n_true > 0.6 * len(pos):
        return None
    known = rng.choice(pos, n_true, replace=False, p=weights(kind, X, truth, rng))
    hidden, left = rng.permutation(np.setdiff1d(pos, known)), neg[n_false:]
    own = len(hidden) / (len(hidden) + len(left))
    b = HIDDEN.get(kind, own)
    n_unl = int(min(N_UNL, len(hidden) / b, len(left) / (1 - b)))
    n_hidden = (
        round(b * n_unl) if kind in HIDDEN else rng.hypergeometric(len(hidden), len(left), n_unl)
    )
    if b > own or n_pos < 20 or n_hidden < 5:
        return None
    unlabeled = np.concatenate([hidden[:n_hidden], left[: n_unl - n_hidden]])
    rows = np.concatenate([known, neg[:n_false], unlabeled])
    drawn = X[rows]
    if kind.startswith("noise"):
        drawn = np.hstack([drawn, rng.standard_normal((len(rows), 100))])
    if kind == "skewed":
        scaled = (drawn - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-9)
        drawn = np.exp(1.5 * np.clip(scaled, -3, 3))
    return drawn, np.arange(len(rows)) < n_pos, truth[rows]


def order(key: Record, folder: Path) -> Record:
    """Rank a draw; return a letter per row, best first: P or U, in lower case if it is negative."""
    found = draw(key, folder)
    if found is None:
        return {"order": ""}
    X, known, truth = found
    values = np.full(len(X), np.nan)
    first = resvm_cli.rank(X, known, random_state=key["draw"], n_jobs=1)
    audit = resvm_cli.rank(X, known, model=first.model, audit=True, n_jobs=1)
    for ranking in (first, audit):
        values[ranking.rows] = ranking.columns["decision_value"]
    # U comes first among equal values
    rows = sorted(np.flatnonzero(~np.isnan(values)), key=lambda row: (-values[row], known[row]))
    return {"order": "".join("uUpP"[2 * known[row] + truth[row]] for row in rows)}


def judge(record: Record, given: str) -> Record:
    """Compare what is stated for an order with the truth."""
    letters = np.array([*record["order"]])
    values, known, truth = -np.arange(len(letters)), np.char.lower(letters) == "p", letters < "a"
    of_pos, of_unl, true = values[known] * 1.0, values[~known] * 1.0, truth[~known]
    rows = np.arange(N_TESTED)
    if given == "tested at random":
        rows = np.random.default_rng(record["draw"]).choice(len(true), N_TESTED, replace=False)
    tested = RankedOutcomes.from_rows(rows, true[rows], of_unl) if "tested" in given else None
    b = float(true.mean()) if given == "b given" else None
    found = ClassMixture.fit(of_pos, of_unl, b=b, tested=tested)
    assert found is not None
    a = found.contamination_pos
    result = {"b": float(true.mean()), "a_high": a.high}
    result["a_missed"] = not a.low <= float(1 - truth[known].mean()) <= a.high + 1e-9
    if not found.precision_is_known:
        return result
    depths = DEPTHS[len(true) >= DEPTHS]
    actual = np.cumsum(true)[depths - 1] / depths
    value, low, high = (part[depths - 1] for part in vars(found.precision(len(true))).values())
    length = 0 if given == "nothing given" else found.n_listed(FDR)
    return result | {
        "below": actual < low - 1e-9,
        "above": actual > high + 1e-9,
        "low": low,
        "error": value - actual,
        "listed": length,
        "false": int(length - true[:length].sum()),
    }


def row(name: str, results: Sequence[Record]) -> list[str]:
    stated = [one for one in results if "below" in one]
    below, above, low, error = (
        np.concatenate([one[part] for one in stated]) for part in ("below", "above", "low", "error")
    )
    listed, false = (sum(one[part] for one in stated) for part in ("listed", "false"))
    return [
        name,
        f"{len(stated)} of {len(results)}",
        f"{100 * below.mean():.1f}%",
        f"{100 * above.mean():.1f}%",
        f"{low.mean():.2f}",
        f"{100 * error.mean():+.0f}",
        f"{100 * np.abs(error).mean():.0f}",
        str(sum(one["listed"] > 0 for one in stated)),
        f"{100 * false / listed:.0f}%" if listed else "-",
    ]


def unseen(records: Sequence[Record]) -> tuple[list[float], list[Record]]:
    """Choose the purity for each part of the sets on the others; return the results of all."""
    names = sorted({one["set"] for one in records})
    part = np.array([names.index(one["set"]) % PARTS for one in records])
    results, shipped = {}, class_mixture.LEAST_PURITY
    for class_mixture.LEAST_PURITY in PURITIES:
        results[class_mixture.LEAST_PURITY] = [judge(one, "nothing given") for one in records]
    class_mixture.LEAST_PURITY = shipped

    def holds(purity: float, number: int) -> bool:
        others = [one for one, own in zip(results[purity], part, strict=True) if own != number]
        for most, rate in ((1.0, 0.05), (0.05, 0.1)):
            below = [one["below"] for one in others if "below" in one and one["b"] < most]
            if below and np.concatenate(below).mean() > rate:
                return False
        return True

    chosen = [max(one for one in PURITIES if holds(one, number)) for number in range(PARTS)]
    return chosen, [results[chosen[number]][index] for index, number in enumerate(part)]


def tables(records: Sequence[Record]) -> str:
    records = [one for one in records if one["order"]]
    fair = [one for one in records if one["kind"] not in BIASED]
    purities, results = unseen(fair)
    rows = [row("nothing given, purity chosen without the set", results)]
    for given in ("nothing given", "b given"):
        results = [judge(one, given) for one in records]
        pairs = [*zip(records, results, strict=True)]
        at_random = [one for key, one in pairs if key["kind"] not in BIASED]
        if given == "b given":
            rows.append(row(f"{given}, P at random", at_random))
        for name, least, most in GROUPS:
            rows += some_row(name, [one for one in at_random if least <= one["b"] < most])
        for name in ("noise", "skewed", "10% false", *(BIASED if given != "b given" else ())):
            rows += some_row(name, [one for key, one in pairs if key["kind"].startswith(name)])
    for given in ("tested at random", "tested first"):
        rows.append(row(f"30 {given}, P at random", [judge(one, given) for one in fair]))
    head = ["given", "stated", "truth below", "above", "mean lower bound", "error", "absolute"]
    head += [f"`--fdr {FDR:g}` lists", "false rows"]
    of_few = []
    for n_pos in (30, 60, 100, 200):
        own = [
            [r for k, r in pairs if k["kind"] == f"{n_pos} known, {a:.0%} false"] for a in SHARES
        ]
        missed = [sum(one["a_missed"] for one in some) for some in own]
        highs = [100 * np.mean([one["a_high"] for one in some] or [np.nan]) for some in own]
        cells = zip(own, missed, highs, strict=True)
        of_few.append([str(n_pos), *(f"{len(x) - m} of {len(x)}, {h:.0f}%" for x, m, h in cells)])
    return (
        f"{len(records)} draws of {len({one['set'] for one in records})} sets; ranks"
        f" {', '.join(map(str, DEPTHS))}. Errors are in points. Purities chosen on the other sets:"
        f" {', '.join(f'{one:g}' for one in purities)}.\n\n{markdown_table(head, rows)}\n\n"
        "Draws whose interval of the fraction of P that is false contains the truth, and its mean"
        " upper end, by known positives and true fraction (b given):\n\n"
        f"{markdown_table(['known', '0%', '5%', '10%', '30%'], of_few)}"
    )


def some_row(name: str, results: Sequence[Record]) -> list[list[str]]:
    return [row(name, results)] if any("below" in one for one in results) else []


def main(argv: list[str]) -> None:
    parser = argparse.ArgumentParser("python -m experiments.quality estimates", description=__doc__)
    parser.add_argument("--draws", type=int, default=2)
    parser.add_argument("--first", type=int, default=0, help="number of the first draw")

    def works(given: argparse.Namespace) -> Iterator[Record]:
        files = sorted((given.data_dir / "tables").glob("*.csv.gz"))
        for name in [path.name.removesuffix(".csv.gz") for path in files] + TASKS_TOO.split(","):
            for number in range(given.first, given.first + given.draws):
                for kind in (*KINDS, *(FEW if name in OF_FEW else ())):
                    yield {"set": name, "kind": kind, "draw": number}
            read.cache_clear()

    run_log(parser, argv, works, order, tables)

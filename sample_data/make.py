"""Make the sample data: ``python sample_data/make.py [folder]``, always the same bytes.

Two problems are drawn by ``resvm simulate``; the digits come from scikit-learn. The compounds are
put together from fragments: those with an aryl sulfonamide at a heteroaryl amine are truly active.
The genome is drawn too: genes of the disease share some annotations and are expressed higher in two
tissues. So are the payments: frauds are larger, later, and made soon after a change of the account.
"""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
from pathlib import Path

from sklearn.datasets import load_digits

from resvm_cli.data.svmlight import Block, format_block
from resvm_cli.rows import Rows

SEED = 2014
N_ACTIVE, N_OTHER = 172, 688
N_HITS, N_HIDDEN, N_NEW = 80, 80, 60
N_FAMILIES, N_DISEASE_FAMILIES = 350, 35
N_ANNOTATIONS, N_OF_DISEASE, N_TISSUES = 300, 12, 8
N_KNOWN, N_WRONG = 36, 4
N_PAYMENTS, N_FRAUDS, N_REPORTED = 600, 70, 35
ARYLS = ("ccc({})cc1", "cc({})ccc1", "ccc({})c(F)c1", "ccc({})nc1", "c({})c(C)ccc1")
TAILS = ("F", "Cl", "Br", "C", "OC", "C#N", "C(F)(F)F", "N(C)C", "OCC", "C(=O)OC", "SC", "CC")
HETEROARYLS = ("c2ccccn2", "c2nccs2", "c2ncccn2", "c2cc(C)on2", "c2cccnc2", "c2nnc(C)s2")
ALKYLS = ("CC", "CCOC", "C2CCCCC2", "C2CC2", "CCN2CCOCC2", "Cc2ccccc2", "C(C)C", "CCc2ccccc2")
LINKS = ("C(=O)N", "NC(=O)N", "CN", "OC", "C(=O)O", "CCN", "SC")


def compound(rng: random.Random, active: bool) -> str:
    """A SMILES: an aryl with a tail, a link and a rest."""
    aryl = rng.choice(ARYLS).format(rng.choice(TAILS))
    if active:
        link, rest = "S(=O)(=O)N", rng.choice(HETEROARYLS)
    elif rng.random() < 0.2:
        link, rest = "S(=O)(=O)N", rng.choice(ALKYLS)  # half of what makes a compound active
    else:
        link, rest = rng.choice(LINKS), rng.choice(HETEROARYLS + ALKYLS)
    more = rng.choice(("", "", "C", "CC", "O"))
    return f"{more}c1{aryl[:-2]}c1{link}{rest}"


def _distinct(rng: random.Random, active: bool, number: int) -> list[str]:
    made: dict[str, None] = {}
    while len(made) < number:
        made[compound(rng, active)] = None
    return list(made)


def make_compounds(folder: Path) -> None:
    """A library with 80 known hits, the ids of those hidden in it, and new compounds."""
    rng = random.Random(SEED)
    actives, others = (
        _distinct(rng, active, number) for active, number in ((True, N_ACTIVE), (False, N_OTHER))
    )
    hits, new_actives = actives[:N_HITS], actives[N_HITS + N_HIDDEN :]
    n_others = N_NEW - len(new_actives)
    new = [*new_actives, *others[:n_others]]
    known = [(one, True) for one in actives[: N_HITS + N_HIDDEN]]
    known += [(one, False) for one in others[n_others:]]
    rng.shuffle(new)
    rng.shuffle(known)
    lines, hidden = ["id,smiles,vendor,outcome"], []
    for number, (smiles, active) in enumerate(known):
        name, hit = f"C{number:04d}", smiles in hits
        vendor = rng.choice(("Acme", "Borealis", '"Chem, Inc."'))
        lines.append(f"{name},{smiles},{vendor},{'hit' if hit else ''}")
        hidden += [name] if active and not hit else []
    folder.mkdir()
    (folder / "compounds.csv").write_text("\n".join([*lines, ""]))
    (folder / "hidden.txt").write_text("\n".join([*hidden, ""]))
    rows = [f"N{number:02d},{smiles}" for number, smiles in enumerate(new)]
    (folder / "new.csv").write_text("\n".join(["id,smiles", *rows, ""]))


def make_payments(folder: Path) -> None:
    """Card payments, half of whose frauds were reported, and the numbers of the others."""
    rng = random.Random(SEED)
    frauds = set(rng.sample(range(N_PAYMENTS), N_FRAUDS))
    reported = set(rng.sample(sorted(frauds), N_REPORTED))
    lines, hidden = ["payment,amount,hour,days_since_change,merchant,country,status"], []
    for number in range(N_PAYMENTS):
        fraud = number in frauds
        amount = rng.lognormvariate(4.4 if fraud else 3.3, 0.7)
        hour = rng.triangular(0, 24, 2 if fraud else 15)
        days = rng.expovariate(1 / (25 if fraud else 250))
        merchants = ("electronics", "gift cards", "travel", "grocery", "fuel", "clothing")
        merchant = rng.choices(merchants, (5, 5, 3, 1, 1, 1) if fraud else (1, 1, 2, 6, 4, 3))[0]
        country = rng.choices(("domestic", "abroad"), (2, 3) if fraud else (9, 1))[0]
        name, status = f"P{number:03d}", "fraud" if number in reported else ""
        lines.append(f"{name},{amount:.2f},{hour:.1f},{days:.0f},{merchant},{country},{status}")
        hidden += [name] if fraud and not status else []
    folder.mkdir()
    (folder / "payments.csv").write_text("\n".join([*lines, ""]))
    (folder / "hidden.txt").write_text("\n".join([*hidden, ""]))


def make_genome(folder: Path) -> None:
    """Genes in families, the ids of known disease genes, some of them wrong, and of hidden ones."""
    rng = random.Random(SEED)
    genes: list[tuple[bool, int, str]] = []
    for family in range(N_FAMILIES):
        disease = family < N_DISEASE_FAMILIES
        shared = rng.sample(range(N_OF_DISEASE, N_ANNOTATIONS), 6)
        if disease:
            shared += rng.sample(range(N_OF_DISEASE), 4)
        elif rng.random() < 0.5:
            shared += rng.sample(range(N_OF_DISEASE), 1)
        for _ in range(rng.choice((1, 2, 3))):
            own = set(rng.sample(shared, len(shared) - 1)) | set(
                rng.sample(range(N_ANNOTATIONS), 3)
            )
            levels = [rng.gauss(3.0, 1.0) for _ in range(N_TISSUES)]
            if disease:
                levels[:2] = [level + 1.5 for level in levels[:2]]
            row = [f"{feature + 1}:1" for feature in sorted(own)]
            row += [f"{N_ANNOTATIONS + 1 + i}:{level:.2f}" for i, level in enumerate(levels)]
            genes.append((disease, family, " ".join(row)))
    rng.shuffle(genes)
    names = [f"GENE{number:03d}" for number in range(1, len(genes) + 1)]
    true = [name for name, gene in zip(names, genes, strict=True) if gene[0]]
    false = [name for name, gene in zip(names, genes, strict=True) if not gene[0]]
    known = [*rng.sample(true, N_KNOWN), *rng.sample(false, N_WRONG)]
    folder.mkdir()
    texts = {
        "genome.svm": [f"0 {gene[2]} # {name}" for name, gene in zip(names, genes, strict=True)],
        "families.txt": [f"F{gene[1]:03d}" for gene in genes],
        "known.txt": sorted(known),
        "hidden.txt": [name for name in true if name not in known],
        "wrong.txt": sorted(known[N_KNOWN:]),
    }
    for name, lines in texts.items():
        (folder / name).write_text("\n".join([*lines, ""]))


def simulate(*options: str) -> None:
    """Run ``resvm simulate`` with options separated by spaces."""
    words = " ".join(options).split()
    program = [sys.executable, "-m", "resvm_cli", "simulate", *words, "--seed", str(SEED), "-q"]
    subprocess.run(program, check=True)


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent
    simulate(
        "--synthetic --contamination-pos 0.3 --contamination-unl 0.3 --test-pos 500 --test-neg 500",
        f"--decimals 4 -o {folder / 'synthetic'}",
    )
    make_compounds(folder / "compounds")
    make_genome(folder / "genome")
    make_payments(folder / "payments")
    features, digit = load_digits(return_X_y=True)
    names = [f"image-{number}" for number in range(len(digit))]
    with tempfile.TemporaryDirectory() as temporary:
        labelled = Path(temporary) / "digits.svm"
        labelled.write_bytes(format_block(Block.from_rows(Rows.from_dense(features), digit, names)))
        simulate(
            f"--data {labelled} --positive-label 7 --n-pos 50 --n-unl 700",
            f"--contamination-pos 0.1 --contamination-unl 0.1 -o {folder / 'digits'}",
        )


if __name__ == "__main__":
    main()

"""Molecules to Morgan fingerprints, by RDKit where it is installed."""

from __future__ import annotations

from resvm_cli.errors import DataError


class Morgan:
    """Circular fingerprints of a radius, folded to so many bits, or counts of them."""

    def __init__(self, bits: int, radius: int, counts: bool) -> None:
        try:
            from rdkit import Chem, rdBase
            from rdkit.Chem import rdFingerprintGenerator
        except ImportError:
            raise DataError(
                "--smiles-column needs a package that is not installed: rdkit",
                "pip install rdkit, or resvm-cli[convert]",
            ) from None
        self._silence = rdBase.BlockLogs()  # what it cannot read is told with its line
        self._read = Chem.MolFromSmiles
        self._generator = rdFingerprintGenerator.GetMorganGenerator(radius=radius, fpSize=bits)
        self._counts = counts

    def of(self, smiles: str) -> dict[int, int] | None:
        """Bits, ascending, and how often each is set; None for what is no molecule."""
        # SMILES are ASCII; bytes that are no text at all cannot be handed to RDKit
        molecule = self._read(smiles) if smiles and smiles.isascii() else None
        if molecule is None:
            return None
        if self._counts:
            found = self._generator.GetCountFingerprint(molecule).GetNonzeroElements()
            return dict(sorted(found.items()))
        return dict.fromkeys(self._generator.GetFingerprint(molecule).GetOnBits(), 1)

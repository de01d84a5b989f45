"""Embeddings: the angle between both sides, and whether each finds the same neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from evaltools.metrics.output_difference import KindFigures
from evaltools.tasks.inference_diff.output_kinds.kind import Output, Values

_LONGEST: Final = 1 << 14
_MOST_VECTORS: Final = 2000
"""Neighbours are looked for among the first of so many vectors."""


class Embedding:
    """Vectors that are compared by their angle: one per run, or several rows."""

    name = "embedding"
    needs = f"[..., length], with a length of 2 to {_LONGEST}"

    def is_kind(self, output: Output) -> bool:
        """Vectors that L2_NORMALIZATION makes, or that are called so."""
        is_called_so = "embed" in output.name.lower() and output.made_by not in ("SOFTMAX", "LOGISTIC")
        return self.fits(output) and (output.made_by == "L2_NORMALIZATION" or is_called_so)

    def fits(self, output: Output) -> bool:
        """Vectors of some length."""
        return output.is_real and bool(output.shape) and 2 <= output.shape[-1] <= _LONGEST

    def compare(self, test: npt.NDArray[np.generic], reference: npt.NDArray[np.generic], output: Output) -> Values:
        """The vectors, of length 1."""
        return {"test": _unit(test), "reference": _unit(reference)}

    def summarise(self, runs: Sequence[Values]) -> KindFigures:
        """``same_neighbour`` is the share of vectors whose nearest other vector is the same on both sides.

        ``found_again`` is the share of the test's vectors whose nearest of the reference's is their own.
        """
        test, reference = (np.concatenate([run[name] for run in runs]) for name in ("test", "reference"))
        cosines = np.einsum("ij,ij->i", test, reference, dtype=np.float64)
        test, reference = test[:_MOST_VECTORS], reference[:_MOST_VECTORS]
        several = len(test) > 2
        across = test @ reference.T
        own = np.diagonal(across)
        return KindFigures(
            kind=self.name,
            figures={
                "vectors": len(cosines),
                "mean_cosine": float(cosines.mean()),
                "smallest_cosine": float(cosines.min()),
                "same_neighbour": float(np.mean(_nearest(test) == _nearest(reference))) if several else None,
                "found_again": float(np.mean(own >= across.max(axis=1))) if several else None,
            },
            parts={},
            judged=[],
            decides=False,
        )

    def in_words(self, found: KindFigures) -> str:
        """Cosines, then neighbours.

        >>> figures = {"vectors": 9, "mean_cosine": 0.9999, "smallest_cosine": 0.999, "same_neighbour": 1.0}
        >>> Embedding().in_words(KindFigures("embedding", {**figures, "found_again": 1.0}, {}, [], False))
        'cosine 0.999900, 0.999000 at least; 100 % of 9 vectors have the same neighbour, 100 % are nearest to their own'
        """
        figures = found.figures
        text = f"cosine {figures['mean_cosine'] or 0:.6f}, {figures['smallest_cosine'] or 0:.6f} at least"
        same, again = figures["same_neighbour"], figures["found_again"]
        if same is None or again is None:
            return text
        vectors = f"{100 * same:.3g} % of {figures['vectors']} vectors have the same neighbour"
        return f"{text}; {vectors}, {100 * again:.3g} % are nearest to their own"


def _unit(values: npt.NDArray[np.generic]) -> npt.NDArray[np.float32]:
    rows: npt.NDArray[np.float64] = values.reshape(-1, values.shape[-1]).astype(np.float64)
    with np.errstate(all="ignore"):
        lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))
        unit: npt.NDArray[np.float32] = (rows / np.where(lengths > 0, lengths, 1.0)[:, None]).astype(np.float32)
    return np.nan_to_num(unit)


def _nearest(vectors: npt.NDArray[np.float32]) -> npt.NDArray[np.intp]:
    likeness = vectors @ vectors.T
    np.fill_diagonal(likeness, -np.inf)
    return np.asarray(likeness.argmax(axis=1))

"""What a kind of output is, and the two kinds of vectors: those that are scores of nothing, and embeddings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from evaltools.metrics.output_difference import KindFigures, RunAnswers
from evaltools.metrics.scores import compare_scores
from evaltools.tasks.framework.image_input import picture_channels, picture_layout, picture_size

PICTURE_CHANNELS: Final = (1, 3, 4)
MADE_AS_SCORES: Final = ("SOFTMAX", "LOG_SOFTMAX", "LOGISTIC")
"""Operators that make scores of classes."""
Values = Mapping[str, npt.NDArray[Any]]
"""What is kept of one run, by name."""
_SHORTEST: Final = 3
_LONGEST: Final = 1 << 14
_MOST_VECTORS: Final = 2000
"""Neighbours are looked for among the first of so many vectors."""


class Output(Struct, frozen=True):
    """What decides the kind of an output: its name, type and shape, the operator that makes it, the inputs' shapes.

    ``is_real``: its numbers are floats, or stand for real ones. ``beside`` are the shapes of all outputs of the model.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    made_by: str
    input_shapes: tuple[tuple[int, ...], ...]
    is_real: bool
    beside: tuple[tuple[int, ...], ...] = ()

    @property
    def picture(self) -> tuple[int, int, int] | None:
        """Height, width and channels of the first input that is shaped like a picture, in either layout."""
        for shape in self.input_shapes:
            layout = picture_layout((1, *shape[1:]), channels=PICTURE_CHANNELS)
            if layout is not None and min(size := picture_size(shape, layout)) > 1:
                return *size, picture_channels(shape, layout)
        return None

    @property
    def is_map(self) -> bool:
        """Whether it has a number, or a vector, for each pixel of the picture that goes in."""
        size = self.picture
        return size is not None and len(self.shape) in (3, 4) and self.shape[1:3] == size[:2]


class OutputKind(Protocol):
    """A kind of output, and what a difference means for it.

    ``needs`` says which shapes fit, for a person.
    """

    @property
    def name(self) -> str:
        """The name in ``--output_kind``."""

    @property
    def needs(self) -> str:
        """The shapes that :meth:`fits` accepts, in words."""

    def is_kind(self, output: Output) -> bool:
        """Whether shape and operators show that an output is of this kind."""

    def fits(self, output: Output) -> bool:
        """Whether an output can be of this kind at all."""

    def compare(
        self, test: npt.NDArray[np.generic], reference: npt.NDArray[np.generic], output: Output
    ) -> Values | None:
        """The values kept of one run; None where the reference's values show that it is of another kind.

        Both sides have the same shape, and real numbers if the output stands for them.
        """

    def answers(self, run: Values) -> RunAnswers:
        """How many answers of one run are others."""

    def summarise(self, runs: Sequence[Values]) -> KindFigures:
        """The figures over all runs, of which there is at least one."""

    def in_words(self, found: KindFigures) -> str:
        """The figures in one line."""


class Vector:
    """One vector per run, as long as an input."""

    name = "vector"
    needs = f"one axis of at least {_SHORTEST} numbers, the others 1"

    def is_kind(self, output: Output) -> bool:
        """Vectors as long as an input: those of other lengths are scores."""
        is_as_long = any(int(np.prod(shape)) == max(output.shape, default=0) for shape in output.input_shapes)
        return self.fits(output) and output.made_by not in MADE_AS_SCORES and is_as_long

    def fits(self, output: Output) -> bool:
        """Vectors of real numbers."""
        longer = [size for size in output.shape if size != 1]
        return output.is_real and len(longer) == 1 and longer[0] >= _SHORTEST

    def compare(self, test: npt.NDArray[np.generic], reference: npt.NDArray[np.generic], output: Output) -> Values:
        """Whether the largest element is another, ties apart: 0 or 1."""
        found = compare_scores(test.reshape(1, -1), reference.reshape(1, -1))
        assert found is not None
        return {"changed": np.array(found.changed)}

    def answers(self, run: Values) -> RunAnswers:
        """The largest element is the answer."""
        return RunAnswers(int(run["changed"]), 1)

    def summarise(self, runs: Sequence[Values]) -> KindFigures:
        """``same_largest`` is the share of the runs in which the same element is the largest on both sides."""
        same = len(runs) - sum(int(run["changed"]) for run in runs)
        return KindFigures(kind=self.name, figures={"same_largest": same / len(runs)}, parts={})

    def in_words(self, found: KindFigures) -> str:
        """The share of runs.

        >>> Vector().in_words(KindFigures("vector", {"same_largest": 0.95}, {}))
        'the same element is the largest in 95 % of the runs'
        """
        return f"the same element is the largest in {100 * (found.figures['same_largest'] or 0):.3g} % of the runs"


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

    def answers(self, run: Values) -> RunAnswers:
        """None: a vector is no answer by itself."""
        return RunAnswers(0, 0)

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
        )

    def in_words(self, found: KindFigures) -> str:
        """Cosines, then neighbours.

        >>> figures = {"vectors": 9, "mean_cosine": 0.9999, "smallest_cosine": 0.999, "same_neighbour": 1.0}
        >>> Embedding().in_words(KindFigures("embedding", {**figures, "found_again": 1.0}, {}))
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

"""Vectors of numbers that are no scores, such as what an autoencoder makes: whether the same element is the largest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from evaltools.metrics.output_difference import LARGEST, JudgedFigure, KindFigures
from evaltools.metrics.scores import compare_scores
from evaltools.tasks.inference_diff.output_kinds.kind import MADE_AS_SCORES, Output, Values

_SHORTEST: Final = 3


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
        """Whether the largest element is the same, and whether it is another only by a tie: 0 or 1 each."""
        found = compare_scores(test.reshape(1, -1), reference.reshape(1, -1))
        assert found is not None
        return {"same": np.array(found.same_best), "tied": np.array(found.tied_best)}

    def summarise(self, runs: Sequence[Values]) -> KindFigures:
        """``same_largest`` is the share of the runs in which the same element is the largest on both sides."""
        same, tied = (sum(int(run[name]) for run in runs) for name in ("same", "tied"))
        others = len(runs) - same - tied
        return KindFigures(
            kind=self.name,
            figures={"same_largest": same / len(runs)},
            parts={},
            judged=[JudgedFigure(LARGEST, others / len(runs), of=len(runs))],
            decides=False,
        )

    def in_words(self, found: KindFigures) -> str:
        """The share of runs.

        >>> Vector().in_words(KindFigures("vector", {"same_largest": 0.95}, {}, [], False))
        'the same element is the largest in 95 % of the runs'
        """
        return f"the same element is the largest in {100 * (found.figures['same_largest'] or 0):.3g} % of the runs"

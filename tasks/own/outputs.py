"""The outputs of the model as ``score`` gets them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from evaltools.tasks.own.tensors import TaskTensor


class Outputs(tuple[npt.NDArray[np.generic], ...]):
    """The arrays as the model gives them, in its order; ``tensors`` has name and quantisation of each.

    ``inputs`` describes the model's inputs.
    """

    tensors: Sequence[TaskTensor]
    inputs: Sequence[TaskTensor]

    def __new__(
        cls,
        arrays: Sequence[npt.NDArray[np.generic]],
        tensors: Sequence[TaskTensor],
        inputs: Sequence[TaskTensor] = (),
    ) -> Outputs:
        """Keep the arrays as they are."""
        outputs = super().__new__(cls, arrays)
        outputs.tensors = tensors
        outputs.inputs = inputs
        return outputs

    def real(self, number: int) -> npt.NDArray[np.float32]:
        """One output as real numbers: a quantised one is taken apart, others are only converted to float32.

        >>> from evaltools.tasks.own.tensors import Quantisation
        >>> tensor = TaskTensor("scores", (2,), np.dtype("uint8"), Quantisation(0.5, 10))
        >>> Outputs([np.array([10, 12], np.uint8)], [tensor]).real(0).tolist()
        [0.0, 1.0]
        """
        quantisation = self.tensors[number].quantisation
        values = self[number].astype(np.float32)
        if quantisation is None:
            return values
        return (values - np.float32(quantisation.zero_point)) * np.float32(quantisation.scale)

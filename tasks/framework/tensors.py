"""The model's inputs and outputs as a task gets them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import replace

from evaltools.tasks.framework.image_input import Layout, StatedLayout, picture_layout, picture_size


class Quantisation(NamedTuple):
    """Of a tensor: ``real = (quantised - zero_point) * scale``."""

    scale: float
    zero_point: int


class TaskTensor(Struct, frozen=True):
    """An input or output of the model. ``shape`` and ``dtype`` are those that the array must have, or has.

    ``normalization`` is what the model's metadata say of pictures, mean and standard deviation of values 0..255.
    ``stated_layout`` and ``channel_order`` are those of ``--input_layout`` and ``--channel_order``, the latter empty
    where it was not stated. ``free_size``: the model leaves the sizes of pictures open. ``of_reference``: the
    tensor is of the reference's model, which is another.
    """

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[np.generic]
    quantisation: Quantisation | None = None
    normalization: tuple[tuple[float, ...], tuple[float, ...]] | None = None
    stated_layout: StatedLayout = "auto"
    channel_order: str = ""
    free_size: bool = False
    of_reference: bool = False

    @property
    def layout(self) -> Layout | None:
        """How an input that takes an RGB picture has its channels; None for others."""
        return picture_layout(self.shape, self.stated_layout)

    @property
    def picture_size(self) -> tuple[int, int]:
        """Height and width of an input that takes a picture."""
        return picture_size(self.shape, self.layout or "nhwc")


def as_input(values: npt.NDArray[Any], tensor: TaskTensor) -> npt.NDArray[Any]:
    """Real numbers as an input has them: quantised where it is, rounded to its range; whole numbers stay what they are.

    >>> as_input(np.array([0.5, 9.0]), TaskTensor("x", (2,), np.dtype("int8"), Quantisation(0.1, 3))).tolist()
    [8, 93]
    """
    if values.dtype.kind != "f" or tensor.dtype.kind == "f":
        return values
    limits = np.iinfo(tensor.dtype.name)
    scale, zero_point = tensor.quantisation or Quantisation(1.0, 0)
    quantised = np.clip(np.rint(values / scale) + zero_point, limits.min, limits.max)
    return np.asarray(quantised, tensor.dtype)


class Outputs(tuple[npt.NDArray[np.generic], ...]):
    """The arrays as the model gives them, in its order; ``tensors`` has name and quantisation of each.

    Each has the shape and the type of the model's output, such as int8 of shape (1, 1001) for a quantised classifier.
    ``inputs`` describes the model's inputs. ``context`` is what ``prepare`` gave beside them. ``reference`` are the
    outputs of the reference for the same example, None for those of the reference itself, and where there are none.
    ``configuration`` is the name of the one that gave them.
    """

    tensors: Sequence[TaskTensor]
    inputs: Sequence[TaskTensor]
    context: Any
    reference: Outputs | None
    configuration: str

    def __new__(
        cls,
        arrays: Sequence[npt.NDArray[np.generic]],
        tensors: Sequence[TaskTensor],
        inputs: Sequence[TaskTensor] = (),
        context: Any = None,
        reference: Outputs | None = None,
        configuration: str = "",
    ) -> Outputs:
        """Keep the arrays as they are."""
        outputs = super().__new__(cls, arrays)
        outputs.tensors = tensors
        outputs.inputs = inputs
        outputs.context = context
        outputs.reference = reference
        outputs.configuration = configuration
        return outputs

    def real(self, number: int) -> npt.NDArray[np.float32]:
        """One output as real numbers: a quantised one is taken apart, others are only converted to float32.

        >>> tensor = TaskTensor("scores", (2,), np.dtype("uint8"), Quantisation(0.5, 10))
        >>> Outputs([np.array([10, 12], np.uint8)], [tensor]).real(0).tolist()
        [0.0, 1.0]
        """
        quantisation = self.tensors[number].quantisation
        values = self[number].astype(np.float32)
        if quantisation is None:
            return values
        return (values - np.float32(quantisation.zero_point)) * np.float32(quantisation.scale)

    def are_those_of(self, other: Outputs) -> bool:
        """Whether all numbers are the same, and stand for the same."""
        scales, other_scales = ([tensor.quantisation for tensor in side.tensors] for side in (self, other))
        return scales == other_scales and all(map(np.array_equal, self, other))


class ModelTensors(Struct, frozen=True):
    """The inputs and outputs of a model."""

    inputs: tuple[TaskTensor, ...]
    outputs: tuple[TaskTensor, ...]

    def with_channels(self, order: str) -> ModelTensors:
        """The same with the channels of pictures in this order."""
        return replace(self, inputs=tuple(replace(each, channel_order=order) for each in self.inputs))

    def of_outputs(
        self,
        arrays: Sequence[npt.NDArray[np.generic]],
        context: Any = None,
        reference: Outputs | None = None,
        configuration: str = "",
    ) -> Outputs:
        """The model's outputs, as a task gets them."""
        return Outputs(arrays, self.outputs, self.inputs, context, reference, configuration)

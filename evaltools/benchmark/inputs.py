"""The inputs that a model is measured on, the same in every run: the native tool's random numbers, or files."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from msgspec.structs import replace

from evaltools.benchmark.input_layers import InputLayer
from evaltools.datasets.native_uniform import REAL_TYPES, WHOLE_TYPES, NativeUniform, whole_limits
from evaltools.errors import DataError, ModelError, UsageError
from evaltools.file_content import MODEL_BYTES, Unreadable, content_of
from evaltools.model import ModelFile, TensorInfo
from evaltools.runtime.session import Array
from evaltools.tasks.framework.image_input import sizes_to_state

SENTENCE: Final = b"we're have some friends over saturday to hang out in the yard"
"""What the native tool puts into every element of a tensor of texts."""
_REAL_LIMITS: Final = (-0.5, 0.5)
_WHOLE_LIMITS: Final[Mapping[str, tuple[int, int]]] = {
    "int8": (-127, 127),
    "uint8": (0, 254),
    "int16": (0, 0),
    "uint16": (0, 0),
    "int32": (0, 99),
    "uint32": (0, 99),
    "int64": (0, 99),
    "bool": (0, 1),
}
"""int16 and uint16 are missing in the native tool's table, so that they are all zero there."""
_WITHOUT_RANGE: Final = ("bool", "float16", "bfloat16", "string")
_ONLY_FROM_FILES: Final = ("uint64", "complex128")
_MADE: Final = (*REAL_TYPES, *WHOLE_TYPES, *_ONLY_FROM_FILES)
"""The types of numbers; texts are made too."""
_STORED_AS: Final[Mapping[str, str]] = {"bfloat16": "uint16"}


def with_input_shapes(model: ModelFile, layers: Sequence[InputLayer]) -> tuple[ModelFile, list[str]]:
    """The model with the shapes that the flags ask for, and warnings; without ``layers`` those of the file.

    As in the native tool, inputs count by their order, so that a name which is not the tensor's only gives a warning.
    Sizes that the model fixes may change, too; the shapes of texts do not. Raises :class:`UsageError`.
    """
    if layers and len(layers) != len(model.inputs):
        listed = "; ".join(map(described, model.inputs))
        raise UsageError(
            f"Inputs mismatch: Model inputs #:{len(layers)} expected: {len(model.inputs)}. --input_layer names all "
            f"inputs or none, in the model's order: {listed}"
        )
    warnings = []
    inputs = list(model.inputs)
    for place, layer in enumerate(layers):
        tensor = inputs[place]
        if layer.name != tensor.name:
            warnings.append(f"Tensor # {tensor.index} is named {tensor.name} but flags call it {layer.name}")
        if tensor.dtype != "string":
            inputs[place] = _resized(tensor, layer)
        elif layer.shape != tensor.shape:
            warnings.append(f"Tensor # {tensor.index} holds texts and keeps its shape {sizes(tensor.shape)}")
    for tensor in inputs:
        if stated := sizes_to_state(tensor):
            warnings.append(
                f"The model leaves height and width of its input {tensor} open, so that a picture of 1 x 1 is "
                f"measured. State them, as in --input_layer={tensor.name} --input_layer_shape={stated}"
            )
    numbers = [tensor for tensor in inputs if tensor.dtype in _MADE]
    bytes_of_each = [array_type(tensor).itemsize * math.prod(tensor.shape) for tensor in numbers]
    return replace(model, inputs=tuple(inputs), largest_bytes=max([model.largest_bytes, *bytes_of_each])), warnings


def make_inputs(model: ModelFile, layers: Sequence[InputLayer]) -> tuple[tuple[Array, ...], list[str]]:
    """One array per input, in the model's order, and warnings; ``model`` is that of :func:`with_input_shapes`.

    Random numbers are those of the native tool: one random engine, started anew for this call, draws the inputs in
    their order. Texts are bytes in an array of objects; bfloat16 is its bits in uint16. For files see
    :func:`~evaltools.benchmark.inputs.read_values`. Raises :class:`UsageError`, :class:`DataError` for files and
    :class:`ModelError` for types for which there are no values.
    """
    layers = layers or [InputLayer(tensor.name, tensor.shape) for tensor in model.inputs]
    engine = NativeUniform()
    warnings: list[str] = []
    arrays = []
    for tensor, layer in zip(model.inputs, layers, strict=True):
        if tensor.dtype not in (*_MADE, "string"):
            raise ModelError(
                f"Don't know how to populate tensor {tensor.name} of type {tensor.dtype}; convert the model with "
                "another type for this input"
            )
        warnings += _ignored_range(tensor, layer)
        arrays.append(read_values(tensor, layer.file) if layer.file else _random(tensor, layer.limits, engine))
    return tuple(arrays), warnings


def _resized(tensor: TensorInfo, layer: InputLayer) -> TensorInfo:
    if len(layer.shape) != len(tensor.shape):
        raise UsageError(
            f"Input tensor #{tensor.index} should have {len(tensor.shape)} dimensions! --input_layer_shape gives "
            f"{sizes(layer.shape)} for {described(tensor)}"
        )
    if 0 in layer.shape and layer.shape != tensor.shape:
        raise UsageError(
            f"--input_layer_shape gives {sizes(layer.shape)} for {described(tensor)}; write 1 or more for each size"
        )
    return replace(tensor, shape=layer.shape)


def _ignored_range(tensor: TensorInfo, layer: InputLayer) -> list[str]:
    """A warning where a range has no effect."""
    if layer.limits is None:
        return []
    if layer.file:
        return [
            f"The input_name:{layer.name} appears both in input_layer_value_files and input_layer_value_range. The "
            "input_layer_value_range of the input_name will be ignored."
        ]
    if tensor.dtype in _WITHOUT_RANGE:
        return [
            f"The input_layer_value_range of the input_name:{layer.name} will be ignored. It is of type "
            f"{tensor.dtype}, for which there is none."
        ]
    return []


def _random(tensor: TensorInfo, given: tuple[int, int] | None, engine: NativeUniform) -> Array:
    dtype, count = tensor.dtype, math.prod(tensor.shape)
    if dtype == "string":
        return texts([SENTENCE] * count, tensor.shape)
    if dtype in _ONLY_FROM_FILES:
        raise ModelError(
            f"Don't know how to populate tensor {tensor.name} of type {dtype}; name all inputs with --input_layer and "
            "--input_layer_shape, and give this one's values with --input_layer_value_files=NAME:FILE"
        )
    limits = None if dtype in _WITHOUT_RANGE else given
    if dtype in REAL_TYPES:
        return engine.reals(dtype, count, *(limits or _REAL_LIMITS)).reshape(tensor.shape)
    smallest, largest = whole_limits(dtype)
    low, high = limits or _WHOLE_LIMITS[dtype]
    if low < smallest or high > largest:
        raise UsageError(
            f"--input_layer_value_range: the input {described(tensor)} cannot hold {low}..{high}; use limits within "
            f"{smallest}..{largest}"
        )
    return engine.integers(dtype, count, low, high).reshape(tensor.shape)


def read_values(tensor: TensorInfo, file: str) -> Array:
    """The values of an input of any type that NumPy has, or bfloat16, in the tensor's shape.

    Raw numbers are little-endian. Texts end with a zero byte each, but the whole of a ``.pb`` file is one. Raises
    :class:`DataError`, with the native tool's words first.
    """
    failed = f"Failed to read the input_layer_value_file:{file}"
    try:
        content = content_of(Path(file), MODEL_BYTES)
    except Unreadable as error:
        raise DataError(f"{failed}; {error}. Check the path behind --input_layer_value_files") from error
    if tensor.dtype == "string":
        return _from_texts(tensor, file, content)
    wanted = array_type(tensor)
    size = wanted.itemsize * math.prod(tensor.shape)
    if len(content) != size:
        raise DataError(
            f"The size of {file} is {len(content)} bytes. It should be {size} bytes. The input {described(tensor)} "
            "takes raw little-endian numbers, as array.tofile(FILE) writes them"
        )
    if tensor.dtype == "bool":
        return np.frombuffer(content, np.uint8).astype(np.bool_).reshape(tensor.shape)
    numbers: Array = np.frombuffer(content, wanted.newbyteorder("<")).astype(wanted)
    return numbers.reshape(tensor.shape)


def texts(values: Sequence[bytes], shape: tuple[int, ...]) -> Array:
    """An array of objects that holds the texts as bytes.

    One without dimensions has a bytes type instead, since both interpreters misread it otherwise.
    """
    if not shape:
        return np.array(values[0])
    array = np.empty(len(values), object)
    array[:] = values
    return array.reshape(shape)


def array_type(tensor: TensorInfo) -> np.dtype[Any]:
    """NumPy's type for a tensor of numbers; bfloat16 is its bits in uint16."""
    return np.dtype(_STORED_AS.get(tensor.dtype, tensor.dtype))


def described(tensor: TensorInfo) -> str:
    """The tensor in messages, with the shape that is run, as in ``image: uint8[1,8,8,3]``."""
    stored = f", stored as {_STORED_AS[tensor.dtype]}" if tensor.dtype in _STORED_AS else ""
    return f"{tensor.name or 'unnamed'}: {tensor.dtype}[{sizes(tensor.shape)}]{stored}"


def sizes(shape: Sequence[int]) -> str:
    """A shape as flags write it, such as ``1,8,8,3``."""
    return ",".join(map(str, shape))


def _from_texts(tensor: TensorInfo, file: str, content: bytes) -> Array:
    if file.endswith(".pb"):
        found = [content]
    elif content:
        found = content.removesuffix(b"\0").split(b"\0")
    else:
        found = []
    count = math.prod(tensor.shape)
    if len(found) != count:
        raise DataError(
            f"The number of string in the input_layer_value_file({file}) is {len(found)}. It should be {count}. A zero "
            f"byte ends each text of the input {described(tensor)}; a .pb file is one text as a whole"
        )
    if not tensor.shape and found[0].endswith(b"\0"):
        raise DataError(f"{file} ends with a zero byte, which Python's interpreters cut off a scalar's text")
    return texts(found, tensor.shape)

"""Values of one input from a file of ``--input_layer_value_files``: raw numbers, texts, ``.npy``."""

from __future__ import annotations

import io
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from evaltools.errors import DataError
from evaltools.model import TensorInfo
from evaltools.runtime.session import Array

_STORED_AS: Final[Mapping[str, str]] = {"bfloat16": "uint16"}


def read_values(tensor: TensorInfo, file: str) -> Array:
    """The values of an input of any type that NumPy has, or bfloat16, in the tensor's shape.

    Raw numbers are little-endian. Texts end with a zero byte each, but the whole of a ``.pb`` file is one. ``.npy``
    must have exactly the tensor's type and shape. Raises :class:`DataError`, with the native tool's words first.
    """
    content = _read(file)
    if file.lower().endswith(".npy"):
        return _from_npy(tensor, file, content)
    if tensor.dtype == "string":
        return _from_texts(tensor, file, content)
    wanted = array_type(tensor)
    size = wanted.itemsize * math.prod(tensor.shape)
    if len(content) != size:
        raise DataError(
            f"The size of {file} is {len(content)} bytes. It should be {size} bytes. The input {described(tensor)} "
            "takes raw little-endian numbers, or .npy"
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


def _read(file: str) -> bytes:
    failed = f"Failed to read the input_layer_value_file:{file}"
    if os.path.exists(file) and not os.path.isfile(file):
        raise DataError(f"{failed}; it is no regular file. Give a file of raw numbers, of texts, or .npy")
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise DataError(f"{failed}; {error.strerror}. Check the path behind --input_layer_value_files") from error


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
        raise _unfit(tensor, file, "ends with a zero byte, which Python's interpreters cut off a scalar's text")
    return texts(found, tensor.shape)


def _from_npy(tensor: TensorInfo, file: str, content: bytes) -> Array:
    try:
        loaded: Any = np.load(io.BytesIO(content), allow_pickle=False)
    except Exception as error:  # damaged files raise TokenError, EOFError, UnicodeDecodeError, MemoryError, ...
        raise _unfit(tensor, file, f"cannot be read as .npy: {str(error) or type(error).__name__}") from error
    if not isinstance(loaded, np.ndarray):
        raise _unfit(tensor, file, "holds several arrays, as .npz")
    if loaded.shape != tensor.shape:
        raise _unfit(tensor, file, f"has the shape {sizes(loaded.shape)}")
    if tensor.dtype == "string" and loaded.dtype.kind in "SU":
        found = [text.encode() if isinstance(text, str) else bytes(text) for text in loaded.ravel().tolist()]
        return texts(found, tensor.shape)
    if tensor.dtype == "string" or loaded.dtype.newbyteorder("=") != array_type(tensor):
        raise _unfit(tensor, file, f"has {loaded.dtype}")
    return np.ascontiguousarray(loaded, array_type(tensor)).reshape(tensor.shape)


def _unfit(tensor: TensorInfo, file: str, found: str) -> DataError:
    return DataError(
        f"Failed to read the input_layer_value_file:{file}; it {found}. The input {described(tensor)} takes exactly "
        "this type and shape; numpy.save writes such a .npy file"
    )

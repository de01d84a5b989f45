"""Inputs of a model from the user's own files: ``.npy``, ``.npz`` and raw bytes; arrays are read up to a size."""

from __future__ import annotations

import io
import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from evaltools.errors import DataError
from evaltools.file_content import MODEL_BYTES, Unreadable, content_of, zip_members

Array = npt.NDArray[np.generic]


class Wanted(Struct, frozen=True):
    """What a file's array must fit: an input tensor and the names that it goes by."""

    names: tuple[str, ...]
    dtype: str
    shape: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.names[0]!r} {self.dtype}[{','.join(map(str, self.shape))}]"


def read_input_files(texts: Sequence[str], tensors: Sequence[Wanted]) -> dict[int, list[Array]]:
    """Arrays for inputs, by position of the input, one per example.

    Each text is ``PATH`` or ``NAME=PATH``; a folder stands for its files in order of their names. ``.npz`` files name
    their inputs themselves. Raises :class:`DataError` for files that cannot be read or fit no input, and where inputs
    have different numbers of examples (an input with one example is used for all).
    """
    found: dict[int, list[Array]] = {}
    for text in texts:
        name, path = _split(text)
        for file in _files(path):
            for position, array in _read(file, name, tensors):
                found.setdefault(position, []).extend(_examples(array, tensors[position], file))
    counts = {position: len(arrays) for position, arrays in found.items()}
    several = {count for count in counts.values() if count != 1}
    if len(several) > 1:
        stated = ", ".join(f"{tensors[position].names[0]!r}: {count}" for position, count in counts.items())
        raise DataError(
            f"--input_files gives different numbers of examples ({stated}); give each input as many, or one"
        )
    return found


def hold_floats(texts: Sequence[str]) -> bool:
    """Whether any of these files states that it holds floats; raw bytes state nothing.

    Raises :class:`DataError` for what cannot be read.
    """
    files = (file for text in texts for file in _files(_split(text)[1]))
    return any(array.dtype.kind == "f" for file in files for array in _arrays(file).values())


def _split(text: str) -> tuple[str, Path]:
    if not text or os.path.exists(text) or "=" not in text:
        return "", _path(text)
    name, _, path = text.partition("=")
    while not os.path.exists(path) and "=" in path:
        more, _, path = path.partition("=")
        name = f"{name}={more}"
    return name, _path(path)


def _path(text: str) -> Path:
    if not text:
        raise DataError("--input_files: the path is empty; give PATH, or NAME=PATH for one input")
    return Path(text)


def _files(path: Path) -> list[Path]:
    if not os.path.exists(path):
        raise DataError(f"--input_files: {path} does not exist; give PATH, or NAME=PATH for one input")
    if not os.path.isdir(path):
        return [path]
    try:
        files = sorted(entry for entry in path.iterdir() if entry.is_file() and not entry.name.startswith("."))
    except OSError as error:
        raise DataError(f"--input_files: the folder {path} cannot be read: {error.strerror}") from error
    if not files:
        raise DataError(f"--input_files: the folder {path} has no files")
    return files


def _read(file: Path, name: str, tensors: Sequence[Wanted]) -> list[tuple[int, Array]]:
    arrays = _arrays(file)
    if file.suffix.lower() == ".npz":
        if not arrays:
            raise DataError(f"--input_files: {file} holds no array")
        if not name:
            return [(_position(key, tensors, file), array) for key, array in arrays.items()]
        if len(arrays) > 1:
            held = ", ".join(map(repr, arrays))
            raise DataError(f"--input_files: {file} holds several arrays ({held}), which cannot all be for {name!r}")
        return [(_position(name, tensors, file), array) for array in arrays.values()]
    position = _position(name, tensors, file)
    return [(position, array) for array in arrays.values()] or [(position, _raw(file, tensors[position]))]


def _arrays(file: Path) -> dict[str, Array]:
    """The arrays of a file by name, of ``.npy`` the only one; none of raw bytes, which do not say what they hold."""
    kind = file.suffix.lower()
    if kind not in (".npy", ".npz"):
        return {}
    content = _content(file)
    try:
        return {"": read_array(content)} if kind == ".npy" else dict(read_arrays(content))
    except Unreadable as error:
        raise _unreadable(file, error) from error


def _content(file: Path) -> bytes:
    try:
        return content_of(file, MODEL_BYTES)
    except Unreadable as error:
        raise _unreadable(file, error) from error


def _unreadable(file: Path, error: Exception) -> DataError:
    return DataError(f"--input_files: {file} cannot be read: {error}")


def _position(name: str, tensors: Sequence[Wanted], file: Path) -> int:
    if not name and len(tensors) == 1:
        return 0
    for position, tensor in enumerate(tensors):
        if name in tensor.names:
            return position
    if name.isdecimal() and int(name) < len(tensors):
        return int(name)
    known = ", ".join(map(str, tensors))
    if not name:
        raise DataError(f"--input_files: {file} does not say which input it is for; write NAME={file}. Inputs: {known}")
    raise DataError(f"--input_files: {file} is for {name!r}, which is not an input. Inputs: {known}")


def _raw(file: Path, tensor: Wanted) -> Array:
    if tensor.dtype == "string":
        raise DataError(f"--input_files: {file}: texts cannot be read from raw bytes; use .npy or .npz")
    content = _content(file)
    size = np.dtype(tensor.dtype).itemsize * int(np.prod(tensor.shape, dtype=np.int64))
    if not content or size == 0 or len(content) % size:
        raise DataError(
            f"--input_files: {file} has {len(content)} bytes; the input {tensor} takes {size}, or a multiple"
        )
    return np.frombuffer(content, np.dtype(tensor.dtype).newbyteorder("<")).reshape(-1, *tensor.shape)


def _examples(array: Array, tensor: Wanted, file: Path) -> list[Array]:
    converted = _converted(array, tensor, file)
    if array.shape == tensor.shape:
        return [converted]
    one = tensor.shape[1:] if tensor.shape[:1] == (1,) else tensor.shape
    if array.ndim and len(array) and array.shape[1:] in (tensor.shape, one):
        return [converted[index : index + 1].reshape(tensor.shape) for index in range(len(array))]
    raise DataError(
        f"--input_files: {file} has an array of shape {list(array.shape)}; the input {tensor} takes "
        f"{list(tensor.shape)}, or several of them along a first axis"
    )


def _converted(array: Array, tensor: Wanted, file: Path) -> Array:
    if tensor.dtype == "string":
        if array.dtype.kind in "SU":
            texts = [item.encode() if isinstance(item, str) else bytes(item) for item in array.ravel().tolist()]
            content: Any = np.empty(len(texts), object)
            content[:] = texts
            texts_array: Array = content.reshape(array.shape)
            return texts_array
    elif is_same_kind(array.dtype, np.dtype(tensor.dtype)):
        with np.errstate(over="ignore"):
            converted = np.ascontiguousarray(array, tensor.dtype).reshape(array.shape)
        if not _fits(array, converted):
            raise DataError(f"--input_files: {file} has numbers beyond {tensor.dtype}, the type of the input {tensor}")
        return converted
    is_rounded = array.dtype.kind == "f" and tensor.dtype.lstrip("u").startswith("int")
    hint = ": save round(real / scale) + zero point, which evaltools inspect shows" if is_rounded else ""
    raise DataError(f"--input_files: {file} has {array.dtype}; the input {tensor} needs {tensor.dtype}{hint}")


def is_same_kind(given: np.dtype[Any], wanted: np.dtype[Any]) -> bool:
    """Whole numbers may come with another sign and size; whether they fit shows when they are converted."""
    both_whole = given.kind in "iu" and wanted.kind in "iu"
    return given.kind in "biufc" and (both_whole or np.can_cast(given, wanted, "same_kind"))


def _fits(array: Array, converted: Array) -> bool:
    if converted.dtype.kind not in "iu":
        return bool(np.array_equal(np.isfinite(array), np.isfinite(converted)))
    limits = np.iinfo(converted.dtype.name)
    return not array.size or (int(array.min()) >= limits.min and int(array.max()) <= limits.max)


def read_array(content: bytes) -> npt.NDArray[Any]:
    """The array in the content of an ``.npy`` file; raises :class:`Unreadable`.

    >>> import io
    >>> file = io.BytesIO()
    >>> np.save(file, np.zeros((2, 3), np.float32))
    >>> read_array(file.getvalue()).shape
    (2, 3)
    >>> read_array(file.getvalue()[:-1])
    Traceback (most recent call last):
    evaltools.file_content.Unreadable: it states an array of 24 bytes, and has 23
    """
    try:
        return _array_in(content)
    except Unreadable:
        raise
    except Exception as error:  # TokenError, SyntaxError, EOFError, MemoryError, ...
        raise Unreadable(str(error) or type(error).__name__) from error


def _array_in(content: bytes) -> npt.NDArray[Any]:
    npy: Any = np.lib.format
    stream = io.BytesIO(content)
    read_header = npy.read_array_header_1_0 if npy.read_magic(stream) == (1, 0) else npy.read_array_header_2_0
    shape, _, dtype = read_header(stream)
    if dtype.hasobject:
        raise Unreadable("it holds Python objects (pickles), which are never loaded; save only arrays of numbers")
    stated, there_are = math.prod(shape) * dtype.itemsize, len(content) - stream.tell()
    if stated > there_are:
        raise Unreadable(f"it states an array of {stated} bytes, and has {there_are}")
    stream.seek(0)
    found: npt.NDArray[Any] = np.load(stream, allow_pickle=False)
    return found


def read_arrays(content: bytes) -> dict[str, npt.NDArray[Any]]:
    """The arrays in the content of an ``.npz`` file by name; raises :class:`Unreadable`."""
    with zip_members(content) as archive:
        return {member.removesuffix(".npy"): read_array(archive.read(member)) for member in archive.namelist()}

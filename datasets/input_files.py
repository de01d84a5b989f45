"""Inputs of a model from the user's own files: ``.npy``, ``.npz`` and raw bytes."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from evaltools.errors import DataError

Array = npt.NDArray[np.generic]


@dataclass(frozen=True)
class Wanted:
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


def _split(text: str) -> tuple[str, Path]:
    if not text or os.path.exists(text) or "=" not in text:
        return "", Path(text)
    name, _, path = text.partition("=")
    while not os.path.exists(path) and "=" in path:
        more, _, path = path.partition("=")
        name = f"{name}={more}"
    return name, Path(path)


def _files(path: Path) -> list[Path]:
    if not path.exists():
        raise DataError(f"--input_files: {path} does not exist; give PATH, or NAME=PATH for one input")
    if not path.is_dir():
        return [path]
    files = sorted(entry for entry in path.iterdir() if entry.is_file() and not entry.name.startswith("."))
    if not files:
        raise DataError(f"--input_files: the folder {path} has no files")
    return files


def _read(file: Path, name: str, tensors: Sequence[Wanted]) -> list[tuple[int, Array]]:
    try:
        if file.suffix == ".npz":
            with np.load(file, allow_pickle=False) as archive:
                if name and len(archive.files) == 1:
                    return [(_position(name, tensors, file), archive[archive.files[0]])]
                return [(_position(key, tensors, file), archive[key]) for key in archive.files]
        position = _position(name, tensors, file)
        if file.suffix == ".npy":
            return [(position, np.load(file, allow_pickle=False))]
        return [(position, _raw(file, tensors[position]))]
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise DataError(f"--input_files: {file} cannot be read: {error}") from error


def _position(name: str, tensors: Sequence[Wanted], file: Path) -> int:
    if not name and len(tensors) == 1:
        return 0
    for position, tensor in enumerate(tensors):
        if name in tensor.names or name == str(position):
            return position
    known = ", ".join(map(str, tensors))
    if not name:
        raise DataError(f"--input_files: {file} does not say which input it is for; write NAME={file}. Inputs: {known}")
    raise DataError(f"--input_files: {file} is for {name!r}, which is no input. Inputs: {known}")


def _raw(file: Path, tensor: Wanted) -> Array:
    if tensor.dtype == "string":
        raise DataError(f"--input_files: {file}: texts cannot be read from raw bytes; use .npy or .npz")
    content = file.read_bytes()
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
    if array.shape[1:] == tensor.shape and len(array):
        return list(converted)
    if tensor.shape[:1] == (1,) and array.shape[1:] == tensor.shape[1:] and len(array):
        return list(converted[:, None])
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
    elif array.dtype.kind in "biufc" and np.can_cast(array.dtype, np.dtype(tensor.dtype), "same_kind"):
        wanted = np.dtype(tensor.dtype)
        if wanted.kind in "iu" and array.size and not _fits(array, wanted):
            raise DataError(f"--input_files: {file} has numbers beyond {tensor.dtype}, the type of the input {tensor}")
        return np.ascontiguousarray(array, wanted)
    raise DataError(f"--input_files: {file} has {array.dtype}; the input {tensor} needs {tensor.dtype}")


def _fits(array: Array, wanted: np.dtype[Any]) -> bool:
    limits = np.iinfo(wanted)
    return int(array.min()) >= limits.min and int(array.max()) <= limits.max

"""Arrays in memory, or what lies in a folder, as the inputs of an inference diff."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from evaltools.datasets.input_files import is_same_kind
from evaltools.errors import UsageError
from evaltools.model import ModelFile, TensorInfo, read_model
from evaltools.parameter import did_you_mean
from evaltools.preprocess import IMAGE_EXTENSIONS
from evaltools.tasks.inference_diff.options import INPUT_KINDS

OneRun = npt.NDArray[Any] | Mapping[str, npt.ArrayLike] | Sequence[npt.ArrayLike]
Inputs = str | Path | OneRun | Iterable[OneRun]


def input_options(inputs: Inputs, model: Path, folder: Path) -> dict[str, Any]:
    """The options that give these inputs; arrays are written below ``folder``.

    A word that ``--inputs`` takes is one, unless a file or folder has that name.
    """
    if isinstance(inputs, str) and inputs in INPUT_KINDS and not os.path.exists(inputs):
        return {"inputs": inputs}
    if isinstance(inputs, str | Path):
        path = Path(inputs)
        has_pictures = path.is_dir() and any(Path(name).suffix.lower() in IMAGE_EXTENSIONS for name in os.listdir(path))
        return {"input_images": str(path)} if has_pictures else {"input_files": (str(path),)}
    read = read_model(model)
    runs = _runs(inputs, read)
    if not runs:
        raise UsageError("inputs is empty; give an array, arrays by name, several of either, or leave it out")
    place = folder / _digest(runs)
    if not place.is_dir():
        unfinished = folder / f"{place.name}.part"
        unfinished.mkdir(parents=True, exist_ok=True)
        for number, run in enumerate(runs):
            np.savez(unfinished / f"{number:09d}.npz", **run)
        unfinished.rename(place)
    return {"input_files": (str(place),)}


def _digest(runs: Sequence[Mapping[str, npt.NDArray[Any]]]) -> str:
    """Of names, types, shapes and values, so that other arrays lie in another folder."""
    checksum = hashlib.sha256()
    for run in runs:
        for name, array in run.items():
            checksum.update(f"{name}\0{array.dtype.str}{array.shape}\0".encode())
            checksum.update(np.ascontiguousarray(array).tobytes())
    return checksum.hexdigest()[:16]


def _runs(inputs: Any, model: ModelFile) -> list[dict[str, Any]]:
    """The arrays of each run by the numbers of the inputs."""
    if _is_one(inputs, model):
        return [_run(inputs, model)]
    if isinstance(inputs, np.ndarray):
        shape = model.inputs[0].shape
        if len(model.inputs) == 1 and inputs.shape[1:] == shape:
            return [_run(array, model) for array in inputs]
        if len(model.inputs) == 1 and shape[:1] == (1,) and inputs.shape[1:] == shape[1:]:
            return [_run(array[None], model) for array in inputs]
        raise UsageError(f"inputs has the shape {list(inputs.shape)}; the model takes {_wanted(model)}")
    if not isinstance(inputs, Iterable):
        raise UsageError(
            f"inputs is of the type {type(inputs).__name__}; give an array, arrays by name, or several of either"
        )
    return [_run(each, model) for each in inputs]


def _is_one(inputs: Any, model: ModelFile) -> bool:
    """Whether these are the inputs of a single run."""
    if isinstance(inputs, Mapping):
        return True
    if isinstance(inputs, np.ndarray):
        return len(model.inputs) == 1 and _fits(inputs, model.inputs[0])
    several = isinstance(inputs, Sequence) and len(inputs) == len(model.inputs) > 1
    return several and all(not isinstance(each, Mapping | list | tuple) for each in inputs)


def _fits(array: npt.NDArray[Any], tensor: TensorInfo) -> bool:
    return _is_of(array.shape, tensor.shape_signature)


def _is_of(shape: Sequence[int], known: Sequence[int]) -> bool:
    """Whether a shape is one that an input takes; -1 stands for any size."""
    return len(shape) == len(known) and all(size == each or each == -1 for size, each in zip(shape, known, strict=True))


def _run(given: Any, model: ModelFile) -> dict[str, npt.NDArray[Any]]:
    if isinstance(given, Mapping):
        named = {str(name): (_named(str(name), model), array) for name, array in given.items()}
        if not len(named) == len({tensor.index for tensor, _ in named.values()}) == len(model.inputs):
            names = ", ".join(named) or "none"
            raise UsageError(f"a run of inputs names {names}; the model takes {_wanted(model)}")
        return {_number(tensor, model): _fitted(array, tensor) for tensor, array in named.values()}
    arrays = list(given) if isinstance(given, list | tuple) and len(model.inputs) > 1 else [given]
    if len(arrays) != len(model.inputs):
        word = "array" if len(arrays) == 1 else "arrays"
        raise UsageError(f"a run of inputs has {len(arrays)} {word}; the model takes {_wanted(model)}")
    return {_number(tensor, model): _fitted(array, tensor) for tensor, array in zip(model.inputs, arrays, strict=True)}


def _number(tensor: TensorInfo, model: ModelFile) -> str:
    """What a file of arrays calls an input; its name may be one that NumPy keeps for itself."""
    return str(model.inputs.index(tensor))


def _named(name: str, model: ModelFile) -> TensorInfo:
    """The input that goes by a name, or by its number; raises :class:`UsageError`."""
    for number, tensor in enumerate(model.inputs):
        if name in (tensor.signature_name, tensor.name, str(number)):
            return tensor
    known = [tensor.signature_name or tensor.name for tensor in model.inputs]
    raise UsageError(
        f"inputs: {name!r} is not an input of the model; it takes {_wanted(model)}.{did_you_mean(name, known)}"
    )


def _fitted(given: Any, tensor: TensorInfo) -> npt.NDArray[Any]:
    """The array as the input takes it, or several along a first axis; a first axis of 1 may be missing.

    Raises :class:`UsageError`.
    """
    try:
        array = np.asarray(given)
    except (ValueError, TypeError) as error:
        raise UsageError(
            f"inputs: what is given for the input {_described(tensor)} is not an array: {error}"
        ) from error
    is_text = tensor.dtype == "string"
    if array.dtype.kind not in "SU" if is_text else not is_same_kind(array.dtype, np.dtype(tensor.dtype)):
        raise UsageError(
            f"inputs: an array of {array.dtype} is for the input {_described(tensor)}; give {tensor.dtype}"
        )
    known = tensor.shape_signature
    if tensor.shape[:1] == (1,) and _is_of(array.shape, known[1:]):
        return array[None]
    one = known[1:] if tensor.shape[:1] == (1,) else known
    is_several = array.ndim > 0 and len(array) > 0 and (_is_of(array.shape[1:], known) or _is_of(array.shape[1:], one))
    if not (_is_of(array.shape, known) or is_several):
        raise UsageError(
            f"inputs: an array of the shape {list(array.shape)} is for the input {_described(tensor)}; give one of "
            "that shape, or several along a first axis"
        )
    return array


def _wanted(model: ModelFile) -> str:
    return ", ".join(map(_described, model.inputs))


def _described(tensor: TensorInfo) -> str:
    return str(replace(tensor, name=tensor.signature_name or tensor.name))

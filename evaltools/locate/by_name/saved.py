"""Tensors that another framework gave, saved in an ``.npz`` file under the names of the model's tensors."""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from itertools import permutations
from pathlib import Path
from typing import Final

import numpy as np
from msgspec import Struct

from evaltools.datasets.input_files import read_arrays
from evaltools.errors import DataError
from evaltools.file_content import MODEL_BYTES, content_of
from evaltools.locate.by_name.match import fit
from evaltools.model import TensorInfo
from evaltools.runtime.session import Array
from evaltools.tasks.inference_diff.model_pair import convert
from evaltools.tasks.inference_diff.output_order import names_of

FLAG: Final = "--reference_tensors"
MOST_NAMED: Final = 5
_NHWC_OF_NCHW: Final = (0, 2, 3, 1)


class SavedFile(Struct, frozen=True, eq=False):
    """The arrays of a file by name, real numbers, and the digest of the file."""

    path: Path
    arrays: Mapping[str, Array]
    sha256: str


def read_saved(path: Path) -> SavedFile:
    """Read the file; raises :class:`DataError` for one that is no ``.npz`` of numbers."""
    try:
        content = content_of(path, MODEL_BYTES)
        if not zipfile.is_zipfile(path):
            raise DataError(f'{FLAG}={path} is no .npz file; save it with numpy.savez(path, **{{"NAME": array}})')
        arrays = read_arrays(content)
    except DataError:
        raise
    except Exception as error:  # damaged files raise zlib.error, NotImplementedError, EOFError, ...
        raise DataError(f"{FLAG}={path} cannot be read: {_reason(error)}") from error
    for name, array in arrays.items():
        if array.dtype.kind not in "biuf":
            raise DataError(f"{FLAG}={path}: {name!r} holds {array.dtype}; save real numbers, as with .numpy()")
    return SavedFile(path, arrays, hashlib.sha256(content).hexdigest())


def _reason(error: Exception) -> str:
    if isinstance(error, OSError):
        return str(error.strerror or error)
    if "allow_pickle" in str(error):
        return "it holds Python objects (pickles), which are never loaded; save arrays of numbers alone"
    return str(error) or type(error).__name__


def saved_inputs(saved: SavedFile, inputs: Sequence[TensorInfo]) -> tuple[Array, ...] | None:
    """The inputs in the model's types, None where the file has none; raises :class:`DataError` for some alone."""
    found = [next((name for name in names_of(tensor) if name in saved.arrays), "") for tensor in inputs]
    if not any(found):
        return None
    for tensor, name in zip(inputs, found, strict=True):
        if not name:
            raise DataError(
                f"{FLAG}={saved.path} has some of the model's inputs, but not {tensor}; save it under that name, too"
            )
        require_shape(saved, name, tensor.shape)
    return tuple(_as_input(saved.arrays[name], tensor) for tensor, name in zip(inputs, found, strict=True))


def _as_input(values: Array, tensor: TensorInfo) -> Array:
    """Real numbers as an input's type; whole ones of a quantised input's own type are taken as they are."""
    if values.dtype.name == tensor.dtype:
        return np.ascontiguousarray(values).reshape(tensor.shape)
    given = TensorInfo(0, tensor.name, values.dtype.name, tensor.shape, tensor.shape, None, None)
    return np.ascontiguousarray(convert(values, given, tensor))


def unused(saved: SavedFile, used: Iterable[str], inputs: Sequence[TensorInfo]) -> str:
    """A sentence about the names that match nothing, empty where there are none."""
    known = {*used, *(name for tensor in inputs for name in names_of(tensor))}
    left = [name for name in saved.arrays if name not in known]
    if not left:
        return ""
    listed = ", ".join(map(repr, left[:MOST_NAMED]))
    more = f" and {len(left) - MOST_NAMED} more" if len(left) > MOST_NAMED else ""
    return f"{saved.path.name} has arrays whose names are those of no tensor that an operator computes: {listed}{more}"


def require_shape(saved: SavedFile, name: str, wanted: tuple[int, ...]) -> None:
    """Raise :class:`DataError` for an array of another shape; sizes of 1 and open ones do not count."""
    shape = saved.arrays[name].shape
    if fit(shape, wanted):
        return
    raise DataError(
        f"{FLAG}={saved.path}: {name!r} has the shape {list(shape)}, the tensor {list(wanted)}; only sizes of 1 may "
        f"differ.{_advice(shape, wanted)}"
    )


def _advice(shape: tuple[int, ...], wanted: tuple[int, ...]) -> str:
    """How to turn the axes, where that helps.

    >>> _advice((1, 8, 4, 6), (1, 4, 6, 8))
    ' It looks like NCHW, as PyTorch has it: save .permute(0, 2, 3, 1)'
    """
    if len(shape) != len(wanted) or sorted(shape) != sorted(wanted) or len(shape) > len(_NHWC_OF_NCHW):
        return ""
    turned = [axes for axes in permutations(range(len(shape))) if tuple(shape[axis] for axis in axes) == wanted]
    if _NHWC_OF_NCHW in turned:
        return " It looks like NCHW, as PyTorch has it: save .permute(0, 2, 3, 1)"
    return f" Its axes are in another order: save .transpose{turned[0]}"

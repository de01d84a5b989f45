"""Recordings as the input of a model."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from math import gcd
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from evaltools.datasets.input_files import read_array
from evaltools.datasets.labels import read_labels
from evaltools.datasets.order import Order, chosen
from evaltools.errors import DataError, ImageError, TaskError, UsageError
from evaltools.file_content import DATA_BYTES, Unreadable, content_of
from evaltools.runtime.session import Array
from evaltools.tasks.framework.definition import Example
from evaltools.tasks.framework.tensors import TaskTensor, as_input

_ENDINGS: Final = (".wav", ".npy")


def listed(
    folder: Path, labels: Path | None, num_recordings: int, order: Order = "native", seed: int = 1
) -> list[Example]:
    """The recordings in the folders of a folder, each with the number of its label; raises :class:`DataError`."""
    if num_recordings < 0:
        raise UsageError(f"--num_recordings={num_recordings}: give a number of recordings, or 0 for all")
    found = sorted(path for path in folder.glob("*/*") if path.suffix.lower() in _ENDINGS)
    if not found:
        raise DataError(f"--recordings={folder} has no folder with .wav files; give one folder for each label in it")
    known = (
        None if labels is None else {name: number for number, name in enumerate(read_labels(labels, "--labels").lines)}
    )
    examples = []
    for path in chosen(found, num_recordings, order, seed):
        label = path.parent.name
        if known is not None and label not in known:
            raise DataError(
                f"{path}: its label is {label!r}, of which --labels={labels} has no line; name the folder as there"
            )
        examples.append(Example(f"{label}/{path.name}", path, None if known is None else known[label]))
    return examples


def model_input(sample_rate: int, path: Path, tensors: Sequence[TaskTensor]) -> tuple[Array, ...]:
    """The window of a recording; raises :class:`ImageError` for a file that is none."""
    if len(tensors) != 1:
        raise TaskError(f"the model has {len(tensors)} inputs; expected is one, a window of samples")
    [tensor] = tensors
    if path.suffix.lower() == ".npy":
        return (as_input(_array_in(path, tensor), tensor),)
    if sum(size != 1 for size in tensor.shape) > 1:
        raise TaskError(
            f"the model's input {tensor.name!r} is {tensor.dtype}{list(tensor.shape)} and no window of samples; give "
            "its features as .npy files"
        )
    window = middle(samples_in(path, sample_rate), int(np.prod(tensor.shape))).reshape(tensor.shape)
    if tensor.quantisation is None and tensor.dtype.kind in "iu":
        window = np.rint(window * np.iinfo(tensor.dtype.name).max)
    return (as_input(window, tensor),)


def samples_in(path: Path, sample_rate: int) -> npt.NDArray[np.float64]:
    """A WAV file as one channel from -1 to 1, at a rate; raises :class:`ImageError`."""
    from scipy import signal
    from scipy.io import wavfile

    try:
        rate, samples = wavfile.read(path)
    except (OSError, ValueError, EOFError, struct.error) as error:
        raise ImageError(f"{path}: no WAV file that can be read: {error}") from error
    values = samples.astype(np.float64)
    if samples.dtype.kind in "iu":
        middle_value = 128 if samples.dtype.kind == "u" else 0
        values = (values - middle_value) / (np.iinfo(samples.dtype).max - middle_value + 1)
    mono = values.mean(axis=1) if values.ndim > 1 else values
    common = gcd(rate, sample_rate)
    resampled: npt.NDArray[np.float64] = signal.resample_poly(mono, sample_rate // common, rate // common)
    return mono if rate == sample_rate else resampled


def middle(samples: npt.NDArray[Any], length: int) -> npt.NDArray[Any]:
    """So many samples from the middle, with zeros around fewer ones.

    >>> middle(np.array([1, 2, 3, 4, 5]), 3).tolist(), middle(np.array([1, 2]), 5).tolist()
    ([2, 3, 4], [0, 1, 2, 0, 0])
    """
    if len(samples) >= length:
        start = (len(samples) - length) // 2
        return samples[start : start + length]
    before = (length - len(samples)) // 2
    return np.pad(samples, (before, length - len(samples) - before))


def _array_in(path: Path, tensor: TaskTensor) -> npt.NDArray[Any]:
    try:
        found = read_array(content_of(path, DATA_BYTES))
    except Unreadable as error:
        raise ImageError(f"{path}: no array that can be read: {error}") from error
    if found.size != int(np.prod(tensor.shape)):
        raise ImageError(f"{path}: the array has the shape {list(found.shape)}; the model takes {list(tensor.shape)}")
    return np.asarray(found.reshape(tensor.shape))

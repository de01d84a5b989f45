"""The examples of a task.yaml: inputs of a kind, and what is right for each."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import replace

from evaltools.datasets.input_files import read_array, read_arrays
from evaltools.datasets.labels import read_labels
from evaltools.errors import DataError, ImageError, TaskError
from evaltools.file_content import MODEL_BYTES, Unreadable, content_of
from evaltools.preprocess import Letterbox
from evaltools.runtime.session import Array
from evaltools.tasks.audio import sounds
from evaltools.tasks.own.definition import Example
from evaltools.tasks.own.pictures import matched, pairs, picture_transform
from evaltools.tasks.own.tensors import TaskTensor, as_input
from evaltools.tasks.shared.image_input import load_picture
from evaltools.tasks.task_file import schema
from evaltools.tasks.text import rows

Wanted = Literal["label", "number", "file", "array"]
"""What an output is compared with: the number of a label, a number, a file as it is, or an array."""
_ENDINGS = (".npz", ".npy")


class Stored(Struct, frozen=True):
    """An array in a file, ``name`` in an .npz file; it is read when it is needed."""

    path: Path
    name: str = ""


def listed(
    task: schema.TaskFile, given: Path, wanted: Wanted, truth_path: Path | None = None, labels: Path | None = None
) -> list[Example]:
    """The inputs at a path, each with what is right for it; raises :class:`DataError` where these do not fit.

    ``truth_path`` and ``labels`` are those of the truth, if it has them.
    """
    inputs, truth = task.inputs, task.truth
    files = truth_path if isinstance(truth, schema.Files) else None
    if isinstance(inputs, schema.Rows):
        column = truth.name if isinstance(truth, schema.Column) else ""
        examples = rows.listed(given, column, wanted == "label", 0)
    elif isinstance(inputs, schema.Recordings):
        examples = sounds.listed(given, labels if isinstance(truth, schema.Folders) else None, 0)
    elif isinstance(inputs, schema.Pictures):
        examples = pairs(given, files)
    else:
        examples = matched(_arrays_in(given), files)
    if isinstance(truth, schema.Lines) and truth_path is not None:
        return _with_lines(examples, truth_path, labels, wanted)
    if isinstance(truth, schema.Array):
        return [dataclasses.replace(each, target=Stored(each.input, truth.name)) for each in examples]
    if isinstance(truth, schema.Files) and wanted == "array":
        return [dataclasses.replace(each, target=Stored(each.target)) for each in examples]
    return examples


def _arrays_in(folder: Path) -> list[Path]:
    found = sorted(path for path in folder.glob("*") if path.suffix.lower() in _ENDINGS and path.is_file())
    if not found:
        raise DataError(f"--arrays={folder} has no .npz or .npy files; give the folder with one for each example")
    return found


def _with_lines(examples: Sequence[Example], path: Path, labels: Path | None, wanted: Wanted) -> list[Example]:
    lines = read_labels(path, "--truth").lines
    if len(lines) != len(examples):
        raise DataError(
            f"--truth={path} has {len(lines)} lines, and there are {len(examples)} examples; line i is right for "
            "example i, in the order of the names"
        )
    names = None if labels is None else read_labels(labels, "--labels").lines
    numbers = None if names is None else {name: number for number, name in enumerate(names)}
    places = enumerate(zip(examples, lines, strict=True), 1)
    return [
        dataclasses.replace(each, target=_value(line, numbers, wanted, f"{path}, line {row}"))
        for row, (each, line) in places
    ]


def _value(line: str, labels: dict[str, int] | None, wanted: Wanted, place: str) -> float | int:
    if labels is not None and line not in labels:
        raise DataError(f"{place}: the label {line!r} is not a line of --labels; take the names from there")
    try:
        found = labels[line] if labels is not None else int(line) if wanted == "label" else float(line)
    except ValueError:
        raise DataError(
            f"{place}: {line!r} is not a number; give one, or for the names of labels the file that has them, as "
            "labels:"
        ) from None
    if not math.isfinite(found):
        raise DataError(f"{place}: {line!r} is not a finite number; give one")
    if wanted == "label" and found < 0:
        raise DataError(f"{place}: the label is {found}; the first label is 0")
    return found


def preparation(inputs: schema.Inputs) -> Callable[[Any, Sequence[TaskTensor]], Sequence[Array]]:
    """What makes the inputs of the model from an example's input, a task's ``prepare``."""
    if isinstance(inputs, schema.Pictures):
        return partial(_picture, inputs.preprocess)
    if isinstance(inputs, schema.Recordings):
        return partial(sounds.model_input, inputs.sample_rate)
    return rows.model_inputs if isinstance(inputs, schema.Rows) else _arrays


def _picture(steps: schema.Preprocess, path: Path, tensors: Sequence[TaskTensor]) -> tuple[Array, ...]:
    if len(tensors) != 1:
        raise TaskError(f"the model has {len(tensors)} inputs; a picture is one, so take inputs of kind arrays")
    transform = replace(
        picture_transform(tensors[0], steps.normalization),
        crop_fraction=steps.crop,
        letterbox=None if steps.letterbox is None else Letterbox(steps.letterbox, steps.fill),
        blue_first=(tensors[0].channel_order or steps.channels) == "bgr",
    )
    return (load_picture(path, transform).values,)


def _arrays(path: Path, tensors: Sequence[TaskTensor]) -> list[Array]:
    """The arrays of a file as inputs, by the names of these; raises :class:`TaskError` where they do not fit."""
    if path.suffix.lower() == ".npy":
        if len(tensors) != 1:
            raise TaskError(f"{path}: the model has {len(tensors)} inputs; give them by name in .npz files")
        return [as_input(stored_array(Stored(path)), tensors[0])]
    return [as_input(stored_array(Stored(path, tensor.name)), tensor) for tensor in tensors]


def stored_array(stored: Stored) -> npt.NDArray[Any]:
    """Read an array; raises :class:`ImageError` for a file without it."""
    try:
        content = content_of(stored.path, MODEL_BYTES)
        return read_arrays(content, stored.name)[stored.name] if stored.name else read_array(content)
    except KeyError as error:
        raise ImageError(f"{stored.path} has no array {stored.name!r}; it has {error.args[0]}") from error
    except Unreadable as error:
        raise ImageError(f"{stored.path}: no array that can be read: {error}") from error

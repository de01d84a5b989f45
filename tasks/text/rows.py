"""Rows of a table as inputs of a model, and what it answers."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from evaltools.datasets.files import decode_text, read_bytes
from evaltools.datasets.order import Order, chosen
from evaltools.errors import DataError, TaskError, UsageError
from evaltools.runtime.session import Array
from evaltools.tasks.framework import label_scores
from evaltools.tasks.framework.definition import Example, Mean, in_lists, mean, pooled
from evaltools.tasks.framework.tensors import Outputs, TaskTensor, as_input


def listed(
    table: Path, label: str, is_number_of_label: bool, num_rows: int, order: Order = "native", seed: int = 1
) -> list[Example]:
    """An example for each row, without the column of the label among its input; raises :class:`DataError`."""
    if num_rows < 0:
        raise UsageError(f"--num_rows={num_rows}: give a number of rows, or 0 for all")
    where = f"--table={table}"
    content = decode_text(read_bytes(table, "--table", "a CSV file"), where)
    reader = csv.DictReader(io.StringIO(content.removeprefix("\ufeff")))
    columns = reader.fieldnames or []
    if label and label not in columns:
        raise DataError(f"{where} has no column {label!r} for --label; it has {', '.join(columns) or 'none'}")
    examples = []
    for number, row in enumerate(reader, 1):
        place = f"{where}, row {number}"
        if None in row or None in row.values():
            raise DataError(f"{place}: it has not {len(columns)} cells, as the first line has")
        target = _target(row.pop(label), place, is_number_of_label) if label else None
        examples.append(Example(f"row {number}", {name: _numbers(cell, place) for name, cell in row.items()}, target))
    if not examples:
        raise DataError(f"{where} has no rows; give a line of names, then a row for each example")
    return chosen(examples, num_rows, order, seed)


def _numbers(cell: str, place: str) -> npt.NDArray[np.float64]:
    try:
        return np.array([float(word) for word in cell.split()])
    except ValueError as error:
        raise DataError(
            f"{place}: {error}; a cell has numbers separated by spaces, such as the numbers of tokens"
        ) from error


def _target(cell: str, place: str, is_number_of_label: bool) -> float | int:
    try:
        found = int(cell) if is_number_of_label else float(cell)
    except ValueError as error:
        raise DataError(
            f"{place}: the label is {cell!r}; give the number of the output, from 0, or --answer=number"
        ) from error
    if not math.isfinite(found):
        raise DataError(f"{place}: the label is {cell!r}; give a finite number")
    if is_number_of_label and found < 0:
        raise DataError(f"{place}: the label is {found}; the first label is 0")
    return found


def model_inputs(cells: Mapping[str, npt.NDArray[np.float64]], tensors: Sequence[TaskTensor]) -> list[Array]:
    """The cells as inputs, by the names of these; raises :class:`TaskError` where they do not fit."""
    if len(tensors) == len(cells) == 1:
        cells = {tensors[0].name: next(iter(cells.values()))}
    return [_input(cells, tensor) for tensor in tensors]


def _input(cells: Mapping[str, npt.NDArray[np.float64]], tensor: TaskTensor) -> Array:
    if tensor.name not in cells:
        raise TaskError(
            f"the table has no column for the input {tensor.name!r}; it has {', '.join(cells) or 'none'}. "
            "Give the column its name; the column of the answer is --label"
        )
    numbers, size = cells[tensor.name], int(np.prod(tensor.shape))
    if numbers.size > size:
        raise TaskError(
            f"a cell of {tensor.name!r} has {numbers.size} numbers; the input takes {size}, so cut the texts"
        )
    filled = np.zeros(size)
    filled[: numbers.size] = numbers
    if tensor.dtype.kind in "iub" and tensor.quantisation is None:
        whole = filled.astype(tensor.dtype)
        if not np.array_equal(whole, filled):
            raise TaskError(f"a cell of {tensor.name!r} has numbers that {tensor.dtype} cannot hold; give whole ones")
        return whole.reshape(tensor.shape)
    return as_input(filled.reshape(tensor.shape), tensor)


def score(outputs: Outputs, right: float) -> dict[str, Any]:
    """How far the number is from the right one, and both."""
    found = _number(outputs)
    return {"absolute_error": abs(found - right), "correlation": np.array([found, right])}


def agree(outputs: Outputs, reference: Outputs, _right: object) -> dict[str, float]:
    """How far the number is from the reference's."""
    return {"number_shift": abs(_number(outputs) - _number(reference))}


def _number(outputs: Outputs) -> float:
    values = outputs.real(0)
    if values.size != 1 or not np.isfinite(values).all():
        raise TaskError(
            f"the output {values.dtype}{list(values.shape)} is not a finite number; expected is one, such as [1,1]"
        )
    return float(values.ravel()[0])


def metrics(has_truth: bool) -> list[Mean]:
    """Those of a regression, in the order of their columns."""
    agreement = [
        mean("number_shift", better="lower", meaning="text: mean distance of a regression to the reference's number")
    ]
    truth: list[Mean] = [
        mean("absolute_error", better="lower", meaning="text: mean absolute error of a regression"),
        pooled(
            "correlation",
            correlation,
            margin=0.005,
            bounds=(-1.0, 1.0),
            meaning="text: Pearson's correlation of a regression with the right numbers, -1..1",
        ),
    ]
    return [*truth, *agreement] if has_truth else agreement


def correlation(rows: Sequence[npt.NDArray[Any]]) -> float:
    """Pearson's of pairs of numbers; NaN where those of one side are all the same.

    >>> correlation([np.array([1.0, 2.0]), np.array([2.0, 4.0]), np.array([3.0, 6.0])])
    1.0
    """
    found, right = np.stack(rows).T
    found, right = found - found.mean(), right - right.mean()
    length = float(np.sqrt((found @ found) * (right @ right)))
    return float(found @ right / length) if length else float("nan")


METRICS: Final = [*in_lists(metrics(has_truth=True)), *label_scores.METRICS]

"""What the output of a model means: what it is compared with, and its metrics."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from evaltools.errors import ImageError, TaskError
from evaltools.tasks.embeddings import vectors
from evaltools.tasks.image_to_image import quality
from evaltools.tasks.own import label_scores
from evaltools.tasks.own.definition import Mean, mean
from evaltools.tasks.own.tensors import Outputs
from evaltools.tasks.segmentation import pixels
from evaltools.tasks.task_file import schema
from evaltools.tasks.task_file.examples import Stored, Wanted, stored_array
from evaltools.tasks.text import rows

Scores = Mapping[str, Any]


class Answer(Struct, frozen=True):
    """A meaning of the output: ``score`` compares it with what is ``wanted``, ``agree`` with the reference's.

    ``metrics`` gives those with a truth or without one.
    """

    wanted: Wanted
    metrics: Callable[[bool], list[Mean]]
    score: Callable[[Outputs, Any], Scores]
    agree: Callable[[Outputs, Outputs, Any], Scores]


def answer_of(output: schema.Output) -> Answer:
    """The meaning of an output."""
    if isinstance(output, schema.Scores):
        return Answer("label", label_scores.metrics, label_scores.score, label_scores.agree)
    if isinstance(output, schema.Number):
        return Answer("number", rows.metrics, rows.score, rows.agree)
    if isinstance(output, schema.Embedding):
        return Answer("label", vectors.metrics, partial(vectors.score, 0), partial(vectors.agree, 0))
    if isinstance(output, schema.Classes):
        score = partial(pixels.score, output.mask_values, output.class_offset)
        return Answer("file", pixels.metrics, score, pixels.agree)
    if isinstance(output, schema.Picture):
        agree = partial(quality.agree, output.values)
        return Answer("file", quality.metrics, partial(quality.score, output.values), agree)
    return Answer("array", _metrics_of_values, _score_values, _agree_in_values)


def metric_names(answer: Answer, has_truth: bool) -> list[str]:
    """The names of its metrics."""
    return [metric.name for metric in answer.metrics(has_truth)]


class Scoring:
    """Compares one output of the model with its truth, or against the reference's, for the chosen metrics."""

    def __init__(self, answer: Answer, index: int, chosen: list[str]) -> None:
        self._answer = answer
        self._index = index
        self._chosen: Final = frozenset(chosen)

    def score(self, outputs: Outputs, target: Any) -> Scores:
        """Against the truth; raises :class:`TaskError`."""
        if isinstance(target, Stored):
            target = _right_values(target, self._answer.wanted)
        return self._of_chosen(self._answer.score(self._output(outputs), target))

    def agree(self, outputs: Outputs, reference: Outputs, target: Any) -> Scores:
        """Against the reference; raises :class:`TaskError`."""
        return self._of_chosen(self._answer.agree(self._output(outputs), self._output(reference), target))

    def _output(self, outputs: Outputs) -> Outputs:
        return Outputs([outputs[self._index]], [outputs.tensors[self._index]], outputs.inputs)

    def _of_chosen(self, found: Scores) -> Scores:
        return {name: value for name, value in found.items() if name in self._chosen}


def _right_values(stored: Stored, wanted: Wanted) -> Any:
    """What is right, from an array in a file; raises :class:`TaskError`."""
    try:
        found = stored_array(stored)
    except ImageError as error:
        raise TaskError(str(error)) from error
    if found.dtype.kind not in "biuf" or not np.isfinite(found).all():
        raise TaskError(f"{stored.path}: {stored.name or 'the array'} has values that are no finite numbers")
    if wanted == "array":
        return found
    if found.size != 1 or (wanted == "label" and found.item() not in range(np.iinfo(np.int64).max)):
        right = "the number of a label, from 0" if wanted == "label" else "one number"
        raise TaskError(
            f"{stored.path}: {stored.name or 'the array'} is {found.dtype}{list(found.shape)}; give {right}"
        )
    return int(found.item()) if wanted == "label" else float(found.item())


def _metrics_of_values(has_truth: bool) -> list[Mean]:
    truth, agreement = (
        [mean(name, better="lower") for name in names]
        for names in (("mean_error", "largest_error"), ("mean_shift", "largest_shift"))
    )
    return [*truth, *agreement] if has_truth else agreement


def _score_values(outputs: Outputs, right: npt.NDArray[Any]) -> Scores:
    distances = _distances(outputs.real(0), right)
    return {"mean_error": float(distances.mean()), "largest_error": float(distances.max())}


def _agree_in_values(outputs: Outputs, reference: Outputs, _right: object) -> Scores:
    distances = _distances(outputs.real(0), reference.real(0))
    return {"mean_shift": float(distances.mean()), "largest_shift": float(distances.max())}


def _distances(found: npt.NDArray[Any], expected: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    if found.size != expected.size or not found.size:
        raise TaskError(f"the output has the shape {list(found.shape)}, what is right {list(expected.shape)}")
    if not np.isfinite(found).all():
        raise TaskError(f"{np.count_nonzero(~np.isfinite(found))} of {found.size} values of the output are not finite")
    distances: npt.NDArray[np.float64] = np.abs(found.ravel().astype(np.float64) - expected.ravel())
    return distances

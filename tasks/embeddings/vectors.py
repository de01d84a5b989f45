"""Vectors of pictures: which are nearest to each other, and how near they are to a reference's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from evaltools.datasets.labels import read_labels
from evaltools.datasets.order import Order
from evaltools.errors import DataError, TaskError
from evaltools.metrics.metric import SHARE
from evaltools.tasks.framework.definition import Example, Mean, in_lists, mean, pooled
from evaltools.tasks.framework.pictures import pairs
from evaltools.tasks.framework.tensors import Outputs

_AT_ONCE: Final = 1024
"""Pictures whose distances to all others are looked at together."""


def labelled(
    images: Path, ground_truth: Path | None, num_images: int, order: Order = "native", seed: int = 1
) -> list[Example]:
    """The pictures, each with the number of its label; raises :class:`DataError`."""
    if ground_truth is None:
        return pairs(images, None, num_images, order, seed)
    labels = read_labels(ground_truth, "--ground_truth").lines
    pictures = pairs(images, None)
    if len(labels) != len(pictures):
        raise DataError(
            f"--ground_truth={ground_truth} has {len(labels)} lines, --images={images} {len(pictures)} pictures; "
            "line i is the label of picture i, in the order of the names"
        )
    numbers = {label: number for number, label in enumerate(dict.fromkeys(labels))}
    label_of = {picture.id: label for picture, label in zip(pictures, labels, strict=True)}
    return [
        replace(example, target=numbers[label_of[example.id]])
        for example in pairs(images, None, num_images, order, seed)
    ]


def metrics(has_truth: bool) -> list[Mean]:
    """Those of embeddings, in the order of their columns."""
    cosine = mean(
        "cosine", margin=0.005, bounds=(-1.0, 1.0), meaning="embeddings: cosine to the reference's embedding, -1..1"
    )
    recalls = [
        pooled(
            "recall_at_1",
            partial(recall, 1),
            bounds=SHARE,
            meaning="embeddings: share of pictures whose nearest other has their label, 0..1",
        ),
        pooled(
            "recall_at_5",
            partial(recall, 5),
            bounds=SHARE,
            meaning="embeddings: share of pictures of whose 5 nearest others one has their label, 0..1",
        ),
    ]
    return [*recalls, cosine] if has_truth else [cosine]


def vector(outputs: Outputs, number: int) -> npt.NDArray[np.float64]:
    """One output at the length 1; raises :class:`TaskError`."""
    if not 0 <= number < len(outputs):
        raise TaskError(f"--output_index={number}: the model has the outputs 0 to {len(outputs) - 1}")
    values = outputs.real(number).ravel().astype(np.float64)
    length = float(np.linalg.norm(values))
    if not 0 < length < np.inf:
        raise TaskError(f"the embedding has the length {length}; expected are finite numbers that are not all 0")
    return values / length


def score(number: int, outputs: Outputs, label: int) -> dict[str, npt.NDArray[np.float64]]:
    """The label and the vector, for both recalls."""
    row = np.array([label, *vector(outputs, number)])
    return {"recall_at_1": row, "recall_at_5": row}


def agree(number: int, outputs: Outputs, reference: Outputs, _label: object) -> dict[str, float]:
    """The cosine of both vectors."""
    ours, theirs = vector(outputs, number), vector(reference, number)
    return {"cosine": 1.0 if np.array_equal(ours, theirs) else float(ours @ theirs)}


def recall(count: int, rows: Sequence[npt.NDArray[Any]]) -> npt.NDArray[np.float64]:
    """Of each vector 1 where one of its ``count`` nearest others, by cosine, has its label, else 0.

    >>> recall(1, [np.array([7, 1.0, 0.0]), np.array([7, 0.8, 0.6]), np.array([8, 0.0, 1.0])]).tolist()
    [1.0, 1.0, 0.0]
    """
    table = np.stack(rows)
    labels, vectors = table[:, 0], table[:, 1:]
    found = np.zeros(len(table))
    for start in range(0, len(table), _AT_ONCE):
        cosines = vectors[start : start + _AT_ONCE] @ vectors.T
        places = np.arange(len(cosines))
        cosines[places, start + places] = -np.inf
        nearest = np.argsort(-cosines, axis=1, kind="stable")[:, : min(count, len(table) - 1)]
        found[start + places] = (labels[nearest] == labels[start + places, np.newaxis]).any(axis=1)
    return found


METRICS: Final = in_lists(metrics(has_truth=True))

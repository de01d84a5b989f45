"""Embeddings: recall compared with SciPy's distances, and what cannot be read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.spatial import distance

import evaltools as et
from evaltools.errors import DataError, TaskError
from evaltools.tasks.embeddings import embeddings
from evaltools.tasks.embeddings.vectors import agree, recall, vector
from evaltools.tasks.framework.tensors import Outputs
from tests.tasks.declared import SAMPLE, outputs_of

IMAGES = SAMPLE / "images"


def embedding(*values: float) -> Outputs:
    return outputs_of(np.array([values], np.float32))


@pytest.mark.parametrize("count", [1, 5])
def test_recall_is_that_of_the_nearest_by_cosine(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evaltools.tasks.embeddings.vectors._AT_ONCE", 16)
    chance = np.random.default_rng(6)
    labels, given = chance.integers(0, 8, 50), chance.normal(size=(50, 4))
    distances = distance.cdist(given, given, "cosine")
    np.fill_diagonal(distances, np.inf)
    expected = [label in labels[row.argsort()[:count]] for label, row in zip(labels, distances, strict=True)]
    rows = [np.array([label, *vector(embedding(*each), 0)]) for label, each in zip(labels, given, strict=True)]
    assert recall(count, rows).tolist() == expected
    assert 0 < np.mean(expected) < 1


def test_the_task_runs_and_limits_hold() -> None:
    result = et.run(
        "embeddings",
        SAMPLE / "models" / "float32.tflite",
        images=IMAGES,
        ground_truth=SAMPLE / "ground_truth.txt",
        num_images=20,
        tests={"xnnpack": "use_xnnpack=true"},
    )
    assert et.gate(result, ["cosine >= 0.9999", "recall_at_5 >= 40 %"]).verdict == "pass"


def test_the_cosine_is_that_of_both_vectors() -> None:
    assert agree(0, embedding(1, 2), embedding(2, 1), None)["cosine"] == pytest.approx(4 / 5)
    assert agree(0, embedding(1, 2), embedding(1, 2), None)["cosine"] == 1.0


def test_what_is_no_embedding_is_told() -> None:
    with pytest.raises(TaskError, match="the embedding has the length 0.0"):
        vector(embedding(0, 0), 0)
    with pytest.raises(TaskError, match="--output_index=1: the model has the outputs 0 to 0"):
        vector(embedding(1, 2), 1)


def test_a_ground_truth_of_another_length_is_told(tmp_path: Path) -> None:
    (tmp_path / "truth.txt").write_text("a\nb\n")
    with pytest.raises(DataError, match="has 2 lines, .* 200 pictures"):
        embeddings(images=IMAGES, ground_truth=tmp_path / "truth.txt")

"""Sounds: figures of a model done again in NumPy, windows, and what cannot be read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy.io import wavfile

from evaltools.errors import DataError, ImageError, TaskError
from evaltools.metrics.classification import mean_average_precision
from evaltools.tasks.audio import audio
from evaltools.tasks.audio.sounds import model_input, samples_in
from evaltools.tasks.framework.label_scores import label_scores, score
from evaltools.tasks.framework.tensors import Quantisation, TaskTensor
from tests.tasks.declared import SAMPLE, outputs_of, run_sample

FOLDER = SAMPLE / "audio"


def powers(path: Path) -> list[float]:
    """How much of each tone is in the middle 800 samples, by label in the order of ``labels.txt``."""
    samples = wavfile.read(path)[1] / 32768
    start = (len(samples) - 800) // 2
    window = samples[start : start + 800] if start >= 0 else np.pad(samples, (-start - (len(samples) % 2), 800))[:800]
    turns = np.exp(-2j * np.pi * np.arange(800) / 16000 * np.array([[440], [1000], [2300]]))
    logits = np.abs(turns @ window * 8 / 800) ** 2
    return list(np.exp(logits) / np.exp(logits).sum())


def average_precision(is_right: list[bool], scores: list[float]) -> float:
    """By each threshold: the precision there, by the recall that it adds."""
    found, before = 0.0, 0.0
    for threshold in sorted(set(scores), reverse=True):
        kept = [right for right, value in zip(is_right, scores, strict=True) if value >= threshold]
        recall = sum(kept) / sum(is_right)
        found, before = found + (recall - before) * sum(kept) / len(kept), recall
    return found


def test_the_sample_has_the_figures_of_its_tones() -> None:
    result = run_sample("audio")
    names = (FOLDER / "labels.txt").read_text().split()
    paths = sorted((FOLDER / "recordings").glob("*/*"))
    right, found = [names.index(path.parent.name) for path in paths], [powers(path) for path in paths]
    accuracy = np.mean([int(np.argmax(scores)) == label for scores, label in zip(found, right, strict=True)])
    precisions = [
        average_precision([label == each for label in right], [scores[each] for scores in found]) for each in range(3)
    ]
    for entry in result:
        assert entry.accuracy == pytest.approx(accuracy)
        assert entry.label_map == pytest.approx(np.mean(precisions))


def test_average_precision_takes_equal_scores_together() -> None:
    chance = np.random.default_rng(2)
    right, scores = chance.integers(0, 3, 60), chance.integers(0, 9, (60, 4)) / 8
    rows = [np.array([label, *each]) for label, each in zip(right, scores, strict=True)]
    expected = [average_precision([*(right == label)], scores[:, label].tolist()) for label in range(3)]
    assert mean_average_precision(rows) == pytest.approx(np.mean(expected))


@pytest.mark.parametrize(
    ("samples", "expected"),
    [
        (np.array([0, 16384, -32768], np.int16), [0, 0.5, -1]),
        (np.array([128, 192, 0], np.uint8), [0, 0.5, -1]),
        (np.array([[0.5, 0.0], [1.0, 0.0]], np.float32), [0.25, 0.5]),
    ],
)
def test_files_of_all_kinds_are_samples_from_minus_1_to_1(
    samples: npt.NDArray[Any], expected: list[float], tmp_path: Path
) -> None:
    wavfile.write(tmp_path / "a.wav", 16000, samples)
    assert samples_in(tmp_path / "a.wav", 16000).tolist() == expected


def test_another_rate_is_resampled(tmp_path: Path) -> None:
    times = np.arange(4000) / 8000
    wavfile.write(tmp_path / "a.wav", 8000, np.sin(2 * np.pi * 300 * times).astype(np.float32))
    found = samples_in(tmp_path / "a.wav", 16000)
    assert len(found) == 8000
    assert found[500:7500] == pytest.approx(np.sin(2 * np.pi * 300 * np.arange(500, 7500) / 16000), abs=0.01)


def test_integer_inputs_take_samples_or_quantised_ones(tmp_path: Path) -> None:
    wavfile.write(tmp_path / "a.wav", 16000, np.array([16384, -32768], np.int16))
    whole = TaskTensor("x", (1, 4), np.dtype("int16"))
    assert model_input(16000, tmp_path / "a.wav", [whole])[0].tolist() == [[0, 16384, -32767, 0]]
    quantised = TaskTensor("x", (1, 4), np.dtype("int8"), Quantisation(1 / 128, 0))
    assert model_input(16000, tmp_path / "a.wav", [quantised])[0].tolist() == [[0, 64, -128, 0]]


def test_features_come_from_arrays(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.array([[0.5, 1.0]]))
    features = TaskTensor("x", (1, 2, 1), np.dtype("int8"), Quantisation(0.1, -3))
    assert model_input(16000, tmp_path / "a.npy", [features])[0].tolist() == [[[2], [7]]]
    with pytest.raises(ImageError, match=r"has the shape \[1, 2\]; the model takes \[1, 3\]"):
        model_input(16000, tmp_path / "a.npy", [TaskTensor("x", (1, 3), np.dtype("float32"))])


def test_what_is_no_sound_is_told(tmp_path: Path) -> None:
    (tmp_path / "a.wav").write_bytes(b"RIFF")
    with pytest.raises(ImageError, match="no WAV file that can be read"):
        samples_in(tmp_path / "a.wav", 16000)
    with pytest.raises(TaskError, match="no window of samples; give its features as .npy files"):
        model_input(16000, tmp_path / "a.wav", [TaskTensor("x", (1, 49, 10, 1), np.dtype("float32"))])


def test_folders_that_do_not_fit_are_told(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="has no folder with .wav files"):
        audio(recordings=tmp_path)
    (tmp_path / "labels.txt").write_text("low\nhigh\n")
    with pytest.raises(DataError, match="its label is 'middle', of which .* has no line"):
        audio(recordings=FOLDER / "recordings", labels=tmp_path / "labels.txt")


def test_frames_are_averaged_and_labels_must_fit() -> None:
    values = np.array([[0.5, 0.5], [0.0, 1.0]], np.float32)
    outputs = outputs_of(values)
    assert label_scores(outputs).tolist() == [0.25, 0.75]
    with pytest.raises(TaskError, match="the label has the number 2; the model gives 2 scores"):
        score(outputs, 2)

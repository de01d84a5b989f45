"""Scripts as users write them under a strict checker of types: ``make types`` checks them, and nothing runs them.

Where a figure is none of the task, an error is expected: without one its comment is an error itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

import evaltools as et


def fed(path: Path, tensors: Sequence[et.TaskTensor]) -> list[npt.NDArray[np.float32]]:
    return [np.load(path).astype(np.float32).reshape(tensors[0].shape)]


def score(outputs: et.Outputs, target: float) -> dict[str, float]:
    return {"error": abs(float(outputs.real(0).max()) - target)}


def check(trial: et.Trial) -> list[str]:
    return [] if trial.targets else ["there are no examples"]


@et.task
def brightness(values: Path, limit: float = 0.5) -> et.Task:
    """How bright."""
    examples = [et.Example(path.name, path, limit) for path in sorted(values.glob("*.npy"))]
    metrics = [et.mean("error", better="lower")]
    return et.Task(examples=examples, prepare=fed, score=score, check=check, metrics=metrics)


def own_task() -> float:
    found = et.run(brightness, "m.tflite", values=Path("v"), tests={"x": et.Configuration(use_xnnpack=True)})
    any_result: et.Result = found
    error: float = any_result["x"].error
    return error


def built_in_tasks() -> list[float]:
    classified = et.imagenet("m.tflite", images="i", ground_truth="g", labels="l")["x"]
    several = et.imagenet(["a.tflite", "b.tflite"], images="i", ground_truth="g", labels="l")["a"]["x"]
    detected = et.coco("m.tflite", images="i", ground_truth="g")["x"]
    compared = et.diff("m.tflite", inputs=np.zeros((1, 2), np.float32))["x"]
    segmented = et.run("segmentation", "m.tflite", images="i", masks="m")["x"]
    heard = et.run("audio", "m.tflite", sounds="s")["x"]
    timed = et.benchmark("m.tflite")["x"]
    return [
        classified.top1,
        several.agreement,
        detected.ap50,
        compared.snr_db,
        segmented.miou,
        heard.accuracy,
        timed.latency_ms,
    ]


def wrong_names() -> None:
    classified = et.imagenet("m.tflite", images="i", ground_truth="g", labels="l")["x"]
    several = et.imagenet(["a.tflite"], images="i", ground_truth="g", labels="l")["a"]["x"]
    print(classified.top1_wrong)  # type: ignore[attr-defined]
    print(classified.ap, several.ap)  # type: ignore[attr-defined]
    print(et.coco("m.tflite", images="i", ground_truth="g")["x"].top1)  # type: ignore[attr-defined]
    print(et.diff("m.tflite")["x"].top1)  # type: ignore[attr-defined]
    print(et.run("segmentation", "m.tflite")["x"].top1)  # type: ignore[attr-defined]

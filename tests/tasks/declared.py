"""The tasks that are made as one's own are and come with evaltools, on their embedded samples."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import numpy.typing as npt

import evaltools as et
from evaltools.datasets import sample
from evaltools.tasks.framework.tensors import Outputs, Quantisation, TaskTensor

SAMPLE: Final = Path(sample.__file__).resolve().parent
OPTIONS: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "segmentation": ("segmentation", {"images": Path("images"), "masks": Path("masks")}),
    "keypoints": ("keypoints", {"images": Path("images"), "annotations": Path("annotations.json")}),
    "image_to_image": ("noise", {"images": Path("images"), "targets": Path("targets"), "output_values": "native"}),
    "audio": ("audio", {"recordings": Path("recordings"), "labels": Path("labels.txt")}),
    "text": ("text", {"table": Path("texts.csv"), "label": "label"}),
}
"""The folder of each task's sample, and the options with which it is evaluated; paths start at the folder."""


def run_sample(task: str, **options: Any) -> et.Result:
    """The result of a task on its sample, with XNNPACK against the builtin kernels. None leaves an option out."""
    folder, given = OPTIONS[task]
    paths = {name: SAMPLE / folder / value for name, value in given.items() if isinstance(value, Path)}
    stated: dict[str, Any] = {name: value for name, value in (given | paths | options).items() if value is not None}
    return et.run(task, SAMPLE / folder / "model.tflite", tests={"xnnpack": "use_xnnpack=true"}, **stated)


def outputs_of(
    values: npt.NDArray[Any], quantisation: Quantisation | None = None, inputs: tuple[TaskTensor, ...] = ()
) -> Outputs:
    """One output of a model, as a task gets it."""
    return Outputs([values], [TaskTensor("out", values.shape, values.dtype, quantisation)], inputs)

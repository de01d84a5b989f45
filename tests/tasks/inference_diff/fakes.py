"""Requests and sessions that are not there, for tests of the inference diff."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from msgspec.structs import replace

from evaltools.configuration import Configuration
from evaltools.model import ModelFile
from evaltools.runs.task_run import TaskRun
from evaltools.runtime import Inference, TensorSpec
from evaltools.runtime.session import Array
from evaltools.tasks.framework.request import TaskRequest
from evaltools.tasks.inference_diff import COMMAND
from evaltools.tasks.inference_diff.differences import Differences
from evaltools.tasks.inference_diff.input_options import InputOptions
from evaltools.tasks.inference_diff.material import DiffMaterial
from tests import tiny_models
from tests.runtime.fake import FakeSession
from tests.tasks.built_in import options_of

SHAPE = (1, 4, 4, 2)
IMAGE = TensorSpec("input", np.dtype("float32"), SHAPE)
Function = Callable[[Any], Any]


class Answering(FakeSession):
    """Answers with a function of the input; invocation n of its life takes n ms, reading 5 us."""

    def __init__(self, function: Function) -> None:
        super().__init__(lambda inputs: (np.asarray(function(inputs[0]), np.float32),))
        self.inputs = (IMAGE,)  # type: ignore[misc]
        self.outputs = (TensorSpec("3 times", np.dtype("float32"), SHAPE),)  # type: ignore[misc]
        self.invoked = 0

    def run(self, inputs: Sequence[Array], invocations: int = 1) -> Inference:
        times = tuple(1000 * (self.invoked + count) for count in range(1, invocations + 1))
        self.invoked += invocations
        return Inference(super().run(inputs).outputs, times, 5)


def three_times(values: Any) -> Any:
    """What the model computes."""
    return np.asarray(values * np.float32(3), np.float32)


class Opener:
    """Opens fake sessions by the configuration's name; all others compute exactly. Remembers what it opened."""

    def __init__(self, **makers: Callable[[], Function]) -> None:
        self._makers: Mapping[str, Callable[[], Function]] = makers
        self.opened: list[tuple[str, FakeSession]] = []

    def __call__(self, model: ModelFile, configuration: Configuration) -> FakeSession:
        make = self._makers.get(configuration.name, lambda: three_times)
        session = Answering(make())
        self.opened.append((configuration.name, session))
        return session


def asked(folder: Path, num_runs: int = 5, **changes: Any) -> TaskRequest:
    """Compare ``test`` with the reference on a model that gives three times its input."""
    (folder / "model.tflite").write_bytes(tiny_models.add_chain(SHAPE, 2))
    fields: dict[str, Any] = {
        "model_file": folder / "model.tflite",
        "reference": Configuration("reference", kernels="builtin"),
        "tests": (Configuration("test"),),
        "inputs": InputOptions(num_runs=num_runs),
    }
    return request_for(**(fields | changes))


def request_for(inputs: InputOptions = InputOptions(), native: bool = False, **fields: Any) -> TaskRequest:  # noqa: B008
    """What the command line makes of such options of the task, by name, and of fields of the request."""
    of_inputs = {
        "num_runs": inputs.num_runs,
        "seed": inputs.seed,
        "input_range": inputs.ranges,
        "input_files": inputs.files,
        "input_images": inputs.images,
        "normalization": inputs.normalization,
        "inputs": inputs.kind,
        "input_layout": inputs.input_layout,
        "channel_order": inputs.channel_order,
    }
    of_request = {name: fields.pop(name) for name in TaskRequest.__struct_fields__ if name in fields}
    given = {"max_secs": 0.0, **{name: value for name, value in of_inputs.items() if value is not None}, **fields}
    return TaskRequest(**of_request, **options_of(COMMAND, given, native))


def stating(request: TaskRequest, **values: Any) -> TaskRequest:
    """The request with other values of the task's options."""
    return replace(request, values={**request.values, **values})


def material_of(request: TaskRequest) -> DiffMaterial:
    """What is made of a request before anything runs."""
    whole = TaskRun(request).task.whole
    assert isinstance(whole, Differences)
    return whole.material

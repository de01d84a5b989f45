"""Requests and sessions that are not there, for tests of the inference diff."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from evaltools.configuration import Configuration
from evaltools.model import ModelFile
from evaltools.runtime import Inference, TensorSpec
from evaltools.runtime.session import Array
from evaltools.tasks.inference_diff.input_options import InputOptions
from evaltools.tasks.inference_diff.request import DiffRequest
from tests import tiny_models
from tests.runtime.fake import FakeSession

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


def asked(folder: Path, num_runs: int = 5, **changes: Any) -> DiffRequest:
    """Compare ``test`` with the reference on a model that gives three times its input."""
    (folder / "model.tflite").write_bytes(tiny_models.add_chain(SHAPE, 2))
    fields: dict[str, Any] = {
        "model_file": folder / "model.tflite",
        "reference": Configuration("reference", kernels="builtin"),
        "tests": (Configuration("test"),),
        "inputs": InputOptions(num_runs=num_runs),
    }
    return DiffRequest(**(fields | changes))

"""Openers of sessions that are not there, to be run in child processes, and what opens those."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from evaltools import errors
from evaltools.configuration import Configuration
from evaltools.delegates.gpu import GPU
from evaltools.errors import ConfigurationUnavailable, InferenceError
from evaltools.model import ModelFile, read_model
from evaltools.runtime import Inference, Session, TensorSpec, open_session
from evaltools.runtime.process.isolated import IsolatedSession, open_isolated
from evaltools.runtime.session import Array
from tests.expected import leave_out
from tests.runtime.fake import FakeSession

NO_MODEL = ModelFile(Path("none.tflite"), "", 0, (), (), 0, None)
FLOATS = TensorSpec("floats", np.dtype("float32"), (2, 3))
ANSWERS: tuple[Array, ...] = (
    np.arange(1000, dtype=np.int8).reshape(10, 100),
    np.array(2.5),
    np.empty((0, 4), np.float32),
    np.array([True, False]),
    np.array([1 + 2j], np.complex64),
    np.arange(3, dtype=np.float16),
    np.array([b"\xff\x00x", b""], object),
)


def isolated(
    opener: Callable[..., Any], text: str = "", timeout_s: float = 60.0, model: ModelFile = NO_MODEL
) -> IsolatedSession:
    return open_isolated(model, Configuration.from_text("c", text), timeout_s, opener)


def model_of(content: bytes, folder: Path) -> ModelFile:
    (folder / "model.tflite").write_bytes(content)
    return read_model(folder / "model.tflite")


def opened(model: ModelFile, text: str) -> Session:
    """A session in this process."""
    return open_session(model, Configuration.from_text("c", text))


def random_inputs(session: Session) -> list[Array]:
    """The same for every session with such inputs."""
    rng = np.random.default_rng(1)
    return [rng.uniform(-1, 1, spec.shape).astype(spec.dtype) for spec in session.inputs]


def outputs(model: ModelFile, text: str) -> Sequence[Any]:
    """What a configuration gives for random inputs."""
    session = opened(model, text)
    found = session.run(random_inputs(session)).outputs
    session.close()
    return found


def gpu_or_skip(model: ModelFile) -> str:
    """The device on which the GPU runs a model; the test is skipped where there is none, unless CI says there is."""
    try:
        session = open_isolated(model, Configuration.from_text("c", "use_gpu=true"))
    except ConfigurationUnavailable as error:
        leave_out("GPU", error)
    session.close()
    return session.delegation.delegates[0].device


class Stated(FakeSession):
    """A fake session with inputs and outputs; invocation n takes n times 100 us, reading 7 us."""

    def __init__(
        self, function: Any, inputs: tuple[TensorSpec, ...] = (FLOATS,), outputs: tuple[TensorSpec, ...] = (FLOATS,)
    ) -> None:
        super().__init__(function)
        self.inputs = inputs  # type: ignore[misc]
        self.outputs = outputs  # type: ignore[misc]

    def run(self, inputs: Sequence[Array], invocations: int = 1) -> Inference:
        outputs = super().run(inputs).outputs
        return Inference(outputs, tuple(100 * number for number in range(1, invocations + 1)), 7)


def doubling(_model: ModelFile, _configuration: Configuration) -> FakeSession:
    return Stated(lambda inputs: (inputs[0] * 2,))


def answering(_model: ModelFile, _configuration: Configuration) -> FakeSession:
    """Gives other outputs than it announces."""
    return Stated(lambda _inputs: ANSWERS, (), (TensorSpec("small", np.dtype("int8"), (1,)),))


def failing_on_two(_model: ModelFile, _configuration: Configuration) -> FakeSession:
    def double(inputs: Sequence[Any]) -> tuple[Array, ...]:
        if inputs[0].flat[0] == 2:
            raise InferenceError("node 7 failed")
        return (inputs[0] * 2,)

    return Stated(double)


def refusing(_model: ModelFile, configuration: Configuration) -> FakeSession:
    """Raises the error that the configuration names."""
    kind = getattr(errors, str(configuration.delegates.value("external_delegate_path")))
    raise kind("not [here]", GPU.name) if issubclass(kind, ConfigurationUnavailable) else kind("not [here]")


def aborting(_model: ModelFile, _configuration: Configuration) -> FakeSession:
    os.abort()


def unwinding(_model: ModelFile, _configuration: Configuration) -> FakeSession:
    """Dies with the reason before a long stack."""
    frames = "INFO: unwinding a frame of the compiler\n" * 2000
    os.write(2, f"starting\nERROR: no memory left for tensor 7\n{frames}".encode())
    os._exit(7)


def leaving(_model: ModelFile, _configuration: Configuration) -> FakeSession:
    os.write(2, b"out of luck\n")
    os._exit(7)


def surprising(_model: ModelFile, _configuration: Configuration) -> FakeSession:
    raise KeyError("surprise")


def with_helper(_model: ModelFile, _configuration: Configuration) -> FakeSession:
    """Starts a process that would never end, and prints its number."""
    print(subprocess.Popen(["sleep", "1000"]).pid)
    return Stated(lambda _inputs: (), (), ())


def reading(_model: ModelFile, _configuration: Configuration) -> FakeSession:
    """Says what it reads from stdin."""
    os.write(2, b"read: " + os.read(0, 10))
    return Stated(lambda inputs: inputs)


def printing(_model: ModelFile, _configuration: Configuration) -> FakeSession:
    """Prints to both streams, as Python and as native code does."""

    def run(_inputs: Sequence[Array]) -> tuple[Array, ...]:
        for descriptor in (1, 2):
            os.write(descriptor, b"running\n")
        return ()

    print("opened with print", file=sys.stderr, flush=True)
    os.write(1, b"opened natively\n")
    return Stated(run, (), ())


def ending_at_three(_model: ModelFile, configuration: Configuration) -> FakeSession:
    """Aborts at the input 3, or never answers, as the configuration says."""

    def run(inputs: Sequence[Array]) -> tuple[Array, ...]:
        if inputs[0].flat[0] == 3:
            os.abort() if configuration.delegates.value("external_delegate_path") == "abort" else time.sleep(60)
        return (np.multiply(inputs[0], 2),)

    return Stated(run)


def keeping_the_lock(_model: ModelFile, _configuration: Configuration) -> FakeSession:
    """Never ends its run, in native code that keeps the interpreter's lock; prints its process first."""

    def run(_inputs: Sequence[Array]) -> tuple[Array, ...]:
        ctypes.PyDLL(None).sleep(600)
        return ()

    Path(os.environ["EVALTOOLS_TEST_PROCESS"]).write_text(str(os.getpid()))
    return Stated(run, (), ())


def waiting(_model: ModelFile, configuration: Configuration) -> FakeSession:
    """Answers with its inputs once the file is there that the configuration names; prints when it begins and ends."""
    awaited = Path(str(configuration.delegates.value("external_delegate_path")))

    def run(inputs: Sequence[Array]) -> tuple[Array, ...]:
        os.write(1, b"begun\n")
        while not awaited.exists():
            time.sleep(0.01)
        os.write(1, b"finished\n")
        return tuple(inputs)

    return Stated(run, (), ())


def never_opened(_model: ModelFile, _configuration: Configuration) -> FakeSession:
    """A delegate that is never created."""
    time.sleep(60)
    raise AssertionError

"""The configurations that are tried where nobody says what to test, and which of them work here.

``evaltools doctor`` tries the same ones. Whatever a driver does, it does in a process of its own.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from evaltools.configuration import Configuration
from evaltools.datasets import sample
from evaltools.errors import ConfigurationUnavailable, EvaltoolsError, SessionEnded
from evaltools.model import ModelFile, read_model
from evaltools.request import Request
from evaltools.runtime.compiled.gpu import has_drivers
from evaltools.runtime.delegation import Delegation
from evaltools.runtime.process.ahead import OpenedAhead
from evaltools.runtime.process.isolated import open_isolated
from evaltools.runtime.registry import obstacle_to, open_session, runtime_name
from evaltools.runtime.session import Session

SECONDS: Final = 120.0
"""What opening a session, a run, or a tool may take. A GPU in software compiles for 60 s on a crowded machine."""
_DEVICES: Final = ("dri/renderD*", "nvidia[0-9]*", "nvhost-gpu", "dxg", "mali*", "kgsl-3d0")
"""What a GPU is called below ``/dev``; without one of them Vulkan can only have a driver in software."""
_SOFTWARE_DRIVERS: Final = "*lvp*,*swiftshader*"
_NO_DRIVER: Final = "no Vulkan driver"
_NO_GPU: Final = "no GPU that its driver finds"
_SOFTWARE: Final = 'only in software: --config "gpu: use_gpu=true" runs it'
_NO_RUNTIME: Final = "needs ai-edge-litert"
_CHIP: Final = "SM8750"
_EMULATED: Final = f"use_npu=true npu_vendor=qualcomm npu_soc={_CHIP}"
_LONGEST_EMULATED_S: Final = 0.6
_NOT_THIS_MODEL: Final = "not with this model"


class Candidate(Struct, frozen=True):
    """A configuration to try; its arithmetic may differ from the builtin kernels by ``largest_error``."""

    name: str
    flags: str
    largest_error: float

    @property
    def configuration(self) -> Configuration:
        """The configuration under its name."""
        return Configuration.from_text(self.name, self.flags)


class Group(NamedTuple):
    """Candidates of one delegate, which work where the first of them does.

    ``why_not`` says why that one does not work with a model here: None if it does, an empty text if that is nothing to
    show anybody. It keeps a session that works in what it gets last, if it gets that. ``without_runtime`` says why it
    does not where no runtime here has it. What ``is_emulated`` has no latency.
    """

    delegate: str
    candidates: tuple[Candidate, ...]
    why_not: Callable[[Configuration, ModelFile, OpenedAhead | None], str | None]
    without_runtime: str = _NO_RUNTIME
    is_emulated: bool = False


class Tried(NamedTuple):
    """The configurations that work here, and why each other delegate does not."""

    tests: tuple[Configuration, ...]
    missing: Mapping[str, str]

    def __str__(self) -> str:
        """A line about what is missing, empty where nothing is.

        >>> str(Tried((), {"GPU": "no Vulkan driver"}))
        'also tried: GPU (no Vulkan driver); evaltools doctor says more'
        """
        missing = ", ".join(f"{delegate} ({why})" for delegate, why in self.missing.items())
        return f"also tried: {missing}; evaltools doctor says more" if missing else ""


def groups() -> tuple[Group, ...]:
    """All that is tried, in the order of the rows."""
    return (
        Group("XNNPACK", (Candidate("xnnpack", "use_xnnpack=true", 1e-5),), _why_not_run),
        Group(
            "XNNPACK in fp16",
            (Candidate("xnnpack fp16", "use_xnnpack=true xnnpack_force_fp16=true", 2e-2),),
            _why_not_run,
        ),
        Group(
            "GPU",
            (
                Candidate("gpu fp16", "use_gpu=true", 2e-2),
                Candidate("gpu fp32", "use_gpu=true gpu_precision_loss_allowed=false", 1e-4),
            ),
            _why_no_gpu,
        ),
        Group(f"NPU of {_CHIP}", (Candidate(f"npu {_CHIP}", _EMULATED, 5e-2),), _why_not_emulated, "", True),
    )


def with_tests_here(request: Request, ahead: OpenedAhead | None = None) -> tuple[Request, str]:
    """The request with every candidate that can run its models here as its tests, and a line about what is missing.

    Where none can, or a model cannot be read, the request stays as it is. Sessions of the tests are kept ``ahead``.
    """
    options = request.options
    models = next(name for name, parameter in options.parameters.items() if parameter.positional)
    signature = next((name for name in ("signature", "signature_to_run_for") if name in options), "")
    try:
        read = [read_model(Path(text), options.text(signature) if signature else "") for text in options.texts(models)]
    except EvaltoolsError:
        return request, ""
    tried = found_here(read, is_timed=request.task == "benchmark", ahead=ahead)
    return replace(request, tests=tried.tests or request.tests), str(tried)


def found_here(models: list[ModelFile], is_timed: bool = False, ahead: OpenedAhead | None = None) -> Tried:
    """Every candidate that can run all of the models here; with ``is_timed`` only those that have a latency.

    Their sessions are kept ``ahead``, where that is given, else closed.
    """
    tests: list[Configuration] = []
    missing = {}
    for group in groups():
        if is_timed and group.is_emulated:
            continue
        configurations = [candidate.configuration for candidate in group.candidates]
        reasons = (_why_not(group, configurations[0], model, ahead) for model in models)
        reason = next((reason for reason in reasons if reason is not None), None)
        if reason is None:
            tests += configurations
        elif reason:
            missing[group.delegate] = reason
    return Tried(tuple(tests), missing)


def _why_not(group: Group, configuration: Configuration, model: ModelFile, ahead: OpenedAhead | None) -> str | None:
    try:
        has_runtime = obstacle_to(configuration, runtime_name(configuration)) is None
    except ConfigurationUnavailable:  # none is installed
        has_runtime = False
    return group.why_not(configuration, model, ahead) if has_runtime else group.without_runtime


def _why_not_run(configuration: Configuration, model: ModelFile, ahead: OpenedAhead | None) -> str | None:
    try:
        return _why_not_taken(_opened(configuration, model, ahead))
    except EvaltoolsError as error:
        return _too_slow(error) or _NOT_THIS_MODEL


def _too_slow(error: EvaltoolsError) -> str:
    """That the machine, and not the model, is why it was not tried; empty for every other error."""
    is_hung = isinstance(error, ConfigurationUnavailable | SessionEnded) and error.hung
    return f"not ready within {SECONDS:g} s on this machine" if is_hung else ""


def _why_not_taken(delegation: Delegation) -> str | None:
    if delegation.without_effect:
        return ""
    return None if all(entry.nodes for entry in delegation.delegates if entry.requested) else _NOT_THIS_MODEL


def _why_no_gpu(configuration: Configuration, model: ModelFile, ahead: OpenedAhead | None) -> str | None:
    """A GPU in software is not tried: it is the CPU, and may compile for a minute."""
    if sys.platform == "linux":
        if not has_drivers(os.environ):
            return _NO_DRIVER
        if not any(any(Path("/dev").glob(name)) for name in _DEVICES):
            return _SOFTWARE
    try:
        small = _opened(configuration, read_model(sample.model_file("float32")), None, _without_software)
    except EvaltoolsError as error:
        return _too_slow(error) or _NO_GPU
    if any(entry.is_cpu for entry in small.delegates):
        return _SOFTWARE
    return _why_not_run(configuration, model, ahead)


def _why_not_emulated(configuration: Configuration, model: ModelFile, ahead: OpenedAhead | None) -> str | None:
    """An NPU is tried where it takes some of the model, and a hundred runs of its emulator take a minute at most."""
    with ExitStack() as stack:
        try:
            session = open_isolated(model, configuration, SECONDS)
            stack.callback(session.close)
            start = time.monotonic()
            session.run([np.zeros(spec.shape, spec.dtype) for spec in session.inputs])
            seconds = time.monotonic() - start
        except EvaltoolsError as error:
            return _too_slow(error) or f"not this model: evaltools inspect MODEL --npu_soc={_CHIP} says why"
        if seconds > _LONGEST_EMULATED_S:
            return f'an emulated run takes {seconds:.1f} s: --config "npu: {_EMULATED}" does it'
        if ahead is not None and not model.stateful:
            stack.pop_all()
            ahead.keep(model, configuration, session)
    return None


def _without_software(model: ModelFile, configuration: Configuration) -> Session:
    """Open a session in a process whose Vulkan leaves drivers in software out."""
    os.environ["VK_LOADER_DRIVERS_DISABLE"] = _SOFTWARE_DRIVERS
    return open_session(model, configuration)


def _opened(
    configuration: Configuration,
    model: ModelFile,
    ahead: OpenedAhead | None = None,
    opener: Callable[[ModelFile, Configuration], Session] = open_session,
) -> Delegation:
    """What ran where in a session, which is closed again, or kept where it is one to measure.

    Raises :class:`EvaltoolsError` where there is none.
    """
    session = open_isolated(model, configuration, SECONDS, opener)
    if ahead is not None and _why_not_taken(session.delegation) is None:
        ahead.keep(model, configuration, session)
    else:
        session.close()
    return session.delegation

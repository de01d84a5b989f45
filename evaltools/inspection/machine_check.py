"""Finds out what can be measured on this machine: it runs a small model with each runtime and delegate."""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from importlib.metadata import EntryPoint
from typing import Any, Final, Literal

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from evaltools import extensions
from evaltools.arm64.box import INSTALL, cores_of, is_arm64, qemu_of, users_box
from evaltools.candidates import SECONDS, Candidate, groups
from evaltools.datasets import sample
from evaltools.delegates import DELEGATES
from evaltools.delegates.registry import PROBLEMS
from evaltools.errors import ConfigurationUnavailable, EvaltoolsError, SessionEnded, UsageError
from evaltools.known_tasks import installed_tasks, other_metrics
from evaltools.model import ModelFile, read_model
from evaltools.report.words.facts import device_text
from evaltools.runtime import Runtime, Session
from evaltools.runtime.process.isolated import open_isolated
from evaltools.runtime.session import Array

State = Literal["works", "missing", "elsewhere"]
_SEED: Final = 1


class Finding(Struct, frozen=True):
    """What was found out: ``proof`` says what ran or what is there, ``next_step`` what to do where it is missing.

    ``elsewhere``: it never runs on a machine like this, but on others. ``here`` says what a delegate is on a computer,
    and what it is not of a phone's.
    """

    kind: Literal["runtime", "delegate", "extension", "tool", "package"]
    name: str
    state: State
    proof: str
    next_step: str = ""
    here: str = ""


RUNTIMES: Final = (
    Candidate("ai-edge-litert", "runtime=litert kernels=builtin", 1e-5),
    Candidate("tflite-runtime", "runtime=tflite_runtime kernels=builtin", 1e-5),
    Candidate("CompiledModel (ai-edge-litert)", "runtime=compiled kernels=builtin", 1e-5),
)
PROVEN_DELEGATES: Final = (
    Candidate("xnnpack, tflite-runtime", "runtime=tflite_runtime use_xnnpack=true", 1e-5),
    *(candidate for group in groups() for candidate in group.candidates),
    Candidate("NPU of qualcomm", "runtime=compiled use_npu=true npu_vendor=qualcomm", 5e-2),
)
_TOOLS: Final = (
    ("adb", ("adb", "--version"), "to measure on phones and boards: install adb (Debian: apt-get install adb)"),
    ("C compiler", ("cc", "--version"), "to build an external delegate: install gcc or clang"),
)
_PACKAGES: Final = (
    ("simplejpeg", "simplejpeg", "decodes JPEG a quarter faster and notices damaged ones: pip install simplejpeg"),
    ("faster-coco-eval", "faster_coco_eval", "large detection sets: pip install 'evaltools[fast]'"),
    ("ray", "ray", "--executor=ray: pip install 'evaltools[ray]'"),
)


def findings() -> Iterator[Finding]:
    """Check everything; yields each finding as soon as it is known."""
    model = read_model(sample.model_file("float32"))
    inputs = _inputs(model)
    expected: Sequence[Array] | None = None
    for check in RUNTIMES:
        found, outputs = _tried("runtime", check, model, inputs, expected)
        expected = expected if expected is not None else outputs
        yield found
    for check in PROVEN_DELEGATES:
        yield replace(_tried("delegate", check, model, inputs, expected)[0], here=_on_a_computer(check))
    for delegate in DELEGATES:
        if not delegate.runtimes:
            yield Finding("delegate", delegate.name, "elsewhere", f"runs in {delegate.works_in}")
    yield from _extensions()
    for name, command, next_step in _TOOLS:
        yield _tool(name, command, next_step)
    yield _arm64()
    for name, module, next_step in _PACKAGES:
        is_there = importlib.util.find_spec(module) is not None
        yield Finding("package", name, "works" if is_there else "missing", "installed" if is_there else "", next_step)


def _on_a_computer(check: Candidate) -> str:
    return " ".join(delegate.here for delegate in check.configuration.delegates.requested)


def _extensions() -> Iterator[Finding]:
    """What was found of other packages' objects: whether they can be used, or why not."""
    problems = [*PROBLEMS, *other_metrics().problems, *installed_tasks().problems]
    for group in (extensions.DELEGATES, extensions.RUNTIMES, extensions.METRICS, extensions.TASKS):
        for entry in extensions.entries(group):
            named = f"{group}: {entry.name} ({entry.value})"
            problem = next((each for each in problems if each.startswith(named)), "")
            if group == extensions.RUNTIMES:
                problem = _problem_of_runtime(entry)
            what = f"{group.rpartition('.')[2].rstrip('s')} of the package {extensions.package_of(entry)}"
            yield Finding("extension", entry.name, "missing" if problem else "works", what, problem)


def _problem_of_runtime(entry: EntryPoint) -> str:
    try:
        extensions.load(entry, Runtime)  # type: ignore[type-abstract]
    except UsageError as error:
        return str(error)
    return ""


def _inputs(model: ModelFile) -> list[Array]:
    random = np.random.default_rng(_SEED)
    return [random.uniform(-1, 1, tensor.shape).astype(tensor.dtype) for tensor in model.inputs]


def _tried(
    kind: Literal["runtime", "delegate"],
    check: Candidate,
    model: ModelFile,
    inputs: Sequence[Array],
    expected: Sequence[Array] | None,
) -> tuple[Finding, Sequence[Array] | None]:
    """Run the model; right is what the first runtime that works computes with its builtin kernels."""
    try:
        session = open_isolated(model, check.configuration, SECONDS)
    except ConfigurationUnavailable as error:
        return Finding(kind, check.name, "missing", "", _in_words(error)), None
    try:
        outputs = session.run(inputs).outputs
    except EvaltoolsError as error:
        return Finding(kind, check.name, "missing", "", _in_words(error)), None
    finally:
        session.close()
    if session.not_clean:
        return Finding(kind, check.name, "missing", "", f"{session.not_clean}; update its driver or library"), outputs
    error_found = 0.0 if expected is None else _largest_difference(outputs, expected)
    proof = f"{_what_ran(session)}; largest difference from builtin kernels {error_found:.1g}"
    if not error_found <= check.largest_error:
        wrong = f"its numbers are wrong: at most {check.largest_error:g} was expected; update it, or leave it out"
        return Finding(kind, check.name, "missing", proof, wrong), outputs
    idle = [entry.delegate for entry in session.delegation.delegates if entry.requested and not entry.nodes]
    if idle:
        return Finding(kind, check.name, "missing", proof, f"{idle[0]} took no node of a small convnet"), outputs
    return Finding(kind, check.name, "works", proof), outputs


def _what_ran(session: Session) -> str:
    facts, total = session.facts, session.delegation.total_nodes
    parts = [f"{facts.package} {facts.version}"]
    for entry in session.delegation.delegates:
        parts.append(f"{entry.nodes} of {total} nodes{device_text(entry.device, entry.is_cpu)}")
    if not session.delegation.delegates:
        parts.append(f"{total} nodes")
    return ", ".join(parts)


def _largest_difference(outputs: Sequence[Array], expected: Sequence[Array]) -> float:
    """NaN where an output is NaN."""
    pairs: list[tuple[Any, Any]] = list(zip(outputs, expected, strict=True))
    return float(np.max([np.max(np.abs(one.astype(np.float64) - other)) for one, other in pairs]))


def _tool(name: str, command: Sequence[str], next_step: str) -> Finding:
    if shutil.which(command[0]) is None:
        return Finding("tool", name, "missing", "", next_step)
    try:
        printed = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=True).stdout
    except (OSError, subprocess.SubprocessError) as error:
        return Finding("tool", name, "missing", "", f"{' '.join(command)} fails ({_one_line(error)}); {next_step}")
    return Finding("tool", name, "works", printed.partition("\n")[0].strip())


def _arm64() -> Finding:
    """The ARM64 Python of ``--at=arm64``."""
    name, box = "ARM64 in QEMU (--at=arm64)", users_box()
    if is_arm64():
        return Finding("tool", name, "elsewhere", "this machine is ARM64 itself")
    if not box.is_complete:
        return Finding("tool", name, "missing", "", f"to run models as a phone's CPU does: {INSTALL}")
    try:
        qemu = qemu_of(box)
    except UsageError as error:
        return Finding("tool", name, "missing", "", str(error))
    return Finding("tool", name, "works", f"QEMU {qemu.version}: {', '.join(cores_of(qemu))}")


def _in_words(error: EvaltoolsError) -> str:
    """What went wrong; of a process that hung and was ended, the next step, too."""
    hung = any(isinstance(each, SessionEnded) and each.hung for each in (error, error.__context__))
    next_step = "; its driver or library hangs: update that, or leave it out; the others were tried nevertheless"
    return _one_line(error) + (next_step if hung else "")


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())


def environment() -> str:
    """Which Python on what machine, and the variables that decide about drivers."""
    variables = [f"{name}={os.environ[name]}" for name in ("VK_DRIVER_FILES", "VK_ICD_FILENAMES") if name in os.environ]
    python = ".".join(map(str, sys.version_info[:3]))
    parts = [f"Python {python}, NumPy {np.__version__}", platform.platform(), platform.machine(), *variables]
    return ", ".join(parts)

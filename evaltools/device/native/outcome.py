"""The outcome of the runs of one configuration by a native tool: figures, or why there are none."""

from __future__ import annotations

import signal
from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from evaltools.device.native.delegation import NativeDelegation, delegation_of
from evaltools.device.native.figures import merge_classifiers
from evaltools.device.native.inputs import NativeInputs
from evaltools.device.native.numerics import ended_above_limits
from evaltools.errors import DataError
from evaltools.native.logs.delegate_use import FALLBACK_HINT
from evaltools.native.logs.evaluation import FAILED, UNCONSUMED, NativeEvaluationLog, parse_evaluation_log
from evaltools.native.logs.evaluation_proto import read_evaluation_proto
from evaltools.native.logs.run import ClassifierFigures, NativeFigures, NativeRun, task_of
from evaltools.result.device import DeviceFacts
from evaltools.result.evaluation import ConfigurationResult, RuntimeUsed

_DIGITS_OF_SHA256: Final = 12
_SIGNALLED: Final = 128
_NOT_STARTED: Final = (126, 127)
"""What a shell ends with where it cannot run a program, or does not find it or what it needs."""
_ANDROID: Final = {
    "arm64-v8a": "android_arm64",
    "armeabi-v7a": "android_arm",
    "x86_64": "android_x86_64",
    "x86": "android_x86",
}
_BOARDS: Final = {"aarch64": "elinux_aarch64", "armv7l": "elinux_armhf"}
"""TensorFlow's configurations of bazel, by Android's ABI and by what ``uname -m`` says."""


class NativeBinary(Struct, frozen=True):
    """The program that ran: its file's name and the sha256 of its content."""

    name: str
    sha256: str

    @property
    def version(self) -> str:
        """The first digits of the sha256, since native tools state no version."""
        return f"sha256 {self.sha256[:_DIGITS_OF_SHA256]}"

    def as_runtime(self, kernels: str, messages: str = "") -> RuntimeUsed:
        """As a result states what ran; ``messages`` is what it said of delegates."""
        return RuntimeUsed("native", self.name, self.version, kernels, messages)


class NativeOutcome(Struct, frozen=True):
    """One configuration: ``described`` without figures, ``figures`` None where it is not measured.

    ``log`` is what its only part printed, or its first one.
    """

    described: ConfigurationResult
    figures: NativeFigures | None
    log: NativeEvaluationLog
    delegate_lines: tuple[str, ...]
    warnings: tuple[str, ...] = ()


def outcomes_of(
    inputs: NativeInputs[Any], runs: Sequence[NativeRun], binary: NativeBinary, allow_fallback: bool
) -> list[NativeOutcome]:
    """The outcome of each configuration, in the order in which they first occur among the runs."""
    names = dict.fromkeys(run.name for run in runs)
    return [_outcome(inputs, [run for run in runs if run.name == name], binary, allow_fallback) for name in names]


def _outcome(
    inputs: NativeInputs[Any], runs: Sequence[NativeRun], binary: NativeBinary, allow_fallback: bool
) -> NativeOutcome:
    parts = sorted(runs, key=lambda run: run.part)
    logs, figures, reasons = [], [], []
    for run in parts:
        log, found = _read(inputs, run)
        logs.append(log)
        if isinstance(found, str):
            reasons.append(f"{found}{_of_part(run)}")
        else:
            figures.append(found)
    if len(parts) < parts[0].parts:
        reasons.append(f"only {len(parts)} of its {parts[0].parts} parts were run")
    taken = [_delegation(inputs, run) for run in parts]
    refuted = [(entry.why_not, run) for entry, run in zip(taken, parts, strict=True) if entry.why_not is not None]
    if refuted and not allow_fallback:
        why_not, run = refuted[0]
        reasons.append(f"{why_not}{_of_part(run)}; {FALLBACK_HINT}")
    described = _described(parts[0], binary, min(taken, key=lambda entry: entry.proof.delegated_nodes))
    if reasons:
        described = replace(described, status="not measured", reason=reasons[0])
        return NativeOutcome(described, None, logs[0], parts[0].delegate_lines)
    return NativeOutcome(
        replace(described, fallback=refuted[0][0] if refuted else None),
        _merged(figures),
        logs[0],
        parts[0].delegate_lines,
        _unequal_parts(described.name, taken),
    )


def _of_part(run: NativeRun) -> str:
    """Which part it was, and on which device, as far as there are several; put behind a reason."""
    words = [f"part {run.part + 1} of {run.parts}"] if run.parts > 1 else []
    words += [f"on {run.serial}"] if run.serial else []
    return f" ({', '.join(words)})" if words else ""


class WhatRan(Struct, frozen=True):
    """What ran on a device, by configuration: ``took`` says it of those that count as measured, ``lacks`` why not.

    ``lacks`` has those that another device may be able to run: the device cannot start the tool, or its log does not
    prove that a delegate ran that was asked for. A fallback that is allowed is no less one.
    """

    serial: str
    took: Mapping[str, str]
    lacks: Mapping[str, str]

    @classmethod
    def of(cls, inputs: NativeInputs[Any], serial: str, runs: Sequence[NativeRun]) -> WhatRan:
        """What the runs of a part show."""
        took, lacks = {}, {}
        for run in runs:
            found = _delegation(inputs, run)
            reason = run.failure or found.why_not
            if reason:
                lacks[run.name] = reason
            if not run.failure and run.exit_code in (0, None) and (inputs.request.allow_fallback or not found.why_not):
                took[run.name] = ", ".join(f"{name} {text}" for name, text in found.asked.items())
        return cls(serial, took, lacks)

    def differences(self, other: WhatRan) -> list[str]:
        """In words, what another device ran otherwise.

        Parts of one device need not be alike: the result warns of those. What the runtime adds by itself stays on the
        CPU, and is not a difference.
        """
        if other.serial == self.serial:
            return []
        found = [
            f"configuration {name}: {self.took[name]} on {self.serial}, {other.took[name]} on {other.serial}"
            for name in sorted(self.took.keys() & other.took.keys())
            if self.took[name] != other.took[name]
        ]
        for one, another in ((self, other), (other, self)):
            found += [
                f"configuration {name} cannot run on {one.serial}: {reason}"
                for name, reason in one.lacks.items()
                if name not in another.lacks
            ]
        return found


def _delegation(inputs: NativeInputs[Any], run: NativeRun) -> NativeDelegation:
    own = inputs.model.node_count if inputs.check is None else inputs.check.accelerated.node_count
    reference = inputs.model.node_count if inputs.task == "inference_diff" else None
    return delegation_of(run.configuration, run.delegate_lines, own, reference)


def _read(inputs: NativeInputs[Any], run: NativeRun) -> tuple[NativeEvaluationLog, NativeFigures | str]:
    """The outcome of one run: its figures, or why it has none."""
    try:
        log = parse_evaluation_log(run.log)
    except DataError as error:
        return parse_evaluation_log(""), str(error)
    return log, _figures(inputs, run, log)


def _figures(inputs: NativeInputs[Any], run: NativeRun, log: NativeEvaluationLog) -> NativeFigures | str:
    """The figures, or why there are none."""
    failure = _failure(run, log)
    if failure is not None and not (inputs.check is not None and ended_above_limits(run.log)):
        return failure
    if inputs.check is not None:
        return inputs.check.read(inputs.model, run.log)
    if run.proto is None:
        return "the native tool came to its end, but its result file is missing, and its text has six digits only"
    try:
        figures = read_evaluation_proto(run.proto)
    except DataError as error:
        return f"the native tool's result file cannot be read: {error}"
    if task_of(figures) != inputs.task:
        return f"the result file is one of {task_of(figures)}; give the program of {inputs.task}"
    expected = len(range(run.part, inputs.example_count, run.parts))
    if figures.runs != expected:
        return f"the native tool evaluated {figures.runs} examples, there were {expected}"
    return figures


def _failure(run: NativeRun, log: NativeEvaluationLog) -> str | None:
    if run.failure:
        return run.failure
    if run.exit_code not in (0, None) or FAILED in log.errors:
        crash = f": {run.crash}" if run.crash else ""
        reason = f": {log.failure}" if log.failure else f" with {_exit_in_words(run.exit_code or 0)}{crash}"
        return f"the native tool failed{reason}"
    ignored = [warning for warning in log.warnings if warning.startswith(UNCONSUMED)]
    if ignored:
        return f'the native tool warned "{ignored[0]}", and went on without; take a binary that has these flags'
    if run.exit_code is None and run.proto is None:
        progress = "" if log.progress is None else f", at {log.progress} %"
        return f"there is no result file of the native tool, and its text does not say how it ended{progress}"
    return None


def signal_of(code: int) -> str:
    """The name of the signal that ended a program, by its exit code as a shell or Python has it; empty: none did.

    >>> signal_of(139), signal_of(-6), signal_of(255), signal_of(1)
    ('SIGSEGV', 'SIGABRT', '', '')
    """
    number = code - _SIGNALLED if code > _SIGNALLED else -code
    return next((entry.name for entry in signal.Signals if entry.value == number), "")


def why_not_started(code: int, said: str, facts: DeviceFacts) -> str:
    """Why a device's shell could not start a binary, and the next step; empty where it started it.

    ``code`` is the exit code of the shell, ``said`` the end of its stderr.
    """
    if code not in _NOT_STARTED:
        return ""
    processor = facts.abi or facts.machine
    config = _ANDROID.get(facts.abi) if facts.abi else _BOARDS.get(facts.machine or "")
    if config:
        step = f"the device's ABI is {processor}: build the binary for it with bazel build -c opt --config={config}"
    elif processor:
        step = f"the device's ABI is {processor}: build the binary for it"
    else:
        step = "build the binary for its ABI, for most phones with bazel build -c opt --config=android_arm64"
    return f'the device cannot start the native tool (exit code {code}, "{said}"); {step}'


def _exit_in_words(code: int) -> str:
    name = signal_of(code)
    return f"the signal {name}" if name else f"the exit code {code}"


def _described(run: NativeRun, binary: NativeBinary, taken: NativeDelegation) -> ConfigurationResult:
    configuration = run.configuration
    messages = "; ".join(run.delegate_lines)
    return ConfigurationResult(
        name=run.name,
        role=run.role,
        flags=configuration.to_flags(),
        num_threads=configuration.num_threads,
        status="measured",
        reason=None,
        fallback=None,
        runtime=binary.as_runtime(configuration.kernel_set, messages),
        delegates=taken.delegates,
        delegation=taken.proof,
        inference_latency=None,
        failed_examples=0,
        place=run.place,
    )


def _merged(parts: Sequence[NativeFigures]) -> NativeFigures:
    classifiers = [part for part in parts if isinstance(part, ClassifierFigures)]
    return merge_classifiers(classifiers) if classifiers else parts[0]


def _unequal_parts(name: str, taken: Sequence[NativeDelegation]) -> tuple[str, ...]:
    nodes = sorted({entry.proof.delegated_nodes for entry in taken})
    if len(nodes) < 2:
        return ()
    return (f"{name}: its parts were not alike: delegates took {nodes[0]} to {nodes[-1]} nodes; the fewest are stated",)

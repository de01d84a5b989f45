"""The outcome of the runs of one configuration by a native tool: figures, or why there are none."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from evaltools.configuration import Configuration
from evaltools.device.native_inputs import NativeInputs
from evaltools.device.native_program import signal_of
from evaltools.device.transfer import sha256_of
from evaltools.errors import DataError
from evaltools.native.logs.delegates import read_delegate_log
from evaltools.native.logs.delegation import FALLBACK_HINT, LoggedDelegation, delegation_of
from evaltools.native.logs.evaluation import FAILED, UNCONSUMED, NativeEvaluationLog, parse_evaluation_log
from evaltools.native.logs.figures import NativeFigures, read_figures
from evaltools.result.facts import RuntimeUsed
from evaltools.result.metrics import figures_of, figures_of_nodes
from evaltools.result.result import INVOKE, PREPROCESSING, Row

_DIGITS_OF_SHA256: Final = 12


class NativeRun(Struct, frozen=True):
    """One run of a native tool on a device, which does all of a configuration's work.

    ``log`` is its stdout and stderr. ``proto`` is the file of ``--output_file_path``, None where there is none.
    ``delegate_lines`` are those of log and logcat. ``failure`` says why the run could not be started. ``crash`` is what
    Android's crash dump says. ``place`` is the device where several do the same; the configuration's name in the result
    ends with it then.
    """

    configuration: Configuration
    role: Literal["reference", "test"]
    log: str
    proto: bytes | None
    delegate_lines: tuple[str, ...] = ()
    exit_code: int = 0
    failure: str = ""
    crash: str = ""
    place: str = ""

    @property
    def name(self) -> str:
        """The configuration's name in the result."""
        return f"{self.configuration.name}@{self.place}" if self.place else self.configuration.name


class NativeOutcome(Struct, frozen=True):
    """One configuration: ``described`` without figures, ``figures`` None where it is not measured."""

    described: Row
    figures: NativeFigures | None
    log: NativeEvaluationLog
    delegate_lines: tuple[str, ...]


def native_runtime(binary: Path) -> RuntimeUsed:
    """What ran, as a result states it; native tools state no version: it is that of their content."""
    return RuntimeUsed("native", binary.name, f"sha256 {sha256_of(binary)[:_DIGITS_OF_SHA256]}", "default")


def outcome_of(inputs: NativeInputs[Any], run: NativeRun, runtime: RuntimeUsed) -> NativeOutcome:
    """What a run gave."""
    log, found = _read(inputs, run)
    taken = _delegation(inputs, run)
    figures, reason = (None, found) if isinstance(found, str) else (found, "")
    if not reason and taken.why_not is not None and not inputs.request.allow_fallback:
        figures, reason = None, f"{taken.why_not}; {FALLBACK_HINT}"
    described = Row(
        name=run.name,
        role=run.role,
        flags=run.configuration.to_flags(),
        num_threads=run.configuration.num_threads,
        status="not measured" if reason else "measured",
        reason=reason,
        fallback="" if reason else taken.why_not or "",
        runtime=replace(runtime, kernels=run.configuration.kernel_set, messages="; ".join(run.delegate_lines)),
        delegates=taken.delegates,
        delegation=taken.proof,
        figures=figures_of_nodes(taken.delegates, taken.proof),
        place=run.place,
    )
    return NativeOutcome(described, figures, log, run.delegate_lines)


def _delegation(inputs: NativeInputs[Any], run: NativeRun) -> LoggedDelegation:
    own = inputs.model.node_count
    reference = own if inputs.task == "inference_diff" else None
    return delegation_of(run.configuration, read_delegate_log(run.delegate_lines), own, reference)


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
    if failure is not None:
        return failure
    if run.proto is None:
        return "the native tool came to its end, but its result file is missing, and its text has six digits only"
    try:
        figures = read_figures(run.proto)
    except DataError as error:
        return f"the native tool's result file cannot be read: {error}"
    if figures.task != inputs.task:
        return f"the result file is one of {figures.task}; give the program of {inputs.task}"
    if figures.runs != inputs.example_count:
        return f"the native tool evaluated {figures.runs} examples, there were {inputs.example_count}"
    return figures


def _failure(run: NativeRun, log: NativeEvaluationLog) -> str | None:
    if run.failure:
        return run.failure
    if run.exit_code != 0 or FAILED in log.errors:
        crash = f": {run.crash}" if run.crash else ""
        reason = f": {log.failure}" if log.failure else f" with {_exit_in_words(run.exit_code)}{crash}"
        return f"the native tool failed{reason}"
    ignored = [warning for warning in log.warnings if warning.startswith(UNCONSUMED)]
    if ignored:
        return f'the native tool warned "{ignored[0]}", and went on without; take a binary that has these flags'
    return None


def _exit_in_words(code: int) -> str:
    name = signal_of(code)
    return f"the signal {name}" if name else f"the exit code {code}"


def with_times(described: Row, found: NativeFigures | None) -> Row:
    """The configuration with the times and the number of examples of its figures, where it has such."""
    if found is None:
        return described
    times = {INVOKE: found.inference.native, PREPROCESSING: found.preprocessing.native}
    return replace(described, figures=described.figures | figures_of({"examples": found.runs}), times=times)

"""The benchmark's log against what the native C++ tool printed in every recorded run."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import pytest

from evaltools.benchmark.flags import LOGGED, PARAMETERS, REFUSED
from evaltools.configuration import CONFIGURATION_PARAMETERS
from evaltools.native.lines import benchmark as native_benchmark
from evaltools.native.logs.benchmark import NativeBenchmarkLog, parse_benchmark_log
from evaltools.native.logs.delegates import AppliedDelegate, delegate_lines, read_delegate_log
from evaltools.parameter import Parameter, Value, format_value
from evaltools.result.facts import DelegateUsed, DelegationProof
from evaltools.result.rounds import Memory

REFUSED_FLAGS_IN_LOGS: Final = {
    "Use caching",
    "Benchmark name",
    "Output prefix",
    "Allow fp16",
    "Max initial profiling buffer entries",
    "Allow dynamic increase on profiling buffer entries",
    "Enable Model Runtime Info Export",
    "Proto File to export model runtime info to",
    "Print pre-invoke interpreter state",
    "Print post-invoke interpreter state",
    "Release dynamic tensor memory",
    "Optimize memory usage for large tensors",
    "Disable delegate clustering",
    "Constant CAST output cache",
    "File path to export outputs layer as tf example to",
    "Tensor name display length",
    "Tensor type display length",
    "Tensor allocation type display length",
    "List signatures from the provided model",
    "print out all supported flags",
}
OTHER_WARNINGS: Final = {
    "Unconsumed cmdline flags: --dry_run",
    "Unconsumed cmdline flags: --bogus=1",
    "Unconsumed cmdline flags: hello",
    "NNAPI acceleration is unsupported on this platform.",
    "GPU acceleration is unsupported on this platform.",
    "The GPU delegate compile options are only supported on Android or iOS platforms or when the tool was built with "
    "-DCL_DELEGATE_NO_GL.",
}
"""About flags and delegates, which evaltools refuses in words of its own."""
BY_LOG: Final = {parameter.log: parameter for parameter in (*LOGGED, *native_benchmark.delegate_parameters())}
BY_NAME: Final = {parameter.name: parameter for parameter in LOGGED}


def recorded(*status: int) -> list[str]:
    """The runs that ended with one of these exit codes."""
    folder = Path(os.environ.get("EVALTOOLS_REALDATA", "")) / "oracle" / "benchmark"
    return sorted(file.parent.name for file in folder.glob("*/rc.txt") if int(file.read_text()) in status)


@pytest.fixture
def stdout(shared: Path, case: str) -> str:
    return (shared / "oracle" / "benchmark" / case / "stdout.txt").read_text()


def without_reports(text: str) -> str:
    """Without the state of the interpreter and the operators' times, which are not of this face."""
    text = re.sub(r"INFO: \n====Printing out.*?state ends====\n\n", "", text, flags=re.DOTALL)
    return text.partition("INFO: Profiling Info for Benchmark Initialization:\n")[0]


def is_ours(line: str) -> bool:
    level, _, text = line.partition(": ")
    if level == "WARN":
        return text not in OTHER_WARNINGS
    return text.partition(": [")[0] not in REFUSED_FLAGS_IN_LOGS


def given_in(log: NativeBenchmarkLog) -> list[tuple[Parameter, Value]]:
    found = [(BY_LOG[name], text) for name, text in log.parameters.items() if name not in REFUSED_FLAGS_IN_LOGS]
    by_name = {parameter.name: (parameter, parameter.parse(text)) for parameter, text in found}
    return list(by_name.values())


def in_force(log: NativeBenchmarkLog, name: str) -> float:
    parameter = BY_NAME[name]
    return float(log.parameters.get(parameter.log, format_value(parameter.default)))


def phase_limits(log: NativeBenchmarkLog, runs: str, seconds: str) -> tuple[int, float, float]:
    if log.parameters.get("Run w/o invoking kernels") == "1":
        return 0, -1.0, in_force(log, "max_secs")
    return int(in_force(log, runs)), in_force(log, seconds), in_force(log, "max_secs")


def used(delegation: AppliedDelegate, log: NativeBenchmarkLog) -> DelegateUsed:
    nodes, partitions = {"full": (10, 1), "partial": (9, delegation.kernels), "none": (0, 0)}[delegation.coverage]
    options: dict[str, Value] = {"xnnpack_force_fp16": log.parameters.get("xnnpack_force_fp16") == "1"}
    return DelegateUsed(delegation.delegate, True, options, nodes, partitions)


def kilobytes(megabytes: float) -> int:
    return round(megabytes * 1024)


def memory_of(log: NativeBenchmarkLog, text: str) -> Memory:
    assert log.round is not None
    memory = log.round.memory
    assert memory is not None
    resident = [int(size) * 1024 for size in re.findall(r"(?:VmRSS|RssAnnon) +: (\d+) MB", text)]
    return Memory(
        start_kb=None,
        init_kb=None,
        steady_kb=resident[0] if resident else None,
        anonymous_kb=resident[1] if resident else None,
        peak_start_kb=0,
        peak_init_kb=kilobytes(memory.init_mb),
        peak_kb=kilobytes(memory.overall_mb),
        monitored_peak_kb=None if memory.peak_mb is None else kilobytes(memory.peak_mb),
    )


def rendered(log: NativeBenchmarkLog, text: str) -> Iterable[str]:
    """What a command prints that measured what the log says."""
    assert log.round is not None
    assert log.round.init_us is not None
    assert log.round.warm_up is not None
    (size,) = re.findall(r"The input model file size \(MB\): (\S+)", text)
    yield from native_benchmark.starting_lines(LOGGED, given_in(log))
    yield native_benchmark.loaded_line(log.parameters["Graph"])
    if log.parameters["Signature to run"]:
        yield native_benchmark.signature_line(log.parameters["Signature to run"])
    if log.parameters.get("Input layers") == "nosuch":
        yield "WARN: Tensor # 0 is named input but flags call it nosuch"
    delegates = [used(delegation, log) for delegation in read_delegate_log(delegate_lines(text)).applied]
    yield from native_benchmark.delegation_lines(delegates, DelegationProof(10, 9, {}))
    yield native_benchmark.model_size_line(round(float(size) * 1e6))
    yield native_benchmark.initialized_line(log.round.init_us)
    yield native_benchmark.running_line(*phase_limits(log, "warmup_runs", "warmup_min_secs"))
    yield from native_benchmark.stat_lines(log.round.warm_up)
    yield native_benchmark.running_line(*phase_limits(log, "num_runs", "min_secs"))
    yield from native_benchmark.stat_lines(log.round.regular)
    yield native_benchmark.timings_line(log.round.init_us, log.round.warm_up, log.round.regular)
    yield from native_benchmark.memory_lines(memory_of(log, text))
    saved_as = log.parameters.get(BY_NAME["result_file_path"].log)
    if saved_as:
        yield from native_benchmark.saved_lines(saved_as)


@pytest.mark.parametrize("case", [case for case in recorded(0) if case != "verbose"])
def test_what_was_read_gives_the_same_lines_again(case: str, stdout: str) -> None:
    expected = [line for line in without_reports(stdout).splitlines() if is_ours(line)]
    assert list(rendered(parse_benchmark_log(stdout), stdout)) == expected


@pytest.mark.parametrize("case", recorded(1, 134))
def test_the_first_lines_of_failed_runs_come_out_the_same(case: str, stdout: str) -> None:
    expected = [line for line in stdout.partition("INFO: Loaded model")[0].splitlines() if is_ours(line)]
    lines = native_benchmark.starting_lines(LOGGED, given_in(parse_benchmark_log(stdout)))
    assert expected == (lines if len(expected) > 1 else ["INFO: STARTING!"])


@pytest.mark.parametrize("case", ["verbose"])
def test_verbose_names_every_flag_with_the_native_default(case: str, stdout: str) -> None:
    """Native flags in native order; ours of other platforms stand between them."""
    graph = BY_NAME["graph"]
    given: list[tuple[Parameter, Value]] = [(graph, parse_benchmark_log(stdout).parameters["Graph"])]
    lines = native_benchmark.starting_lines(LOGGED, given, verbose=True)
    expected = [line for line in stdout.partition("INFO: Loaded model")[0].splitlines() if is_ours(line)]
    assert [line for line in lines if line in set(expected)] == expected


@pytest.mark.parametrize("case", ["input_file_missing"])
def test_the_log_of_a_crash_tells_how_far_it_came(shared: Path, case: str, stdout: str) -> None:
    errors = (shared / "oracle" / "benchmark" / case / "stderr.txt").read_text()
    log = parse_benchmark_log(stdout + errors)
    assert log.round is None
    assert log.errors == ("Failed to read the input_layer_value_file:/nonexistent.bin",)


def test_every_native_flag_is_declared_or_refused(shared: Path) -> None:
    text = (shared / "oracle" / "benchmark" / "help" / "stderr.txt").read_text()
    native = {(name, kind, default) for name, default, kind in re.findall(r"--(\w+)=(.*?)\s*\t(\w+)\toptional", text)}
    declared = {parameter.name: parameter for parameter in (*PARAMETERS, *CONFIGURATION_PARAMETERS.values())}
    assert {name for name, _, _ in native} - declared.keys() - REFUSED.keys() == {"help"}
    ours = {(name, declared[name].type, format_value(declared[name].default)) for name in declared}
    differing = {(name, kind, default) for name, kind, default in native if name in declared} - {
        (name, kind, f"{float(default):g}" if kind == "float" else default) for name, kind, default in ours
    }
    assert differing == {("gpu_invoke_loop_times", "int32", "1")}

"""The lines and the protobuf of the native benchmark, against the texts that its release of 2026 prints."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from evaltools.benchmark.flags import LOGGED, PARAMETERS, REFUSED
from evaltools.configuration import CONFIGURATION_PARAMETERS
from evaltools.delegates import PARAMETERS as DELEGATE_PARAMETERS
from evaltools.metrics.op_profile import Opening
from evaltools.native.lines.benchmark import (
    delegation_lines,
    initialized_line,
    loaded_line,
    memory_lines,
    model_size_line,
    native_benchmark_proto,
    performance_options_line,
    running_line,
    saved_lines,
    signature_line,
    starting_lines,
    stat_lines,
    summary_lines,
    timings_line,
)
from evaltools.native.lines.stat_line import stat_figures, stat_line
from evaltools.parameter import Parameter, Value
from evaltools.proto import BENCHMARK, message_class
from evaltools.result.facts import DelegateUsed, DelegationProof
from evaltools.result.rounds import Conditions, Memory, Phase, Round

NODES = DelegationProof(31, 31, {})
OWN = {parameter.name: parameter for parameter in LOGGED}
MEMORY = Memory(
    start_kb=1000,
    init_kb=5000,
    steady_kb=10 * 1024 + 700,
    anonymous_kb=2 * 1024,
    peak_start_kb=5824,
    peak_init_kb=5824 + 4932,
    peak_kb=5824 + 5328,
    monitored_peak_kb=10900,
)
NO_MEMORY = Memory(None, None, None, None, None, None, None)


def given(**values: Value) -> list[tuple[Parameter, Value]]:
    return [(OWN.get(name) or DELEGATE_PARAMETERS[name], value) for name, value in values.items()]


def used(name: str, nodes: int | None, partitions: int | None, **options: Value) -> DelegateUsed:
    return DelegateUsed(name, True, dict(options), nodes, partitions)


def a_round(warm_up_us: list[int], regular_us: list[int], total_us: int = 1862, memory: Memory = MEMORY) -> Round:
    quiet = Conditions([], [], [], {})
    opening = Opening(import_us=0, total_us=total_us)
    phases = [Phase([*times], [0] * len(times), [0] * len(times)) for times in (warm_up_us, regular_us)]
    return Round(opening, phases[0], phases[1], memory, quiet, quiet, [], 0)


@pytest.mark.parametrize(
    ("samples", "percentiles", "line"),
    [
        ([], True, "count=0 p5=0 median=0 p95=0"),
        ([761], True, "count=1 curr=761 p5=761 median=761 p95=761"),
        ([3, 3], False, "count=2 curr=3(all same)"),
        ([3, 3, 3], True, "count=3 curr=3(all same) p5=3 median=3 p95=3"),
        (
            list(range(1, 102)),
            True,
            "count=101 first=1 curr=101 min=1 max=101 avg=51 std=29 p5=6 median=51 p95=96",
        ),
        (  # mean 2250, mean square 5687500, variance 625000, root 790.57; indices 0, 2 and 3
            [2000, 3500, 2000, 1500],
            True,
            "count=4 first=2000 curr=1500 min=1500 max=3500 avg=2250 std=750 p5=1500 median=2000 p95=3500",
        ),
        (  # variance 2/9, truncated before the root is taken
            [1000001, 1000000, 1000000],
            False,
            "count=3 first=1000001 curr=1000000 min=1000000 max=1000001 avg=1e+06 std=0",
        ),
    ],
)
def test_a_line_of_times(samples: list[int], percentiles: bool, line: str) -> None:
    assert stat_line(samples, percentiles=percentiles) == line


@pytest.mark.parametrize(
    ("declared", "flags", "lines"),
    [
        (
            LOGGED,
            {
                "use_xnnpack": True,
                "num_threads": 2,
                "graph": "a.tflite",
                "external_delegate_path": "/d.so",
                "min_secs": 0.25,
                "num_runs": 3,
            },
            [
                "Log parameter values verbosely: [0]",
                "Min num runs: [3]",
                "Min runs duration (seconds): [0.25]",
                "Num threads: [2]",
                "Graph: [a.tflite]",
                "Signature to run: []",
                "#threads used for CPU inference: [2]",
                "External delegate path: [/d.so]",
                "Use xnnpack: [1]",
            ],
        ),
        (
            [],
            {"use_nnapi": True, "nnapi_accelerator_name": "npu"},
            ["Use NNAPI: [1]", "NNAPI accelerator name (Android 10+): [npu]"],
        ),
        ([], {"use_nnapi": False, "nnapi_accelerator_name": "npu"}, ["Use NNAPI: [0]"]),
        ([], {"npu_vendor": "qualcomm"}, []),
    ],
    ids=["in native order", "nnapi", "nnapi off", "no native name"],
)
def test_the_flags_given_are_named(declared: Sequence[Parameter], flags: dict[str, Value], lines: list[str]) -> None:
    assert starting_lines(declared, given(**flags)) == [f"INFO: {line}" for line in ("STARTING!", *lines)]


def test_each_of_several_external_delegates_is_named_and_verbose_names_defaults() -> None:
    paths = [*given(external_delegate_path="a.so"), *given(external_delegate_path="b.so")]
    named = [f"INFO: External delegate path: [{path}]" for path in ("a.so", "b.so")]
    assert starting_lines([], paths)[1:] == named
    lines = starting_lines(LOGGED, [], verbose=True)
    assert lines[1:3] == ["INFO: Log parameter values verbosely: [1]", "INFO: Min num runs: [50]"]
    assert "INFO: Number of GPU delegate invoke loop iterations: [1]" in lines


WHOLE = "Explicitly applied {} delegate, and the model graph will be completely executed by the delegate."
PART = (
    "Explicitly applied {} delegate, and the model graph will be partially executed by the delegate w/ {} delegate "
    "kernels."
)
NONE = "Though {} delegate is explicitly applied, the model graph will not be executed by the delegate."


@pytest.mark.parametrize(
    ("delegates", "lines"),
    [
        ([used("GPU", 31, 1)], ["GPU delegate created.", WHOLE.format("GPU")]),
        ([used("GPU", 31, 2)], ["GPU delegate created.", PART.format("GPU", 2)]),
        ([used("GPU", 30, 1)], ["GPU delegate created.", PART.format("GPU", 1)]),
        (
            [used("EXTERNAL", 31, 1), used("EXTERNAL#2", 0, 0)],
            [
                "EXTERNAL delegate created.",
                "Going to apply 2 delegates one after another.",
                WHOLE.format("EXTERNAL"),
                NONE.format("EXTERNAL"),
            ],
        ),
        (
            [used("XNNPACK", 31, 1, xnnpack_force_fp16=True)],
            ["XNNPack FP16 inference enabled.", "XNNPACK delegate created.", WHOLE.format("XNNPACK")],
        ),
        ([replace(used("XNNPACK", 31, 1), requested=False), used("GPU", None, None)], []),
    ],
    ids=["all nodes", "two partitions", "a missing node", "the second took nothing", "fp16", "nobody asked"],
)
def test_what_delegates_took(delegates: list[DelegateUsed], lines: list[str]) -> None:
    assert delegation_lines(delegates, NODES) == [f"INFO: {line}" for line in lines]


GPU_ROW, FAST, SLOW = ("gpu-default", None), ("cpu w/ 4 threads (xnnpack)", [10]), ("cpu w/ 1 threads", [20])


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([loaded_line("m.tflite")], ["INFO: Loaded model m.tflite"]),
        ([signature_line("add")], ["INFO: Using signature: add"]),
        ([model_size_line(544)], ["INFO: The input model file size (MB): 0.000544"]),
        ([model_size_line(0)], ["WARN: Failed to get the input model file size."]),
        ([initialized_line(1361236)], ["INFO: Initialized session in 1361.24ms."]),
        (
            saved_lines("out.pb"),
            ["INFO: Saving benchmark result to: out.pb", "INFO: Saved benchmark result to: out.pb"],
        ),
        (
            [running_line(0, -1.0, 150.0), *stat_lines(stat_figures([]))],
            [
                "INFO: Running benchmark for at least 0 iterations and at least -1 seconds but terminate if exceeding "
                "150 seconds.",
                "INFO: count=0 p5=0 median=0 p95=0",
                "",
            ],
        ),
        (
            [timings_line(2540, stat_figures([752, 408]), stat_figures([565] * 5 + [567]))],
            [
                "INFO: Inference timings in us: Init: 2540, First inference: 752, Warmup (avg): 580, "
                "Inference (avg): 565.333"
            ],
        ),
        (
            [performance_options_line("cpu,gpu")],
            ["INFO: The list of TFLite runtime options to be benchmarked: [cpu,gpu]"],
        ),
        (
            summary_lines([(name, stat_figures(times) if times else None) for name, times in (GPU_ROW, SLOW, FAST)]),
            [
                "INFO: ",
                "==============Summary of All Runs w/ Different Performance Options==============",
                "INFO: cpu w/ 4 threads (xnnpack): count=1 curr=10 p5=10 median=10 p95=10",
                "INFO:           cpu w/ 1 threads: count=1 curr=20 p5=20 median=20 p95=20",
                "INFO:                gpu-default:  failed!",
            ],
        ),
        # 4932, 5328 and 10900 KiB are 4.816, 5.203 and 10.644 MiB; 10940 and 8892 KiB are 10 and 8 MiB
        (
            memory_lines(MEMORY)[1:],
            [
                "INFO: Memory footprint delta from the start of the tool (MB): init=4.81641 overall=5.20312",
                "INFO: Overall peak memory footprint (MB) via periodic monitoring: 10.6445",
                "INFO: Memory status at the end of exeution:",
                "INFO: - VmRSS              : 10 MB",
                "INFO: + RssAnnon           : 2 MB",
                "INFO: + RssFile + RssShmem : 8 MB",
            ],
        ),
        # whole megabytes are subtracted: 10.1 MB, 2.5 of them anonymous and 7.6 not; 10 - 7 = 3
        (
            memory_lines(replace(MEMORY, steady_kb=10 * 1024 + 102, anonymous_kb=2 * 1024 + 512))[-3:],
            [
                "INFO: - VmRSS              : 10 MB",
                "INFO: + RssAnnon           : 3 MB",
                "INFO: + RssFile + RssShmem : 7 MB",
            ],
        ),
        (
            memory_lines(replace(MEMORY, monitored_peak_kb=None))[1:],
            ["INFO: Memory footprint delta from the start of the tool (MB): init=4.81641 overall=5.20312"],
        ),
        (memory_lines(NO_MEMORY), []),
    ],
)
def test_all_other_lines_are_the_native_ones(lines: list[str], expected: list[str]) -> None:
    assert lines == expected


def test_no_flag_and_no_text_in_the_log_is_declared_twice() -> None:
    names = [*(parameter.name for parameter in PARAMETERS), *REFUSED, *CONFIGURATION_PARAMETERS]
    assert len(names) == len(set(names))
    assert [parameter for parameter in LOGGED if parameter.name != "num_threads"] == list(PARAMETERS)
    texts = [parameter.log for parameter in (*LOGGED, *DELEGATE_PARAMETERS.values()) if parameter.log]
    assert len(texts) == len(set(texts))


def read(rounds: Sequence[Round], model_size_bytes: int = 1, input_bytes: int = 1) -> Any:
    return message_class("BenchmarkResult", BENCHMARK).FromString(
        native_benchmark_proto(rounds, model_size_bytes, input_bytes)
    )


def test_the_protobuf_has_all_figures() -> None:
    message = read([a_round([783, 417], [1000, 2000, 3000])], model_size_bytes=525598, input_bytes=49152)
    latency, memory, misc = message.latency_metrics, message.memory_metrics, message.misc_metrics
    assert (latency.avg_ms, latency.min_ms, latency.max_ms, latency.median_ms) == (2.0, 1.0, 3.0, 2.0)
    assert (latency.p5_ms, latency.p95_ms) == (1.0, 3.0)
    assert latency.stddev_ms == pytest.approx(int(math.sqrt(int(2000000 / 3))) / 1000)
    opening = (latency.init_ms, latency.first_inference_ms, latency.average_warm_up_ms)
    assert opening == pytest.approx((1.862, 0.783, 0.6))
    assert (memory.init_footprint_kb, memory.overall_footprint_kb) == (4932, 5328)
    assert memory.peak_mem_mb == pytest.approx(10900 / 1024)
    assert (misc.num_runs, misc.num_warmup_runs, misc.model_size_mb) == (3, 2, pytest.approx(0.525598))
    assert misc.model_throughput_in_mb_per_sec == pytest.approx(49152 * 3 / 0.006 / 2**20)


def test_runs_of_several_rounds_count_together_in_the_protobuf() -> None:
    larger = replace(MEMORY, peak_kb=5824 + 6000)
    message = read([a_round([10], [1000, 3000], 2000), a_round([30, 50], [5000], 4000, larger)])
    latency = message.latency_metrics
    assert (latency.avg_ms, latency.min_ms, latency.max_ms, latency.median_ms) == (3.0, 1.0, 5.0, 3.0)
    assert latency.init_ms == 3.0
    assert latency.first_inference_ms == pytest.approx(0.02)
    assert latency.average_warm_up_ms == pytest.approx(0.03)
    assert (message.misc_metrics.num_runs, message.misc_metrics.num_warmup_runs) == (3, 3)
    assert message.memory_metrics.overall_footprint_kb == 6000


def test_what_is_not_known_is_not_in_the_protobuf() -> None:
    """Memory, where the platform does not say; its peak, where it was not monitored; throughput of a dry run."""
    assert not read([a_round([1], [1], memory=NO_MEMORY)]).HasField("memory_metrics")
    unmonitored = read([a_round([1], [1], memory=replace(MEMORY, monitored_peak_kb=None))]).memory_metrics
    assert (unmonitored.init_footprint_kb, unmonitored.HasField("peak_mem_mb")) == (4932, False)
    dry = read([a_round([], [])], input_bytes=49152)
    assert math.isnan(dry.misc_metrics.model_throughput_in_mb_per_sec)
    assert (dry.misc_metrics.num_runs, dry.latency_metrics.avg_ms) == (0, 0.0)

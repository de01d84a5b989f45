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


class TestStatLine:
    def test_none_one_and_equal_samples_are_short(self) -> None:
        """Equal samples have no blank before the parenthesis."""
        assert stat_line([]) == "count=0 p5=0 median=0 p95=0"
        assert stat_line([761]) == "count=1 curr=761 p5=761 median=761 p95=761"
        assert stat_line([3, 3], percentiles=False) == "count=2 curr=3(all same)"
        assert stat_line([3, 3, 3]) == "count=3 curr=3(all same) p5=3 median=3 p95=3"

    def test_different_samples(self) -> None:
        """Sum 9000, mean 2250, mean square 5687500, variance 625000, root 790.57; indices 0, 2 and 3."""
        expected = "count=4 first=2000 curr=1500 min=1500 max=3500 avg=2250 std=750 p5=1500 median=2000 p95=3500"
        assert stat_line([2000, 3500, 2000, 1500]) == expected

    def test_small_spreads_have_no_deviation_and_averages_six_digits(self) -> None:
        """Variance 2/9 is truncated before the root is taken."""
        expected = "count=3 first=1000001 curr=1000000 min=1000000 max=1000001 avg=1e+06 std=0"
        assert stat_line([1000001, 1000000, 1000000], percentiles=False) == expected


class TestStartingLines:
    def test_the_flags_given_stand_in_native_order(self) -> None:
        lines = starting_lines(
            LOGGED,
            given(
                use_xnnpack=True,
                num_threads=2,
                graph="a.tflite",
                external_delegate_path="/d.so",
                min_secs=0.25,
                num_runs=3,
            ),
        )
        assert lines == [
            "INFO: STARTING!",
            "INFO: Log parameter values verbosely: [0]",
            "INFO: Min num runs: [3]",
            "INFO: Min runs duration (seconds): [0.25]",
            "INFO: Num threads: [2]",
            "INFO: Graph: [a.tflite]",
            "INFO: Signature to run: []",
            "INFO: #threads used for CPU inference: [2]",
            "INFO: External delegate path: [/d.so]",
            "INFO: Use xnnpack: [1]",
        ]

    def test_each_of_several_external_delegates_is_named(self) -> None:
        paths = [*given(external_delegate_path="a.so"), *given(external_delegate_path="b.so")]
        assert starting_lines([], paths)[1:] == [
            "INFO: External delegate path: [a.so]",
            "INFO: External delegate path: [b.so]",
        ]

    def test_verbose_names_defaults_too(self) -> None:
        lines = starting_lines(LOGGED, [], verbose=True)
        assert lines[1:5] == [
            "INFO: Log parameter values verbosely: [1]",
            "INFO: Min num runs: [50]",
            "INFO: Min runs duration (seconds): [1]",
            "INFO: Max runs duration (seconds): [150]",
        ]
        assert "INFO: Number of GPU delegate invoke loop iterations: [1]" in lines

    def test_flags_of_nnapi_are_named_only_where_it_is_on(self) -> None:
        flags: dict[str, Value] = {"use_nnapi": True, "nnapi_accelerator_name": "npu"}
        assert starting_lines([], given(**flags))[1:] == [
            "INFO: Use NNAPI: [1]",
            "INFO: NNAPI accelerator name (Android 10+): [npu]",
        ]
        assert starting_lines([], given(**flags | {"use_nnapi": False}))[1:] == ["INFO: Use NNAPI: [0]"]

    def test_a_flag_without_a_native_name_is_left_out(self) -> None:
        assert starting_lines([], given(npu_vendor="qualcomm")) == ["INFO: STARTING!"]


class TestDelegationLines:
    def test_one_partition_with_all_nodes_is_complete(self) -> None:
        assert delegation_lines([used("GPU", 31, 1)], NODES) == [
            "INFO: GPU delegate created.",
            "INFO: Explicitly applied GPU delegate, and the model graph will be completely executed by the delegate.",
        ]

    @pytest.mark.parametrize(("nodes", "partitions"), [(31, 2), (30, 1)])
    def test_two_partitions_or_a_missing_node_are_partial(self, nodes: int, partitions: int) -> None:
        assert delegation_lines([used("GPU", nodes, partitions)], NODES)[1] == (
            "INFO: Explicitly applied GPU delegate, and the model graph will be partially executed by the delegate "
            f"w/ {partitions} delegate kernels."
        )

    def test_several_delegates_of_which_the_second_took_nothing(self) -> None:
        assert delegation_lines([used("EXTERNAL", 31, 1), used("EXTERNAL#2", 0, 0)], NODES) == [
            "INFO: EXTERNAL delegate created.",
            "INFO: Going to apply 2 delegates one after another.",
            "INFO: Explicitly applied EXTERNAL delegate, and the model graph will be completely executed by the "
            "delegate.",
            "INFO: Though EXTERNAL delegate is explicitly applied, the model graph will not be executed by the "
            "delegate.",
        ]

    def test_half_precision_is_named_before_the_delegate(self) -> None:
        assert delegation_lines([used("XNNPACK", 31, 1, xnnpack_force_fp16=True)], NODES)[:2] == [
            "INFO: XNNPack FP16 inference enabled.",
            "INFO: XNNPACK delegate created.",
        ]

    def test_what_was_not_asked_for_or_not_created_is_not_named(self) -> None:
        implicit = replace(used("XNNPACK", 31, 1), requested=False)
        assert delegation_lines([implicit, used("GPU", None, None)], NODES) == []


def test_lines_about_model_session_and_files() -> None:
    assert loaded_line("m.tflite") == "INFO: Loaded model m.tflite"
    assert signature_line("add") == "INFO: Using signature: add"
    assert model_size_line(544) == "INFO: The input model file size (MB): 0.000544"
    assert model_size_line(0) == "WARN: Failed to get the input model file size."
    assert initialized_line(1361236) == "INFO: Initialized session in 1361.24ms."
    assert saved_lines("out.pb") == [
        "INFO: Saving benchmark result to: out.pb",
        "INFO: Saved benchmark result to: out.pb",
    ]


def test_a_phase_ends_with_an_empty_line() -> None:
    assert [running_line(0, -1.0, 150.0), *stat_lines(stat_figures([]))] == [
        "INFO: Running benchmark for at least 0 iterations and at least -1 seconds but terminate if exceeding 150 "
        "seconds.",
        "INFO: count=0 p5=0 median=0 p95=0",
        "",
    ]


def test_times_in_one_line() -> None:
    line = timings_line(2540, stat_figures([752, 408]), stat_figures([565] * 5 + [567]))
    assert line == (
        "INFO: Inference timings in us: Init: 2540, First inference: 752, Warmup (avg): 580, Inference (avg): 565.333"
    )


class TestMemoryLines:
    def test_growth_of_the_peak_and_what_is_resident_in_the_end(self) -> None:
        """4932, 5328 and 10900 KiB are 4.816..., 5.203... and 10.644... MiB; 10940 and 8892 KiB are 10 and 8 MiB."""
        assert memory_lines(MEMORY)[1:] == [
            "INFO: Memory footprint delta from the start of the tool (MB): init=4.81641 overall=5.20312",
            "INFO: Overall peak memory footprint (MB) via periodic monitoring: 10.6445",
            "INFO: Memory status at the end of exeution:",
            "INFO: - VmRSS              : 10 MB",
            "INFO: + RssAnnon           : 2 MB",
            "INFO: + RssFile + RssShmem : 8 MB",
        ]

    def test_whole_megabytes_are_subtracted_as_the_native_tool_does(self) -> None:
        """Resident are 10.1 MB, 2.5 of them anonymous and 7.6 not; 10 - 7 = 3."""
        memory = replace(MEMORY, steady_kb=10 * 1024 + 102, anonymous_kb=2 * 1024 + 512)
        assert memory_lines(memory)[-3:] == [
            "INFO: - VmRSS              : 10 MB",
            "INFO: + RssAnnon           : 3 MB",
            "INFO: + RssFile + RssShmem : 7 MB",
        ]

    def test_without_monitoring_there_is_only_the_growth(self) -> None:
        lines = memory_lines(replace(MEMORY, monitored_peak_kb=None))
        assert len(lines) == 2
        assert lines[0].startswith("INFO: Note: as the benchmark tool itself affects memory footprint, ")

    def test_a_platform_that_does_not_say_gives_no_line(self) -> None:
        assert memory_lines(NO_MEMORY) == []


def test_summary_of_performance_options() -> None:
    rows = [
        ("gpu-default", None),
        ("cpu w/ 1 threads", stat_figures([20])),
        ("cpu w/ 4 threads (xnnpack)", stat_figures([10])),
    ]
    assert performance_options_line("cpu,gpu") == (
        "INFO: The list of TFLite runtime options to be benchmarked: [cpu,gpu]"
    )
    assert summary_lines(rows) == [
        "INFO: ",
        "==============Summary of All Runs w/ Different Performance Options==============",
        "INFO: cpu w/ 4 threads (xnnpack): count=1 curr=10 p5=10 median=10 p95=10",
        "INFO:           cpu w/ 1 threads: count=1 curr=20 p5=20 median=20 p95=20",
        "INFO:                gpu-default:  failed!",
    ]


class TestFlags:
    def test_no_flag_is_declared_twice(self) -> None:
        names = [parameter.name for parameter in PARAMETERS]
        assert len(names) == len(set(names))
        assert not set(names) & (REFUSED.keys() | CONFIGURATION_PARAMETERS.keys())
        assert not REFUSED.keys() & CONFIGURATION_PARAMETERS.keys()

    def test_what_is_logged_is_what_is_declared_and_the_threads(self) -> None:
        assert [parameter for parameter in LOGGED if parameter.name != "num_threads"] == list(PARAMETERS)

    def test_two_flags_have_no_log_text_in_common(self) -> None:
        parameters = [*LOGGED, *DELEGATE_PARAMETERS.values()]
        texts = [parameter.log for parameter in parameters if parameter.log]
        assert len(texts) == len(set(texts))


def read(rounds: Sequence[Round], model_size_bytes: int = 1, input_bytes: int = 1) -> Any:
    return message_class("BenchmarkResult", BENCHMARK).FromString(
        native_benchmark_proto(rounds, model_size_bytes, input_bytes)
    )


class TestProto:
    def test_all_figures(self) -> None:
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

    def test_memory_is_missing_where_the_platform_does_not_say(self) -> None:
        message = read([a_round([1], [1], memory=NO_MEMORY)])
        assert not message.HasField("memory_metrics")

    def test_the_peak_is_missing_where_it_was_not_monitored(self) -> None:
        message = read([a_round([1], [1], memory=replace(MEMORY, monitored_peak_kb=None))])
        assert message.memory_metrics.init_footprint_kb == 4932
        assert not message.memory_metrics.HasField("peak_mem_mb")

    def test_runs_of_several_rounds_count_together(self) -> None:
        larger = replace(MEMORY, peak_kb=5824 + 6000)
        message = read([a_round([10], [1000, 3000], 2000), a_round([30, 50], [5000], 4000, larger)])
        latency = message.latency_metrics
        assert (latency.avg_ms, latency.min_ms, latency.max_ms, latency.median_ms) == (3.0, 1.0, 5.0, 3.0)
        assert latency.init_ms == 3.0
        assert latency.first_inference_ms == pytest.approx(0.02)
        assert latency.average_warm_up_ms == pytest.approx(0.03)
        assert (message.misc_metrics.num_runs, message.misc_metrics.num_warmup_runs) == (3, 3)
        assert message.memory_metrics.overall_footprint_kb == 6000

    def test_a_dry_run_has_no_throughput(self) -> None:
        message = read([a_round([], [])], input_bytes=49152)
        assert math.isnan(message.misc_metrics.model_throughput_in_mb_per_sec)
        assert (message.misc_metrics.num_runs, message.latency_metrics.avg_ms) == (0, 0.0)

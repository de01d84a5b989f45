"""Logs of benchmark_model in the words of several releases."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from evaltools.errors import DataError
from evaltools.native.logs.benchmark import parse_benchmark_log
from evaltools.native.logs.delegates import LoggedDelegation
from evaltools.result.benchmark import LoggedMemory, StatFigures
from tests.native.logs.log_styles import STYLES, recorded

LOG = """\
INFO: STARTING!
INFO: Log parameter values verbosely: [0]
INFO: Min num runs: [3]
INFO: Graph: [dir [1]/net: a.tflite]
INFO: Signature to run: []
INFO: Input value files: [input:a.bin]
INFO: Loaded model dir [1]/net: a.tflite
INFO: Created TensorFlow Lite delegate for GPU.
VERBOSE: Replacing 9 out of 10 node(s) with delegate (TfLiteGpuDelegateV2) node, yielding 2 partitions.
INFO: GPU delegate created.
INFO: Going to apply 3 delegates one after another.
INFO: Explicitly applied GPU delegate, and the model graph will be partially executed by the delegate w/ 2 delegate \
kernels.
INFO: Though STABLE_DELEGATE delegate is explicitly applied, the model graph will not be executed by the delegate.
WARN: Tensor # 0 is named input but flags call it in
INFO: The input model file size (MB): 2.78005
INFO: Initialized session in 1361.24ms.
INFO: Running benchmark for at least 1 iterations and at least 0.5 seconds but terminate if exceeding 150 seconds.
INFO: count=1 curr=2000000 p5=2000000 median=2000000 p95=2000000

INFO: Running benchmark for at least 3 iterations and at least 1 seconds but terminate if exceeding 150 seconds.
INFO: count=3 first=1234567 curr=1234569 min=1234567 max=1234569 avg=1.23457e+06 std=0 p5=1234567 median=1234568 \
p95=1234569

INFO: Inference timings in us: Init: 1361236, First inference: 2000000, Warmup (avg): 2e+06, Inference (avg): \
1.23457e+06
INFO: Note: as the benchmark tool itself affects memory footprint, the following is only APPROXIMATE.
INFO: Memory footprint delta from the start of the tool (MB): init=9.50781 overall=11.1406
INFO: Overall peak memory footprint (MB) via periodic monitoring: 10.6445
INFO: Profiling Info for Benchmark Initialization:
Timings (microseconds): count=1 curr=7
Memory (bytes): count=0
INFO: Looks like a flag: [1]
"""
TENSORFLOW_2_4 = """\
STARTING!
Graph: [a.tflite]
Use gpu : [1]
Loaded model a.tflite
Applied GPU delegate, and the model graph will be completely executed w/ the delegate.
The input model file size (MB): 3.79893
Initialized session in 1451.51ms.
Running benchmark for at least 1 iterations and at least 0.5 seconds but terminate if exceeding 150 seconds.
count=56 first=11147 curr=8146 min=7055 max=12036 avg=8779.68 std=1115

Running benchmark for at least 50 iterations and at least 1 seconds but terminate if exceeding 150 seconds.
count=50 curr=8325(all same)

Inference timings in us: Init: 1451507, First inference: 11147, Warmup (avg): 8779.68, Inference (avg): 8325
Peak memory footprint (MB): init=63.4883 overall=63.4883
"""
TENSORFLOW_1 = """\
Initialized session in 0.896ms
Running benchmark for at least 1 iterations and at least 0.5 seconds but terminate if exceeding 150 seconds.
count=215 first=12231 curr=2106 min=2065 max=12231 avg=2331.42 std=746

Running benchmark for at least 100 iterations and at least 1 seconds but terminate if exceeding 150 seconds.
count=459 first=2143 curr=2101 min=2056 max=2656 avg=2177.1 std=124

Average inference timings in us: Warmup: 2331.42, Init: 896, {word}: 2177.1
"""


def test_everything_in_a_log_of_today() -> None:
    log = parse_benchmark_log(LOG)
    assert log.parameters == {
        "Log parameter values verbosely": "0",
        "Min num runs": "3",
        "Graph": "dir [1]/net: a.tflite",
        "Signature to run": "",
        "Input value files": "input:a.bin",
    }
    assert log.graph == "dir [1]/net: a.tflite"
    assert log.delegations == (
        LoggedDelegation("GPU", "partial", 2),
        LoggedDelegation("STABLE_DELEGATE", "none", None),
    )
    assert (log.model_size_mb, log.init_us, log.first_inference_us) == (2.78005, 1361236, 2000000)
    assert log.warm_up == StatFigures(1, 2000000, 2000000, 2000000, 2000000, 2e6, 0, 2000000, 2000000, 2000000)
    assert log.regular == StatFigures(3, 1234567, 1234569, 1234567, 1234569, 1234570.0, 0, 1234567, 1234568, 1234569)
    assert log.memory == LoggedMemory(9.50781, 11.1406, 10.6445)
    assert (log.errors, log.is_complete) == ((), True)
    assert parse_benchmark_log("".join(f"    {line}\r\n" for line in LOG.splitlines())) == log


def test_a_log_without_prefixes_and_percentiles() -> None:
    log = parse_benchmark_log(TENSORFLOW_2_4)
    assert log.parameters == {"Graph": "a.tflite", "Use gpu": "1"}
    assert log.delegations == (LoggedDelegation("GPU", "full", None),)
    assert log.warm_up == StatFigures(56, 11147, 8146, 7055, 12036, 8779.68, 1115)
    assert log.regular == StatFigures(50, 8325, 8325, 8325, 8325, 8325.0, 0)
    assert log.memory == LoggedMemory(63.4883, 63.4883, None)
    assert log.is_complete


@pytest.mark.parametrize("word", ["Inference", "no stats"])
def test_times_in_the_oldest_words(word: str) -> None:
    log = parse_benchmark_log(TENSORFLOW_1.format(word=word))
    assert (log.init_us, log.first_inference_us, log.is_complete) == (896, 12231, True)
    assert log.regular == StatFigures(459, 2143, 2101, 2056, 2656, 2177.1, 124)


def test_a_log_that_was_cut_off_says_what_it_has() -> None:
    log = parse_benchmark_log(LOG.partition("INFO: Running benchmark for at least 3")[0])
    assert (log.init_us, log.first_inference_us) == (1361240, 2000000)
    assert log.warm_up is not None
    assert (log.regular, log.memory, log.is_complete) == (None, None, False)


def test_errors_are_kept() -> None:
    log = parse_benchmark_log(
        "INFO: STARTING!\nERROR: Failed to load model a\nFATAL: no\nERROR: Benchmarking failed.\n"
    )
    assert log.errors == ("Failed to load model a", "no", "Benchmarking failed.")
    assert not log.is_complete


def test_an_empty_text_says_nothing() -> None:
    log = parse_benchmark_log("")
    assert (log.graph, log.init_us, log.warm_up, log.is_complete) == (None, None, None, False)


def test_two_benchmarks_in_one_text_are_refused() -> None:
    with pytest.raises(DataError, match=r"the log has 4 lines of times, one benchmark has 2; give the log of one"):
        parse_benchmark_log(LOG + LOG)


@pytest.mark.parametrize(
    "line",
    [
        "INFO: count=5",
        "INFO: count=5 first=1 curr=2 mi",
        "INFO: Inference timings in us: Init: x",
        f"INFO: count=1 curr={'9' * 5000}",
        "INFO: Initialized session in nanms.",
        "INFO: Initialized session in 1e999ms.",
    ],
)
def test_a_line_that_was_cut_off_or_is_damaged_is_no_figure(line: str) -> None:
    log = parse_benchmark_log(line)
    assert (log.warm_up, log.init_us) == (None, None)


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("name", ["benchmark_gpu_full", "benchmark_gpu_partial", "benchmark_hexagon_missing"])
def test_every_style_of_prefixes_gives_the_same_figures(name: str, style: str) -> None:
    plain, styled = (parse_benchmark_log(text) for text in (recorded(name), STYLES[style](recorded(name))))
    assert styled.is_complete
    assert replace(styled, errors=()) == replace(plain, errors=())


@pytest.mark.parametrize("name", ["benchmark_gpu_full", "app_gpu_full_threadtime", "app_gpu_full_brief"])
def test_the_log_of_a_run_on_a_gpu(name: str) -> None:
    log = parse_benchmark_log(recorded(name))
    assert log.graph == "/data/local/tmp/evaltools/mobilenet_v1_1.0_224.tflite"
    assert (log.parameters["Num threads"], log.parameters["Use gpu"]) == ("4", "1")
    assert log.delegations == (LoggedDelegation("GPU", "full", None),)
    assert (log.model_size_mb, log.init_us, log.first_inference_us) == (16.9009, 1283417, 9215)
    assert log.warm_up == StatFigures(72, 9215, 6487, 5280, 9215, 6811.92, 731, 5737, 6804, 7969)
    assert log.regular == StatFigures(152, 6490, 7149, 5521, 7509, 6512.58, 375, 5874, 6496, 7156)
    assert log.memory == LoggedMemory(66.4258, 66.4258, 94.2773)
    assert (log.errors, log.is_complete) == ((), True)


@pytest.mark.parametrize(
    ("name", "delegation", "median_us", "runs"),
    [
        ("benchmark_gpu_partial", LoggedDelegation("GPU", "partial", 1), 14158, 71),
        ("benchmark_nnapi_accelerator", LoggedDelegation("NNAPI", "full", None), 1019, 781),
        ("benchmark_nnapi_reference", LoggedDelegation("NNAPI", "none", None), 5261, 187),
        ("benchmark_hexagon", LoggedDelegation("Hexagon", "full", None), None, 231),
    ],
)
def test_the_figures_of_other_runs(
    name: str, delegation: LoggedDelegation | None, median_us: int | None, runs: int
) -> None:
    log = parse_benchmark_log(recorded(name))
    assert log.delegations == (() if delegation is None else (delegation,))
    assert log.regular is not None
    assert (log.regular.median_us, log.regular.count) == (median_us, runs)
    assert log.is_complete


def test_a_run_that_failed_in_its_delegate() -> None:
    log = parse_benchmark_log(recorded("benchmark_nnapi_compilation_failed"))
    assert log.errors[-2:] == ("Failed to apply NNAPI delegate.", "Benchmarking failed.")
    assert not log.is_complete


def test_the_app_of_old_releases_logs_its_times_as_an_error() -> None:
    times = (
        "Average inference timings in us: Warmup: 91471, Init: 4108, Inference: 80660.1Overall max resident set size ="
        " 12 MB"
    )
    before = TENSORFLOW_1.partition("Average")[0]
    log = parse_benchmark_log(f"{before}11-22 13:10:02.123  1234  1250 E tflite  : {times}")
    assert (log.init_us, log.errors, log.is_complete) == (4108, (), True)

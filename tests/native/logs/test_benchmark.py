"""Logs of benchmark_model, and rows of benchmarks made of them."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from evaltools.benchmark.rows import rows_of
from evaltools.configuration import Configuration
from evaltools.metrics.latency import median_interval
from evaltools.native.logs.benchmark import measured_of_logs, parse_benchmark_log
from evaltools.result.facts import DelegationProof, RuntimeUsed
from evaltools.result.figure import Figure
from evaltools.result.rounds import LoggedMemory, Measured, StatFigures
from tests.native.logs.log_styles import STYLES, recorded

GPU = "use_gpu=true"
NNAPI = "use_nnapi=true"
HEXAGON = "use_hexagon=true"
RUNTIME = RuntimeUsed("native", "benchmark_model", "sha256 5f", "default")
HINT = "its figures would be those of the CPU; --allow_fallback=true measures them all the same"
CPU_LOG = """\
INFO: STARTING!
INFO: Graph: [a.tflite]
INFO: Loaded model a.tflite
INFO: Initialized session in 2ms.
INFO: count=1 curr=900 p5=900 median=900 p95=900

INFO: count=10 first=110 curr=90 min={min} max=130 avg={avg} std=9 p5=90 median={median} p95=130

INFO: Inference timings in us: Init: 2000, First inference: 900, Warmup (avg): 900, Inference (avg): {avg}
"""


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
APP_LOG = """\
Initialized session in 0.896ms
Running benchmark for at least 1 iterations and at least 0.5 seconds but terminate if exceeding 150 seconds.
count=215 first=12231 curr=2106 min=2065 max=12231 avg=2331.42 std=746

Running benchmark for at least 100 iterations and at least 1 seconds but terminate if exceeding 150 seconds.
count=459 first=2143 curr=2101 min=2056 max=2656 avg=2177.1 std=124

"""


def made(
    *texts: str,
    asked: str = GPU,
    nodes: int = 31,
    allow_fallback: bool = False,
    name: str = "a",
    failures: tuple[str, ...] = (),
) -> Measured:
    stated = {"allow_fallback": True} if allow_fallback else {}
    return measured_of_logs(0, Configuration.from_text(name, asked), nodes, RUNTIME, texts, failures, **stated)


def on_cpu(*medians_us: int, name: str = "cpu") -> Measured:
    texts = [CPU_LOG.format(min=median - 20, median=median, avg=median + 1) for median in medians_us]
    return made(*texts, asked="", name=name)


def figures_of(found: Measured) -> dict[str, Figure]:
    (row,) = rows_of([found])
    return row.figures


def test_everything_in_a_log_of_today() -> None:
    log = parse_benchmark_log(LOG)
    assert log.parameters == {
        "Log parameter values verbosely": "0",
        "Min num runs": "3",
        "Graph": "dir [1]/net: a.tflite",
        "Signature to run": "",
        "Input value files": "input:a.bin",
    }
    assert log.round is not None
    assert (log.round.init_us, log.round.first_inference_us) == (1361236, 2000000)
    assert log.round.warm_up == StatFigures(1, 2000000, 2000000, 2000000, 2000000, 2e6, 0, 2000000, 2000000, 2000000)
    assert log.round.regular == StatFigures(
        3, 1234567, 1234569, 1234567, 1234569, 1234570.0, 0, 1234567, 1234568, 1234569
    )
    assert log.round.memory == LoggedMemory(9.50781, 11.1406, 10.6445)
    assert log.errors == ()
    assert parse_benchmark_log("".join(f"    {line}\r\n" for line in LOG.splitlines())) == log


def test_the_app_logs_its_times_as_an_error() -> None:
    times = (
        "Average inference timings in us: Warmup: 91471, Init: 4108, Inference: 80660.1Overall max resident set size ="
        " 12 MB"
    )
    log = parse_benchmark_log(f"{APP_LOG}11-22 13:10:02.123  1234  1250 E tflite  : {times}")
    assert log.round is not None
    assert (log.round.init_us, log.round.first_inference_us, log.errors) == (4108, 12231, ())
    assert log.round.regular == StatFigures(459, 2143, 2101, 2056, 2656, 2177.1, 124)


@pytest.mark.parametrize(
    "line", ["INFO: count=5", "INFO: count=5 first=1 curr=2 mi", f"INFO: count=1 curr={'9' * 5000}"]
)
def test_a_line_that_was_cut_off_or_is_damaged_is_no_figure(line: str) -> None:
    damaged = LOG.partition("INFO: count=3")
    assert parse_benchmark_log(f"{damaged[0]}{line}\n{damaged[2].partition(chr(10))[2]}").round is None


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("name", ["benchmark_gpu_full", "benchmark_gpu_partial", "benchmark_hexagon_missing"])
def test_every_style_of_prefixes_gives_the_same_figures(name: str, style: str) -> None:
    plain, styled = (parse_benchmark_log(text) for text in (recorded(name), STYLES[style](recorded(name))))
    assert plain.round is not None
    assert replace(styled, errors=()) == replace(plain, errors=())


@pytest.mark.parametrize("name", ["benchmark_gpu_full", "app_gpu_full_threadtime"])
def test_a_round_on_a_gpu_is_measured_with_its_proof(name: str) -> None:
    found = made(recorded(name), asked="use_gpu=true gpu_backend=cl num_threads=4")
    assert (found.row.status, found.row.reason, found.row.fallback) == ("measured", "", "")
    assert (found.row.name, found.row.num_threads) == ("a", 4)
    assert found.row.flags == ["--num_interpreter_threads=4", "--use_gpu=true", "--gpu_backend=cl"]
    (delegate,) = found.row.delegates
    assert (delegate.name, delegate.requested, delegate.nodes, delegate.partitions) == ("GPU", True, 31, 1)
    assert delegate.options["gpu_backend"] == "cl"
    assert delegate.evidence == "its log: TfLiteGpuDelegateV2 took 31 of 31 nodes"
    assert found.row.delegation == DelegationProof(31, 31, {})
    (only,) = found.logged
    assert (only.init_us, only.first_inference_us) == (1283417, 9215)
    assert only.memory == LoggedMemory(66.4258, 66.4258, 94.2773)
    assert only.regular == StatFigures(152, 6490, 7149, 5521, 7509, 6512.58, 375, 5874, 6496, 7156)
    assert found.rounds == []


def test_a_single_round_has_its_own_median_and_no_interval() -> None:
    figures = figures_of(made(recorded("benchmark_gpu_full")))
    assert figures["latency_average_ms"].value == pytest.approx(6.51258)
    assert figures["latency_p95_ms"].value == 7.156
    latency = figures["latency_ms"]
    assert (latency.value, latency.interval, latency.withheld, latency.count) == (6.496, None, "", 152)


def test_several_rounds_have_an_interval_of_their_medians() -> None:
    figures, expected = figures_of(on_cpu(100, 104, 97)), median_interval([[100], [104], [97]])
    latency = figures["latency_ms"]
    assert expected is not None
    assert latency.interval is not None
    assert (latency.value, latency.count) == (0.1, 30)
    assert (latency.interval.low, latency.interval.high) == pytest.approx((expected.low / 1000, expected.high / 1000))
    assert latency.interval.low < 0.1 < latency.interval.high
    assert figures["latency_average_ms"].value == pytest.approx((101 + 105 + 98) / 3000)


def test_logs_without_percentiles_give_averages_alone() -> None:
    text = recorded("benchmark_hexagon")
    figures = figures_of(made(text, text, asked=HEXAGON))
    assert "latency_ms" not in figures
    assert figures["latency_average_ms"].value == pytest.approx(4.24439)


def test_part_of_the_graph_is_proof_and_the_rest_is_not_made_up() -> None:
    found = made(recorded("benchmark_gpu_partial"), nodes=64)
    assert found.row.status == "measured"
    assert [(entry.name, entry.nodes, entry.partitions) for entry in found.row.delegates] == [("GPU", 63, 1)]
    assert found.row.delegation == DelegationProof(64, 63, {})


def test_nnapi_names_its_device() -> None:
    (delegate,) = made(recorded("benchmark_nnapi_accelerator"), asked=NNAPI).row.delegates
    assert (delegate.nodes, delegate.device, delegate.is_cpu) == (31, "google-edgetpu", False)


def test_xnnpack_that_the_runtime_added_is_shown() -> None:
    log = recorded("benchmark_gpu_unsupported").replace("INFO: Use gpu: [1]\n", "")
    log = "".join(line for line in log.splitlines(keepends=True) if not line.startswith("WARN"))
    found = made(log, asked="")
    assert (found.row.status, found.row.delegation) == ("measured", DelegationProof(31, 31, {}))
    assert [(entry.name, entry.requested, entry.nodes) for entry in found.row.delegates] == [("XNNPACK", False, 31)]


def test_xnnpack_that_was_only_created_is_no_proof() -> None:
    created = "INFO: Created TensorFlow Lite XNNPACK delegate for CPU.\n"
    log = CPU_LOG.format(min=80, median=100, avg=100).replace("INFO: Init", created + "INFO: Init")
    found = made(log, asked="")
    (delegate,) = found.row.delegates
    assert (delegate.name, delegate.requested, delegate.nodes, found.row.delegation) == ("XNNPACK", False, None, None)
    assert delegate.evidence == "its log: XNNPACK was created, its nodes are not said"


@pytest.mark.parametrize(
    ("coverage", "nodes", "partitions", "proof"),
    [
        ("completely executed by the delegate.", 31, 1, DelegationProof(31, 31, {})),
        ("partially executed by the delegate w/ 2 delegate kernels.", None, 2, None),
    ],
)
def test_the_word_of_benchmark_model_alone(
    coverage: str, nodes: int | None, partitions: int, proof: DelegationProof | None
) -> None:
    """On Linux the runtime does not log which nodes it replaced."""
    line = f"INFO: Explicitly applied XNNPACK delegate, and the model graph will be {coverage}\n"
    log = CPU_LOG.format(min=80, median=100, avg=100).replace("INFO: Init", line + "INFO: Init")
    found = made(log, asked="use_xnnpack=true")
    (delegate,) = found.row.delegates
    assert (found.row.status, delegate.nodes, delegate.partitions, found.row.delegation) == (
        "measured", nodes, partitions, proof,
    )  # fmt: skip
    assert delegate.evidence.startswith("its log: XNNPACK executes the graph ")


@pytest.mark.parametrize(
    ("name", "delegate", "quoted"),
    [
        (
            "benchmark_gpu_unsupported",
            "GPU",
            '"GPU acceleration is unsupported on this platform.", after "The GPU delegate compile options are only '
            'supported on Android or iOS platforms or when the tool was built with -DCL_DELEGATE_NO_GL."',
        ),
        ("benchmark_nnapi_unsupported", "NNAPI", '"NNAPI acceleration is unsupported on this platform."'),
        ("benchmark_nnapi_reference", "NNAPI", '"NNAPI accelerators available: [nnapi-reference]"'),
        (
            "benchmark_hexagon_missing",
            "Hexagon",
            '"Hexagon Delegate is not supported.", after "Failed to load libhexagon_interface.so, Error: dlopen '
            'failed: library "libhexagon_interface.so" not found"',
        ),
    ],
)
def test_a_fallback_is_no_measurement_unless_it_is_allowed(name: str, delegate: str, quoted: str) -> None:
    asked = f"use_{delegate.lower()}=true"
    reason = f"{delegate} was asked for, but the log says {quoted}"
    found = made(recorded(name), asked=asked)
    assert (found.row.status, found.row.reason, found.logged) == ("not measured", f"{reason}; {HINT}", [])
    allowed = made(recorded(name), asked=asked, allow_fallback=True)
    assert (allowed.row.status, allowed.row.reason, allowed.row.fallback) == ("measured", "", reason)
    assert figures_of(allowed)["latency_average_ms"].value
    assert [(entry.name, entry.requested) for entry in allowed.row.delegates] == [(delegate, True), ("XNNPACK", False)]


def test_a_delegate_that_was_created_and_took_nothing_is_told_from_one_that_was_not() -> None:
    reference = made(recorded("benchmark_nnapi_reference"), asked=NNAPI)
    missing = made(recorded("benchmark_nnapi_unsupported"), asked=NNAPI)
    assert [entry.nodes for entry in (reference.row.delegates[0], missing.row.delegates[0])] == [0, None]


def test_one_round_on_the_cpu_spoils_a_row() -> None:
    good, bad = recorded("benchmark_gpu_full"), recorded("benchmark_gpu_unsupported")
    found = made(good, bad, good)
    assert found.row.status == "not measured"
    assert found.row.reason.startswith("round 2: GPU was asked for, but the log says")
    assert found.logged == made(good).logged
    assert len(made(good, bad, good, allow_fallback=True).logged) == 3


def test_a_delegate_that_failed_is_the_reason_and_no_figures_are_offered() -> None:
    found = made(recorded("benchmark_nnapi_compilation_failed"), asked=NNAPI, allow_fallback=True)
    assert found.row.status == "not measured"
    assert found.row.reason == (
        'NNAPI was asked for, but the log says "Restored original execution plan after delegate '
        'application failure.", after "NN API returned error ANEURALNETWORKS_OP_FAILED at line 3779 while completing '
        'NNAPI compilation."'
    )


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "INFO: STARTING!\nERROR: Failed to load model a\nERROR: Benchmarking failed.\n",
            'the log says "Failed to load model a"',
        ),
        ("ERROR: Benchmarking failed.\n", 'the log says "Benchmarking failed."'),
        ("INFO: STARTING!\nINFO: Loaded model a\n\n", 'the log ends without times, at "Loaded model a"'),
        ("", "the log is empty"),
        (
            CPU_LOG.format(min=80, median=100, avg=100) + "ERROR: Benchmarking failed.\n",
            'runs failed: the log says "Benchmarking failed."',
        ),
        (
            CPU_LOG.format(min=80, median=100, avg=100)
            + "ERROR: Node number 3 (TfLiteGpuDelegateV2) failed to invoke.",
            'runs failed: the log says "Node number 3 (TfLiteGpuDelegateV2) failed to invoke."',
        ),
        (
            "WARN: Unconsumed cmdline flags: --use_hexagon=true --a=1\n" + CPU_LOG.format(min=80, median=100, avg=100),
            "the program does not know --use_hexagon=true --a=1 and ran without; leave it out, or use another release",
        ),
        (
            CPU_LOG.format(min=80, median=100, avg=100) * 2,
            "the log has 4 lines of times, one benchmark has 2; give the log of one benchmark",
        ),
    ],
)
def test_a_log_without_figures_says_why(text: str, reason: str) -> None:
    found = made(text, asked="")
    assert (found.row.status, found.row.reason, found.logged) == ("not measured", reason, [])
    assert made(CPU_LOG.format(min=80, median=100, avg=100), text, asked="").row.reason == f"round 2: {reason}"


def test_what_the_device_knows_of_a_round_is_its_reason() -> None:
    log = CPU_LOG.format(min=80, median=100, avg=100)
    found = made(log, "INFO: STARTING!", asked="", failures=("", "it crashed: Fatal signal 11"))
    assert (found.row.status, found.row.reason) == ("not measured", "round 2: it crashed: Fatal signal 11")
    assert len(found.logged) == 1
    assert figures_of(found) == {}


def test_without_a_round_nothing_was_measured() -> None:
    assert (made().row.status, made().row.reason) == ("not measured", "it was never started")


def test_rows_are_compared_with_the_first_by_their_rounds() -> None:
    first, second, failed = on_cpu(100, 110, 120), on_cpu(50, 56, 60, name="fast"), made("", name="broken")
    old = made(recorded("benchmark_hexagon"), asked=HEXAGON, name="without medians")
    rows = rows_of([failed, first, second, old])
    assert ["latency_ratio" in row.figures for row in rows] == [False, False, True, False]
    found = rows[2].figures["latency_ratio"]
    assert found.count == 3
    assert found.value == pytest.approx((50 / 100 * 56 / 110 * 60 / 120) ** (1 / 3))
    assert found.interval is not None

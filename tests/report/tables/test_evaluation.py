"""What a person sees."""

from __future__ import annotations

import io
import re

import pytest
from msgspec.structs import replace

from evaltools.cli.shared.terminal import make_console
from evaltools.metrics.agreement import Agreement
from evaltools.metrics.latency import summarise_latency
from evaltools.report.tables.evaluation import describe_configuration, print_configurations, print_result
from evaltools.result.evaluation import (
    ConfigurationResult,
    DelegateUsed,
    EvaluationResult,
    FailedExample,
    LatencyComparison,
)
from evaltools.result.verdict import Reason, Verdict
from evaltools.stats.interval import Interval
from evaltools.stats.latency_ratio import Drift
from evaltools.tasks.imagenet.result import Comparison, TopKChange
from tests.results import classified, configuration, result, with_part


def printed(made: EvaluationResult) -> list[str]:
    text = io.StringIO()
    print_result(made, make_console(text))
    return [line.rstrip() for line in text.getvalue().splitlines()]


def test_the_line_of_a_configuration_says_what_ran() -> None:
    assert describe_configuration(configuration("x")) == (
        "ai-edge-litert 2.3.0, default kernels, 1 thread, "
        "XNNPACK (added by the runtime) 9 of 10 nodes in 2 partitions, "
        "CPU keeps SOFTMAX x1"
    )


def test_a_delegate_whose_nodes_the_log_does_not_tell_is_not_taken_for_loaded_outputs() -> None:
    told = DelegateUsed("XNNPACK", True, {}, None, 2, evidence="its log: XNNPACK executes the graph partially")
    gpu = DelegateUsed("GPU", True, {}, 63, 1, evidence="its log: TfLiteGpuDelegateV2 took 63 of 64 nodes")
    missing = DelegateUsed("NNAPI", True, {}, None, None)
    ran = replace(configuration("x"), delegation=None, delegates=[told, gpu, missing], fallback="no NNAPI")
    assert describe_configuration(ran) == (
        "ai-edge-litert 2.3.0, default kernels, 1 thread, XNNPACK nodes not told in 2 partitions, "
        "GPU 63 nodes in 1 partition, NNAPI not created, FALLBACK: no NNAPI"
    )
    loaded = replace(configuration("x"), delegation=None, delegates=[])
    assert describe_configuration(loaded) == "ai-edge-litert 2.3.0, default kernels, 1 thread, outputs loaded"


def test_configurations_that_lack_the_same_share_a_line() -> None:
    def missing(name: str, reason: str) -> ConfigurationResult:
        return replace(configuration(name), status="not measured", reason=reason, runtime=None)

    text = io.StringIO()
    entries = [missing("gpu", "no GPU"), configuration("cpu"), missing("npu", "no NPU"), missing("gpu fp16", "no GPU")]
    print_configurations(entries, make_console(text))
    lines = text.getvalue().splitlines()
    assert lines[0] == "gpu, gpu fp16: not measured: no GPU"
    assert lines[1].startswith("cpu       ai-edge-litert")
    assert lines[2:] == ["npu       not measured: no NPU"]


def test_a_missing_delegate_and_a_fallback_are_named() -> None:
    missing = replace(configuration("x"), status="not measured", reason="no such thing", runtime=None, delegation=None)
    assert describe_configuration(missing) == "not measured: no such thing"
    fallen = replace(configuration("x"), fallback="no such thing")
    assert describe_configuration(fallen).endswith("FALLBACK: no such thing")


def test_the_table_holds_figures_comparison_and_failures() -> None:
    slow = replace(configuration("reference", "reference"), delegates=[])
    lines = printed(result(slow, configuration("test [fast]")))
    columns = ["top-1", "agrees", "p50", "vs ref", "delegated", "top-5", "lost", "gained", "McNemar"]
    assert re.split("  +", lines[0].strip()) == columns
    assert re.split("  +", lines[1]) == ["reference", "50.00 %", "2 ms", "-", "-"]
    row = ["test [fast]", "50.00 %", "75.0 %", "2 ms", "1.00x", "9/10", "-", "1", "0", "-"]
    assert re.split("  +", lines[2]) == row
    assert lines[3:5] == [
        "test [fast]: 1 of 4 changed: 1 lost, 0 gained",
        "failed: bad.jpg: is [no] picture",
    ]


def test_the_table_holds_intervals_and_verdicts() -> None:
    verdict = Verdict("worse", "top1", "reference", change=-0.25, low=-0.6, high=-0.1)
    reference, test = configuration("reference", "reference"), replace(configuration("test"), verdicts=[verdict])
    flips = TopKChange(1, 1, 0, -0.25, Interval(-0.6, 0.2), 1.0, 0.0004)
    made = with_part(
        result(reference, test, answered={"reference": replace(classified(), topk_intervals=[Interval(0.1, 0.9)])}),
        comparisons=[Comparison("reference", "test", Agreement(4, 3, 1, 0), [flips])],
    )
    evaluated = replace(
        made,
        latency_comparisons=[LatencyComparison("reference", "test", 4, 0.5, Interval(0.4, 0.8))],
    )
    lines = printed(evaluated)
    assert "50.00 ±40.00 %" in lines[1]
    assert "2.00x [1.25, 2.50]" in lines[2]
    assert "p 0.0004" in lines[2]
    assert any(line.startswith("test: top-1 WORSE by 25.00 points [-60.00, -10.00]; ") for line in lines)


def test_an_interval_of_a_speed_that_says_nothing_is_left_out() -> None:
    made = result(configuration("reference", "reference"), configuration("test"))
    uneven = [LatencyComparison("reference", "test", 4, 0.5, Interval(0.05, 40.0))]
    row = re.split("  +", printed(replace(made, latency_comparisons=uneven))[2])
    assert "2.00x" in row


def test_what_is_the_same_for_several_is_said_once() -> None:
    reasons = [Reason("identical_answers", {"examples": 200, "most_differing": 0.0149})]
    same, other = (Verdict("not decided", "top1", "reference", reasons=found) for found in (reasons, []))
    verdicts = {"a": same, "b": other, "c": same}
    tests = [replace(configuration(name), verdicts=[verdict]) for name, verdict in verdicts.items()]
    lines = printed(result(configuration("reference", "reference"), *tests))
    assert [line.partition(": top-1")[0] for line in lines if ": top-1 " in line] == ["a, c", "b"]


@pytest.mark.parametrize(
    ("agreement", "ties", "words"),
    [
        (Agreement(99, 86, 4, 4), 7, "13 of 99 changed: 4 lost, 4 gained, 5 wrong both ways; 7 are exact ties"),
        (Agreement(200, 198, 1, 1), 1, "2 of 200 changed: 1 lost, 1 gained; 1 is an exact tie"),
        (Agreement(200, 200, 0, 0), 0, ""),
    ],
)
def test_what_changed_is_told_by_kind(agreement: Agreement, ties: int, words: str) -> None:
    made = result(configuration("reference", "reference"), configuration("test"))
    comparison = Comparison("reference", "test", agreement, [], ties=ties)
    found = [line for line in printed(with_part(made, comparisons=[comparison])) if "changed" in line]
    assert found == ([f"test: {words}"] if words else [])


@pytest.mark.parametrize(
    ("drift", "words"),
    [
        (Drift(0.31, 1e-6), "x: its times rose by 31 % while they were measured (p 1e-06): the machine was not quiet"),
        (Drift(-0.2, 1e-12), "x: its times fell by 20 % while they were measured (p <1e-9)"),
        (Drift(0.31, 0.01), ""),
        (Drift(0.05, 1e-6), ""),
    ],
)
def test_a_clear_drift_is_said(drift: Drift, words: str) -> None:
    shown = "\n".join(printed(result(replace(configuration("x"), latency_drift=drift))))
    assert words in shown
    assert ("its times" in shown) == bool(words)


def test_long_times_are_written_in_full() -> None:
    slow = replace(configuration("x"), inference_latency=summarise_latency([1_234_000]))
    assert "1234 ms" in printed(result(slow))[1]


def test_without_a_reference_the_heading_names_the_baseline() -> None:
    lines = printed(result(configuration("first"), configuration("second")))
    assert "vs first" in lines[0]


def test_what_failed_during_the_run_says_why_after_the_table() -> None:
    late = replace(configuration("late"), status="not measured", reason="not one example succeeded")
    assert "late: not measured: not one example succeeded" in printed(result(configuration("x"), late))


def test_what_comes_from_elsewhere_stays_in_its_line_and_commands_no_terminal() -> None:
    odd = "\x1b[31mred\nINFO: Top-1 Accuracy: 1"
    failure = FailedExample(f"{odd}.jpg", None, "input", odd)
    made = replace(result(configuration("test")), failed=[failure], warnings=[odd])
    shown = r"\x1b[31mred\nINFO: Top-1 Accuracy: 1"
    lines = printed(made)
    assert f"failed: {shown}.jpg: {shown}" in lines
    assert f"warning: {shown}" in lines
    not_measured = replace(configuration("test"), runtime=None, status="not measured", reason=odd)
    text = io.StringIO()
    print_configurations([not_measured], make_console(text))
    assert text.getvalue() == f"test  not measured: {shown}\n"

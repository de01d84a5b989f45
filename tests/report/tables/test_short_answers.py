"""The short answer below the figures."""

from __future__ import annotations

import io

import pytest
from msgspec.structs import replace

from evaltools.cli.shared.terminal import make_console
from evaltools.metrics.latency import summarise_latency
from evaltools.report.tables.evaluation import print_result
from evaltools.report.tables.short_answers import print_answers
from evaltools.result.evaluation import ConfigurationResult, EvaluationResult, LatencyComparison
from evaltools.result.verdict import TOO_FEW_PICTURES, Reason, Verdict, VerdictKind
from evaltools.stats.interval import Interval
from tests.results import configuration, result

SEARCH = "next: evaltools locate m.tflite"[:30]
REFERENCE = configuration("reference", "reference")


def answers(made: EvaluationResult, with_reasons: bool = True) -> list[str]:
    text = io.StringIO()
    print_answers(made, make_console(text), with_reasons)
    return text.getvalue().splitlines()


def judged(name: str, kind: VerdictKind, metric: str = "outputs") -> ConfigurationResult:
    change = -0.03 if metric == "top1" else None
    span = (-0.05, -0.01) if metric == "top1" else (None, None)
    verdict = Verdict(kind, metric, "reference", change=change, low=span[0], high=span[1], margin=0.005)
    return replace(configuration(name), verdicts=[verdict], flags=["--use_gpu=true", "--gpu_backend=cl"])


def test_a_change_with_its_speed_its_proof_and_the_command_that_looks_closer() -> None:
    made = result(REFERENCE, judged("gpu", "worse", "top1"))
    ratio = LatencyComparison("reference", "gpu", 30, 0.5, Interval(0.4, 0.8))
    assert answers(replace(made, latency_comparisons=[ratio])) == [
        "",
        "gpu: top-1 WORSE by 3.00 points [-5.00, -1.00]; 2.00x [1.25, 2.50] the speed of reference; "
        "XNNPACK (9 of 10 nodes)",
        "next: evaltools diff m.tflite --use_gpu=true --gpu_backend=cl says how far the outputs themselves are apart",
    ]


@pytest.mark.parametrize(
    ("kind", "words", "next_steps"),
    [
        ("equivalent", "equivalent", []),
        ("fp16", "within expected precision of fp16", [SEARCH, "next: imagenet, coco or a task"]),
        ("not decided", "not decided", [SEARCH, "next: inputs of the model's ow"]),
        ("diverged", "diverged", [SEARCH, "next: imagenet, coco or a task"]),
        ("not judged", "not judged", ["next: imagenet, coco or a task"]),
    ],
)
def test_outputs_without_the_reasons_that_stand_above(kind: VerdictKind, words: str, next_steps: list[str]) -> None:
    """The two take as long as each other."""
    _, answer, *steps = answers(replace(result(REFERENCE, judged("a", kind)), task="inference_diff"))
    assert answer == f"a: {words}; 1.00x the speed of reference; XNNPACK (9 of 10 nodes)"
    assert [step[:30] for step in steps] == next_steps


@pytest.mark.parametrize(
    ("command", "search"),
    [
        (["evaltools", "diff", "m.tflite"], "evaltools locate m.tflite --use_gpu=true --gpu_backend=cl looks for"),
        (
            ["evaltools", "diff", "m.tflite", "--input-images=my pictures", "--seed=2", "--num_runs=3"],
            "evaltools locate m.tflite --use_gpu=true --gpu_backend=cl '--input-images=my pictures' --seed=2 looks for",
        ),
        (["evaltools", "diff", "m.tflite", "--locate"], "imagenet, coco"),
    ],
    ids=["random inputs", "stated inputs", "it searches itself"],
)
def test_a_search_for_the_operator_has_the_inputs_of_the_diff(command: list[str], search: str) -> None:
    made = replace(result(REFERENCE, judged("gpu", "diverged")), task="inference_diff")
    asked = replace(made, environment=replace(made.environment, command=command))
    assert answers(asked)[2].startswith(f"next: {search}")


def test_what_ran_where_no_delegate_did() -> None:
    plain = replace(judged("plain", "equivalent"), delegates=[], inference_latency=None)
    fallen = replace(judged("fallen", "equivalent"), fallback="no GPU", inference_latency=None)
    loaded = replace(judged("loaded", "equivalent"), delegates=[], delegation=None, inference_latency=None)
    native = replace(judged("native", "equivalent"), delegation=None, inference_latency=None)
    assert answers(result(REFERENCE, plain, fallen, loaded, native))[1:] == [
        "plain: equivalent; on the CPU without delegates",
        "fallen: equivalent; FALLBACK to the CPU",
        "loaded: equivalent; its outputs were loaded",
        "native: equivalent; XNNPACK (nodes not told)",
        "next: evaltools inspect m.tflite says what delegates take of the model, and what not",
    ]


def test_why_something_was_not_measured_is_said_once() -> None:
    def missing(name: str) -> ConfigurationResult:
        return replace(configuration(name), status="not measured", reason="no GPU here", runtime=None)

    failed = replace(configuration("c"), status="not measured", reason="it died", inference_latency=None)
    made = result(REFERENCE, missing("a"), missing("b"), failed)
    doctor = "next: evaltools doctor says what runs on this machine, and what is missing for the rest"
    assert answers(made) == ["", "a, b: not measured: no GPU here", "c: not measured: it died", doctor]
    assert answers(made, with_reasons=False)[1:3] == ["a, b: not measured, as said above", "c: not measured: it died"]


def test_without_a_comparison_there_is_no_answer() -> None:
    assert answers(result(replace(REFERENCE, inference_latency=summarise_latency([1.0])))) == []


def test_what_was_measured_and_held_against_nothing_says_why() -> None:
    gone = replace(REFERENCE, status="not measured", reason="it died", inference_latency=None)
    assert answers(result(gone, configuration("a"))) == [
        "",
        "reference: not measured: it died",
        "a: not decided: reference was not measured",
    ]
    assert answers(result(REFERENCE, configuration("a"))) == ["", "a: not decided: there is no answer that both gave"]


def test_the_answer_alone_still_has_failures_and_warnings() -> None:
    text = io.StringIO()
    verdict = Verdict("equivalent", "outputs", "reference", reasons=[Reason("identical")])
    made = result(REFERENCE, replace(configuration("a"), verdicts=[verdict]))
    print_result(replace(made, warnings=["mind this"]), make_console(text), "answer")
    assert text.getvalue().splitlines() == [
        "failed: bad.jpg: is [no] picture",
        "warning: mind this",
        "",
        "a: equivalent; 1.00x the speed of reference; XNNPACK (9 of 10 nodes)",
    ]


@pytest.mark.parametrize(
    ("needed", "reasons", "step"),
    [
        (5642, [], "about 5642 decide in 80 % of cases, this run had 4"),
        (None, [Reason(TOO_FEW_PICTURES, {"pictures": 4, "fewest": 50})], "50 are the fewest, this run had 4"),
        (None, [], "no number of such examples is known to decide it; a wider --margin may"),
    ],
)
def test_what_decides_an_open_verdict_comes_next(needed: int | None, reasons: list[Reason], step: str) -> None:
    entry = judged("gpu", "not decided", "top1")
    verdict = replace(entry.verdicts[0], examples_needed=needed, reasons=reasons)
    assert step in answers(result(REFERENCE, replace(entry, verdicts=[verdict])))[-1]

"""Gates compared with results made by hand: which result and configuration they are about, what is taken of them."""

from __future__ import annotations

import math
from typing import Any

import pytest
from msgspec.structs import replace

from evaltools.gates.bounds import change_of, share_of
from evaltools.gates.check import GateDecisions, decide_together, hold_all
from evaltools.gates.compare import hold_against_old
from evaltools.gates.criteria import parse_criterion
from evaltools.gates.decide import Decision
from evaltools.gates.evidence import Allowed, Baseline, Evidence
from evaltools.gates.gate_file import Gate
from evaltools.known_tasks import all_metrics
from evaltools.metrics.boxes import BoxAgreement
from evaltools.metrics.interval import Interval
from evaltools.metrics.latency import LatencyRatio, summarise_latency
from evaltools.metrics.native_numbers import NativeError
from evaltools.metrics.output_difference import OutputDifference, Quanta, Scores, Values
from evaltools.metrics.power import CountedChange, Share
from evaltools.metrics.proportions import PairedCounts
from evaltools.result.facts import DelegationProof
from evaltools.result.figure import Figure
from evaltools.result.result import Result
from tests.results import compared, configuration, evidence, part, ratio, result, row_with, with_ratios
from tests.results import of_ranks as ranked
from tests.tasks.coco.results import detection_result
from tests.tasks.inference_diff.results import DIFFERENCE, comparison, judged
from tests.tasks.inference_diff.results import result as diff_result

PER_OUTPUT = {name for name, metric in all_metrics().items() if metric.is_per_output}
REFERENCE = configuration("reference", "reference")
FAST = configuration("fast")
MADE = result(REFERENCE, FAST)


def gate(*limits: str, run: str = "", task: str = "", model: str = "", configuration: str = "*") -> Gate:
    return Gate(run, task, model, configuration, tuple(map(parse_criterion, limits)))


def held(made: Result, *gates: Gate) -> list[Decision]:
    return [decision for report in hold_all(gates, {"nightly": part(made)}) for decision in report.decisions]


def one(made: Result, limit: str) -> Decision:
    (found,) = held(made, gate(limit))
    return found


def of_ranks(ranks: list[int | None]) -> Result:
    """Accuracies as an evaluation writes them, which is in float32."""
    return result(REFERENCE, FAST, answered={"fast": ranked(ranks, 2)})


def with_flips(count: int, lost: int, gained: int) -> Result:
    return result(REFERENCE, FAST, comparisons=[compared("reference", "fast", count, count, lost, gained)])


def test_every_limit_is_compared_with_every_test_configuration() -> None:
    made = result(REFERENCE, FAST, configuration("slow"))
    (report,) = hold_all([gate("top1 >= 50 %", "top2 >= 80 %")], {"nightly": part(made)})
    assert (report.run, report.model) == ("nightly", "m.tflite")
    shown = [(entry.configuration, entry.limit, entry.verdict) for entry in report.decisions]
    assert shown == [
        ("fast", "top1 >= 50 %", "pass"),
        ("fast", "top2 >= 80 %", "fail"),
        ("slow", "top1 >= 50 %", "pass"),
        ("slow", "top2 >= 80 %", "fail"),
    ]


def test_patterns_choose_results_and_configurations() -> None:
    other = replace(MADE, models=[replace(MADE.model, file="models/other.tflite")])
    results = {"nightly arm": part(MADE), "nightly x86": part(other), "release": part(MADE)}
    reports = hold_all(
        [
            gate("top1 >= 50 %", run="nightly *"),
            gate("top1 >= 50 %", model="other*", configuration="f*"),
            gate("top1 >= 50 %", run="release", task="imagenet", configuration="fast"),
        ],
        results,
    )
    assert [report.run for report in reports] == ["nightly arm", "nightly x86", "nightly x86", "release"]
    assert {decision.verdict for report in reports for decision in report.decisions} == {"pass"}


def test_a_gate_about_nothing_is_not_measured_and_says_what_there_is() -> None:
    found = held(MADE, gate("top1 >= 50 %", "top2 >= 50 %", task="coco"), gate("top1 >= 50 %"))
    assert [entry.verdict for entry in found] == ["not measured", "not measured", "pass"]
    assert "nightly (imagenet of m.tflite)" in found[0].reason
    assert hold_all([gate("top1 >= 50 %", run="weekly", model="x*")], {}) == [
        GateDecisions(
            "weekly",
            "x*",
            (Decision("*", "top1 >= 50 %", "not measured", reason="no result is about it; there are none"),),
        )
    ]


def test_an_unknown_configuration_is_not_measured_and_says_which_there_are() -> None:
    found = held(MADE, gate("top1 >= 50 %", configuration="fats"))
    assert [(entry.configuration, entry.verdict) for entry in found] == [("fats", "not measured")]
    assert found[0].reason.endswith("there are fast")
    alone = held(result(REFERENCE), gate("top1 >= 50 %", configuration="reference"))
    assert alone[0].reason.endswith("there are none")


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        (result(REFERENCE, replace(FAST, status="not measured", reason="no such library")), "no such library"),
        (
            result(REFERENCE, replace(FAST, status="not measured", reason="no NNAPI", cannot_exist=True)),
            "no NNAPI; allow_missing = true in the gate skips what cannot exist here",
        ),
        (result(REFERENCE, replace(FAST, fallback="no GPU")), "on the CPU instead of what it asked for: no GPU"),
        (replace(MADE, complete=False, stopped="interrupted"), "the run ended early (interrupted)"),
    ],
)
@pytest.mark.parametrize(
    "limit", ["top1 >= 10 %", "top1 drop <= 90 points", "latency_ms <= 999", "failed_examples <= 99"]
)
def test_what_did_not_run_as_asked_keeps_no_limit(made: Result, reason: str, limit: str) -> None:
    decision = one(made, limit)
    assert (decision.verdict, decision.found) == ("not measured", None)
    assert reason in decision.reason


@pytest.mark.parametrize(
    ("reference", "reason"),
    [
        ({"status": "not measured", "reason": "it died"}, "it died"),
        ({"fallback": "no GPU"}, "no GPU"),
        ({"role": "test"}, "no reference"),
    ],
)
def test_a_reference_that_is_none_leaves_nothing_to_compare_with(reference: dict[str, Any], reason: str) -> None:
    flips = with_flips(100, 0, 0)
    made = replace(flips, rows=[replace(REFERENCE, **reference), flips.rows[1]])
    for limit in ("top1 drop <= 90 points at 95 %", "agreement >= 10 %", "latency_ratio <= 9"):
        (found,) = held(made, gate(limit, configuration="fast"))
        assert found.verdict == "not measured"
        assert reason in found.reason
    assert [entry.verdict for entry in held(made, gate("top1 >= 50 %", configuration="fast"))] == ["pass"]


@pytest.mark.parametrize("right", [1, 3, 7, 9, 90, 63, 70])
def test_accuracies_are_shares_to_the_last_bit(right: int) -> None:
    """90 of 100 in float32 is 0.89999998, which would be below a limit of 0.9."""
    made = of_ranks([0] * right + [None] * (100 - right))
    assert one(made, f"top1 >= {right} %").verdict == "pass"
    assert share_of(evidence(made, made.rows[1].name).figures["top1"]) == Share(right, 100)


def test_what_is_taken_of_a_classifier() -> None:
    paired = with_flips(200, 12, 3)
    proof = DelegationProof(40, 30, {})
    test = row_with(paired.rows[1], failed_examples=3, crashes=1, delegation=proof, delegated_share=0.75)
    made = with_ratios(replace(paired, rows=[paired.rows[0], test]), {"fast": ratio(0.5, Interval(0.4, 0.6))})
    found = evidence(made, made.rows[1].name, Allowed(failed_examples=3, crashes=1))
    assert {name: figure.value for name, figure in found.figures.items()} == {
        "examples": 4.0,
        "failed_examples": 3.0,
        "latency_ms": 2.0,
        "model_mb": 1 / 2**20,
        "nan_outputs": 0.0,
        "crashes": 1.0,
        "delegated_share": 0.75,
        "partitions": 2.0,
        "top1": 0.5,
        "top2": 0.75,
        "distinct_answers": 2.0,
        "agreement": 1.0,
    }
    changes = {name: change_of(figure, found.base.get(name)) for name, figure in found.figures.items()}
    assert {name: change for name, change in changes.items() if change} == {
        "top1": CountedChange(PairedCounts(200, 12, 3))
    }
    assert found.ratio == LatencyRatio(9, 0.5, Interval(0.4, 0.6))
    assert found.figures.keys() <= all_metrics().keys()


def test_no_example_in_common_is_no_proof_of_agreement() -> None:
    made = with_flips(0, 0, 0)
    for limit in ("top1 drop <= 90 points", "top1 drop <= 90 points at 95 %", "agreement >= 10 %"):
        assert one(made, limit).verdict == "not measured"


def test_nothing_timed_and_nothing_classified_is_not_measured() -> None:
    empty = row_with(FAST, latency=summarise_latency([]))
    made = result(REFERENCE, empty, answered={"fast": ranked([], 5)})
    assert [one(made, limit).verdict for limit in ("latency_ms <= 9", "top1 >= 10 %")] == ["not measured"] * 2


def test_what_is_taken_of_a_detector() -> None:
    made = detection_result("reference", "fast")
    found = evidence(made, made.rows[1].name)
    values = [found.figures[name].value for name in ("ap", "ap_large", "ar_1", "matched_boxes")]
    assert values == [0.123456, None, 0.4, pytest.approx(8 / 9)]
    assert found.figures.keys() <= all_metrics().keys()
    assert one(made, "mAP >= 12 %").verdict == "pass"
    assert one(made, "ap_large >= 10 %").verdict == "not measured"


def test_no_boxes_to_find_again_is_no_proof_that_they_were_found() -> None:
    made = detection_result("reference", "fast", boxes=BoxAgreement(0, 0, 0, 0, 0.0, 0.0, 0.0, 0.0))
    assert one(made, "matched_boxes >= 10 %").verdict == "not measured"


def output(**changes: Any) -> OutputDifference:
    return replace(DIFFERENCE, **changes)


def diff(*found: OutputDifference) -> Result:
    return diff_result(comparison("fast", *map(judged, found)))


IDENTICAL = {"different": 0, "snr_db": None, "relative_rms": 0.0, "max": 0.0, "native": NativeError(0.0, 0.0, 0.0, 0.0)}
DAMAGED = Values(1, 0, 0, -1.0, 1.0, False, False, 4)
TEXT = output(
    dtype="string", kind="exact", compared=0, native=None, mean=None, max=None, relative_rms=None, snr_db=None
)
QUANTISED = output(output="q", quanta=Quanta(9, 1, 0, 0, 3, 0.3), scores=Scores(4, 3, None))


def test_what_is_taken_of_outputs() -> None:
    made = diff(DIFFERENCE, QUANTISED, output(output="same", **IDENTICAL))
    (first, second, third) = evidence(made, made.rows[1].name).outputs
    assert first.names == ["scores", "tensor0", "0"]
    assert {name: figure.value for name, figure in first.figures.items() if name in PER_OUTPUT} == {
        "avg_error": 0.00123456789, "max_error": 0.75, "relative_rms": 0.1, "snr_db": 20.0,
    }  # fmt: skip
    assert second.names == ["q", "tensor1", "1"]
    assert (second.figures["max_quanta"].value, second.figures["same_best"].value) == (3.0, 0.75)
    assert (third.figures["snr_db"].number, third.figures["max_error"].value) == (math.inf, 0.0)
    assert {name for part in (first, second, third) for name in part.figures} >= PER_OUTPUT


@pytest.mark.parametrize("figure", sorted(PER_OUTPUT))
@pytest.mark.parametrize("broken", [{"test": DAMAGED}, {"reference": DAMAGED}, {"same_shape": False}])
def test_nan_on_either_side_and_another_shape_keep_no_limit(figure: str, broken: dict[str, Any]) -> None:
    sign = {"snr_db": ">= -999", "same_best": ">= 1 %"}.get(figure, "<= 1e9")
    found = one(diff(output(quanta=QUANTISED.quanta, scores=QUANTISED.scores, **broken), QUANTISED), f"{figure} {sign}")
    assert found.verdict == ("fail" if "same_shape" in broken else "not measured")


def test_texts_and_outputs_without_elements_have_no_distance() -> None:
    made = diff(TEXT, output(elements=0, compared=0, max=None, snr_db=None), output(output="y"))
    assert one(made, "max_error <= 1").text.endswith(": pass: max_error 0.75 in y")
    assert one(made, "max_error[0] <= 1").verdict == "not measured"
    assert one(made, "snr_db >= -999").verdict == "fail"
    assert one(diff(replace(TEXT, different=0)), "snr_db >= 999").verdict == "pass"


def test_a_difference_from_nothing_but_zeros_has_no_relative_size() -> None:
    assert one(diff(output(relative_rms=None, snr_db=None)), "relative_rms <= 1e9").verdict == "fail"


@pytest.mark.parametrize(("now", "verdict"), [(0.2, "pass"), (0.2199, "pass"), (0.2201, "fail")])
def test_errors_of_an_output_may_grow_by_a_tenth(now: float, verdict: str) -> None:
    old, new = (diff(output(relative_rms=error)) for error in (0.2, now))
    decisions = hold_against_old("new", part(new), Baseline("old.json", part(old))).decisions
    found = [(each.verdict, each.limit) for each in decisions if "relative_rms" in each.limit]
    assert found == [(verdict, "relative_rms[scores] <= 0.22 (old 0.2)")]


def test_a_limit_that_is_kept_is_so_beside_any_number_of_others() -> None:
    evidence = Evidence("x", figures={"top1": Figure(0.95, count=200, is_share=True)})
    limit = parse_criterion("top1 >= 91 % at 95 %")
    assert decide_together([(limit, evidence)])[0].verdict == "pass"
    assert {decision.verdict for decision in decide_together([(limit, evidence)] * 20)} == {"pass"}

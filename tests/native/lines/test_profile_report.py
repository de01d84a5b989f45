"""The operators' times of a row in the three forms, all with the same numbers."""

from __future__ import annotations

import re

import pytest
from google.protobuf import text_format

from evaltools.metrics.op_profile import Opening
from evaltools.native.lines.profile import INITIALIZATION_HEADER, RUNS_HEADER
from evaltools.native.lines.profile_report import CSV, PROTO, TEXT, opening_steps, profile_file, profile_report
from evaltools.proto import PROFILING, message_class
from evaltools.result.benchmark import Phase
from tests.report.benchmark_samples import PROFILE, a_round

OPENING = a_round(Phase(), Phase()).opening
UNKNOWN = a_round(Phase(), Phase(), None).opening


def test_steps_are_those_that_the_runtime_tells_apart() -> None:
    assert opening_steps(OPENING) == [("ModifyGraphWithDelegate", 20), ("AllocateTensors", 30)]
    assert opening_steps(Opening(0, 12, 3, 0, 9)) == [("AllocateTensors", 9)]
    assert opening_steps(UNKNOWN) == []


@pytest.mark.parametrize(
    ("mode", "operator", "step"),
    [
        (TEXT, r"CONV_2D\t +0\.070\t +0\.065\t +96\.296%", r"AllocateTensors\t +0\.030\t +0\.030\t +60\.000%"),
        (CSV, r"CONV_2D, 0\.07, 0\.065, 96\.2963%, 96\.2963%, 0, 1, \[conv\]:0", "AllocateTensors, 0.03, 0.03, 60%"),
    ],
)
def test_tables_hold_both_reports_initialisation_first(mode: str, operator: str, step: str) -> None:
    """130 of 135 us are 96.296 %, 30 of 50 us are 60 %."""
    report = profile_report(PROFILE, OPENING, mode)
    initialization, runs = report.split(RUNS_HEADER)
    assert initialization.startswith(INITIALIZATION_HEADER)
    assert re.search(step, initialization)
    assert re.search(operator, runs)
    assert profile_file(PROFILE, OPENING, mode) == report.encode()


@pytest.mark.parametrize("mode", [TEXT, CSV])
def test_without_known_steps_there_is_only_the_report_about_runs(mode: str) -> None:
    report = profile_report(PROFILE, UNKNOWN, mode)
    assert report.startswith(RUNS_HEADER)
    assert INITIALIZATION_HEADER not in report


def test_the_protobuf_is_binary_in_a_file_and_text_on_stdout() -> None:
    kind = message_class("BenchmarkProfilingData", PROFILING)
    message = kind.FromString(profile_file(PROFILE, OPENING, PROTO))
    (opening,) = message.init_profile.subgraph_profiles
    assert [(op.node_type, op.inference_microseconds.sum) for op in opening.per_op_profiles] == opening_steps(OPENING)
    (graph,) = message.runtime_profile.subgraph_profiles
    convolution, softmax = graph.per_op_profiles
    times = convolution.inference_microseconds
    assert (convolution.node_type, convolution.name, convolution.run_order) == ("CONV_2D", "[conv]:0", 0)
    assert (times.first, times.last, times.min, times.max, times.sum, times.avg, times.count) == (
        70,
        60,
        60,
        70,
        130,
        65,
        2,
    )
    assert (softmax.node_type, softmax.inference_microseconds.sum, softmax.times_called) == ("SOFTMAX", 5, 1)
    assert text_format.Parse(profile_report(PROFILE, OPENING, PROTO), kind()) == message
    assert not kind.FromString(profile_file(PROFILE, UNKNOWN, PROTO)).HasField("init_profile")

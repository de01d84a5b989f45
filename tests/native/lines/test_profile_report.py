"""The operators' times of a row in the three forms, all with the same numbers."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from google.protobuf import text_format

from evaltools.metrics.op_profile import Opening, OpProfile
from evaltools.native.lines.profile import (
    CSV,
    PROTO,
    TEXT,
    Steps,
    initialization_csv,
    initialization_text,
    opening_steps,
    profile_csv,
    profile_file,
    profile_report,
    profile_text,
)
from evaltools.proto import PROFILING, message_class
from evaltools.result.benchmark import Phase
from tests.report.benchmark_samples import PROFILE, a_round

OPENING = a_round(Phase(), Phase()).opening
UNKNOWN = a_round(Phase(), Phase(), None).opening


def test_steps_are_those_that_the_runtime_tells_apart() -> None:
    assert opening_steps(OPENING) == [("ModifyGraphWithDelegate", 20), ("AllocateTensors", 30)]
    assert opening_steps(Opening(0, 12, 3, 0, 9)) == [("AllocateTensors", 9)]
    assert opening_steps(UNKNOWN) == []


@pytest.mark.parametrize(("mode", "initialization", "runs"), [
    (TEXT, initialization_text, profile_text), (CSV, initialization_csv, profile_csv),
])  # fmt: skip
def test_tables_hold_both_reports_initialisation_first(
    mode: str, initialization: Callable[[Steps], str], runs: Callable[[OpProfile], str]
) -> None:
    whole = initialization(opening_steps(OPENING)) + runs(PROFILE)
    assert profile_report(PROFILE, OPENING, mode) == whole
    assert profile_file(PROFILE, OPENING, mode) == whole.encode()
    assert profile_report(PROFILE, UNKNOWN, mode) == runs(PROFILE)


def test_the_protobuf_is_binary_in_a_file_and_text_on_stdout() -> None:
    kind = message_class("BenchmarkProfilingData", PROFILING)
    message = kind.FromString(profile_file(PROFILE, OPENING, PROTO))
    (opening,) = message.init_profile.subgraph_profiles
    assert [(op.node_type, op.inference_microseconds.sum) for op in opening.per_op_profiles] == opening_steps(OPENING)
    (graph,) = message.runtime_profile.subgraph_profiles
    assert [op.name for op in graph.per_op_profiles][:1] == ["[conv]:0"]
    assert text_format.Parse(profile_report(PROFILE, OPENING, PROTO), kind()) == message
    assert not kind.FromString(profile_file(PROFILE, UNKNOWN, PROTO)).HasField("init_profile")

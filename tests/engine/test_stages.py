"""Where the time of a pass went."""

from __future__ import annotations

import pytest

from evaltools.engine.steps import STAGES, Span, StageTimes
from evaltools.result.execution import InferenceSeconds


def times(**milliseconds: int) -> StageTimes:
    found = StageTimes()
    found.add([Span(stage, 0, 1_000_000 * count, 0, "") for stage, count in milliseconds.items()], {})
    return found


def test_work_adds_up_whatever_the_moment_and_by_worker_but_for_that_of_the_journal() -> None:
    found = StageTimes()
    found.add([Span("decode", 5, 1_500_000_000, 0, ""), Span("inference", 9, 250_000_000, 1, "")], {})
    found.add([Span("decode", 5, 500_000_000, 1, ""), Span("journal", 0, 250_000_000, -1, "")], {})
    assert found.seconds == {**dict.fromkeys(STAGES, 0.0), "decode": 2.0, "inference": 0.25, "journal": 0.25}
    assert found.by_worker == {0: {"decode": 1.5}, 1: {"decode": 0.5, "inference": 0.25}}


@pytest.mark.parametrize(
    ("spans", "bound"),
    [
        ({"read": 2, "decode": 2, "resize": 2, "prepare": 2, "inference": 7}, "input"),
        ({"read": 2, "decode": 2, "resize": 2, "prepare": 2, "inference": 9}, "inference"),
        ({"inference": 3, "metrics": 4}, "metrics"),
        ({"journal": 1}, "journal"),
        ({"inference": 1, "tokenize": 3}, "inference"),
        ({"inference": 0}, None),
        ({}, None),
    ],
)
def test_the_largest_kind_of_work_is_the_bound_with_the_input_as_one(spans: dict[str, int], bound: str | None) -> None:
    assert times(**spans).bound == bound


def test_inference_adds_up_by_configuration() -> None:
    found = StageTimes()
    found.add([], {"a": InferenceSeconds(1.5, 3.0, 0.5), "b": InferenceSeconds(1.0, 0.0, 0.0)})
    found.add([], {"a": InferenceSeconds(0.0, 1.25, 0.0)})
    assert found.inference == {"a": InferenceSeconds(1.5, 4.25, 0.5), "b": InferenceSeconds(1.0, 0.0, 0.0)}

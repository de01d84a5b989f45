"""Where the time of an evaluation went, on its page: bounded, and with advice only where something bounds it."""

from __future__ import annotations

from msgspec.structs import replace

from evaltools.report.execution import pipeline
from evaltools.result.execution import ExecutionUsed
from evaltools.result.section import Chart
from tests.report.page.pages import EXECUTION
from tests.report.page.samples import classifier


def charts(execution: ExecutionUsed) -> dict[str, Chart]:
    section = pipeline(classifier(), execution)
    assert section is not None
    return {block.caption: block for block in section.blocks if isinstance(block, Chart)}


def test_a_run_that_nothing_bounds_has_no_advice() -> None:
    section = pipeline(classifier(), replace(EXECUTION, bound=None))
    assert section is not None
    assert section.intro == ""


def test_one_worker_has_no_chart_of_workers_and_many_are_bounded() -> None:
    many = charts(replace(EXECUTION, worker_seconds=[{"inference": 1.0}] * 500, memory=EXECUTION.memory * 40))
    assert len({mark.y for mark in many["Time of each worker"].marks}) == 32
    assert many["Time of each worker"].lines[-1] == "and 488 more"
    alone = replace(EXECUTION, worker_seconds=EXECUTION.worker_seconds[:1], memory=[])
    assert list(charts(alone)) == ["What took the time"]


def test_a_result_that_does_not_say_where_time_went_has_no_such_section() -> None:
    assert pipeline(classifier(), replace(EXECUTION, stage_seconds={}, bound=None)) is None

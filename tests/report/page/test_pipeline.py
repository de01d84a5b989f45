"""Where the time of an evaluation went, on its page."""

from __future__ import annotations

from msgspec.structs import replace

from evaltools.report.page.content.sources import Sources
from evaltools.report.page.sections.first_screen import overview
from evaltools.report.page.sections.run import pipeline
from evaltools.result.evaluation import EvaluationResult, ExecutionUsed, InferenceSeconds, ProcessMemory
from evaltools.result.section import Chart, Table
from tests.report.page import samples

STAGES = {"read": 1.0, "decode": 5.0, "inference": 2.0, "metrics": 0.5}
USED = ExecutionUsed(
    workers=2, examples_run=40, shard=None, merged_shards=0, quiet_latency_examples=None,
    startup_seconds={}, stage_seconds=STAGES, bound="input",
    worker_seconds=[{"read": 0.5, "decode": 3.0, "inference": 1.0}, {"read": 0.5, "decode": 2.0, "inference": 1.0}],
    inference_seconds={"cpu": InferenceSeconds(0.25, 1.0, 0.125), "a/b": InferenceSeconds(0.5, 0.0625, 0.0625)},
    memory=[ProcessMemory("evaltools", None, [0.0, 0.5, 1.0], [50.0, 70.0, 60.0]),
            ProcessMemory("cpu, worker 0", "cpu", [0.5], [40.0])],
)  # fmt: skip


def of(execution: ExecutionUsed | None) -> EvaluationResult:
    made = samples.classifier()
    return replace(made, execution=execution, environment=replace(made.environment, cpu_count=8))


def test_stages_of_a_run_that_nothing_bounds_are_shown_without_advice() -> None:
    found = of(replace(USED, bound=None))
    chart, advice = overview(replace(found, environment=replace(found.environment, cpu_count=2)))
    assert chart is not None
    assert advice == ""
    section = pipeline(found)
    assert section is not None
    assert "bound" not in section.lead


def test_stages_workers_inference_and_memory_are_told_with_what_would_help() -> None:
    section = pipeline(of(USED))
    assert section is not None
    assert section.lead.startswith("input-bound; ")
    assert "6 of 8 cores were idle: --workers=8" in section.lead
    told = {block.caption: block.told for block in section.blocks if isinstance(block, Chart)}
    assert told["Time of each worker"] == "worker 0 4.5 s; worker 1 3.5 s."
    assert told["Memory of each process"] == "evaltools: 70 MB at most, 60 at the end."
    assert "decode 5 s" in told["Time by stage of the run"]
    assert "--workers=8" in overview(of(USED))[1]


def test_figures_of_inference_are_those_of_the_result() -> None:
    section = pipeline(of(USED))
    assert section is not None
    (table,) = (block for block in section.blocks if isinstance(block, Table))
    assert [[getattr(cell, "value", cell) for cell in row] for row in table.rows] == [
        ["cpu", 0.25, 1.0, 0.125],
        ["a/b", 0.5, 0.0625, 0.0625],
    ]
    found = samples.read(Sources({"model": of(USED)})).figures
    assert found["execution/inference_seconds/cpu/read_back"] == 0.125
    assert found["execution/inference_seconds/a~1b/run"] == 0.0625


def test_one_worker_has_no_chart_of_workers_and_many_are_bounded() -> None:
    many = replace(USED, worker_seconds=[{"inference": 1.0}] * 500, memory=USED.memory * 40)
    section = pipeline(of(many))
    assert section is not None
    drawn = {block.caption: block for block in section.blocks if isinstance(block, Chart)}
    assert len({value["row"] for value in drawn["Time of each worker"].spec["data"]["values"]}) == 32
    assert "and 495 more" in drawn["Time of each worker"].told
    alone = pipeline(of(replace(USED, worker_seconds=USED.worker_seconds[:1], memory=[])))
    assert alone is not None
    assert [block.caption for block in alone.blocks if isinstance(block, Chart)] == ["Time by stage of the run"]


def test_a_result_that_does_not_say_where_time_went_has_no_such_section() -> None:
    assert pipeline(of(None)) is None
    assert pipeline(of(replace(USED, stage_seconds={}, bound=None))) is None

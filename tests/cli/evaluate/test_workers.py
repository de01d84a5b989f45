"""Any number of workers gives the same figures; what is said about progress, time and latency is so."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evaltools.engine.steps import STAGES
from evaltools.result.section import Lines
from evaltools.result_file import read_result
from tests.cli.evaluate.sample_runs import PICTURES, XNNPACK, figures_here, imagenet
from tests.command import evaltools_here

pytestmark = pytest.mark.once


def conditions_of(path: Path) -> str:
    """What a result says of how its times were measured."""
    (block,) = (
        section.blocks[0] for section in read_result(path).blocks if (section.title, section.place) == ("", "speed")
    )
    assert isinstance(block, Lines)
    return str(block.lines[0])


def test_progress_as_json_parses_line_by_line() -> None:
    completed = evaltools_here(*imagenet(XNNPACK, "--progress=json", "--workers=2", pictures=200))
    assert completed.code == 0, completed.err
    lines = [json.loads(line) for line in completed.err.splitlines() if line.startswith("{")]
    assert all(line.endswith("}") for line in completed.err.splitlines() if line.startswith("{"))
    assert [(line["done"], line["total"]) for line in lines if line["done"] == line["total"]] == [(200, 200), (20, 20)]
    assert [line["phase"] for line in lines] == sorted(line["phase"] for line in lines)
    assert {line["phase"] for line in lines} == {"evaluation", "latency in quiet"}
    last = lines[-1]
    assert last["per_second"] > 0
    assert (last["seconds_left"], last["failed_examples"]) == (0, 0)


def test_a_trace_holds_every_stage_of_every_worker(tmp_path: Path) -> None:
    trace = tmp_path / "trace.json"
    completed = evaltools_here(*imagenet(XNNPACK, "--workers=2", f"--trace={trace}"))
    assert completed.code == 0, completed.err
    events = json.loads(trace.read_text())["traceEvents"]
    spans = [event for event in events if event["ph"] == "X"]
    assert {event["name"] for event in spans} == set(STAGES)
    assert all(event["dur"] >= 0 and event["ts"] > 0 for event in spans)
    names = {event["args"]["name"]: event["tid"] for event in events if event["ph"] == "M"}
    assert set(names) == {"journal", "worker 0", "worker 1"}
    assert {event["tid"] for event in spans} == set(names.values())
    decoded = [event["args"]["what"] for event in spans if event["name"] == "decode"]
    assert sorted(decoded) == [f"{number:04d}.jpg" for number in range(1, PICTURES + 1)]
    run_on = [event["args"]["what"].split(":")[0] for event in spans if event["name"] == "inference"]
    assert set(run_on) == {"reference", "test"}


@pytest.mark.parametrize(("flags", "count"), [(["--latency_examples=3"], 3), ([], 10)])
def test_latency_is_of_as_many_examples_as_were_asked_for(flags: list[str], count: int, tmp_path: Path) -> None:
    output = tmp_path / "result.json"
    figures_here(imagenet(XNNPACK, "--workers=2", *flags, pictures=12), output)
    assert f"latency was taken apart from the pass, over {count} examples" in conditions_of(output)
    rows = read_result(output).rows
    assert [row.times["invoke"].count for row in rows] == [count, count]
    assert [row.finished_examples for row in rows] == [12, 12]

"""The trace, compared with the rules of the Trace Event Format."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import Any, Final

import pytest
from msgspec.structs import replace

from evaltools.benchmark.trace import trace_events, trace_json
from evaltools.result.rounds import Memory, Phase
from tests.report.benchmark_samples import PROFILE, Sample, a_round, benchmark, row

REQUIRED: Final = {
    "X": {"name", "cat", "ph", "ts", "dur", "pid", "tid"},
    "C": {"name", "ph", "ts", "pid", "args"},
    "M": {"name", "ph", "pid", "args"},
}
METADATA: Final = {"process_name": "name", "thread_name": "name", "process_sort_index": "sort_index"}
WARM_UP = Phase([50], [3], [300])
REGULAR = Phase([40, 41, 42], [2, 0, 2], [400, 441, 500])


def events_of(*samples: Sample) -> list[dict[str, Any]]:
    return trace_events([each.row.name for each in samples], [each.measured for each in samples])


def violations(events: list[dict[str, Any]]) -> list[str]:
    """What the documented format forbids; complete events of a thread lie apart or one within the other."""
    found = []
    named = {event["pid"] for event in events if event["ph"] == "M" and event["name"] == "process_name"}
    threads = defaultdict(list)
    for event in events:
        phase = event["ph"]
        if missing := REQUIRED[phase] - event.keys():
            found.append(f"{event} lacks {missing}")
            continue
        if event["pid"] not in named:
            found.append(f"{event}: its process has no name")
        if phase == "M" and METADATA[event["name"]] not in event["args"]:
            found.append(f"{event} says nothing")
        if phase == "C" and not all(type(value) in (int, float) for value in event["args"].values()):
            found.append(f"{event} is not a number")
        if phase != "M" and not (type(event["ts"]) in (int, float) and event["ts"] >= 0):
            found.append(f"{event} begins before the beginning")
        if phase == "X":
            if event["dur"] < 0:
                found.append(f"{event} ends before it begins")
            threads[event["pid"], event["tid"]].append(event)
    for thread in threads.values():
        found += overlaps(thread)
    return found


def overlaps(thread: list[dict[str, Any]]) -> list[str]:
    found = []
    around: list[dict[str, Any]] = []
    for event in sorted(thread, key=lambda entry: (entry["ts"], -entry["dur"])):
        while around and around[-1]["ts"] + around[-1]["dur"] <= event["ts"]:
            around.pop()
        if around and event["ts"] + event["dur"] > around[-1]["ts"] + around[-1]["dur"]:
            found.append(f"{event} reaches out of {around[-1]}")
        around.append(event)
    return found


def complete(events: list[dict[str, Any]], process: int) -> list[tuple[str, int, int]]:
    own = [entry for entry in events if entry["ph"] == "X" and entry["pid"] == process]
    return [(entry["name"], entry["ts"], entry["dur"]) for entry in own]


def test_the_checker_finds_what_is_wrong() -> None:
    """Else it would pass everything."""
    name = {"name": "process_name", "ph": "M", "pid": 1, "args": {"name": "x"}}
    work = {"name": "a", "cat": "c", "ph": "X", "ts": 5, "dur": 10, "pid": 1, "tid": 1}
    assert violations([name, work, work | {"ts": 6, "dur": 9}, work | {"ts": 15, "dur": 0}, work | {"ts": 15}]) == []
    for wrong in (
        [work],
        [name, work | {"dur": -1}],
        [name, work | {"ts": -1}],
        [name, work, work | {"ts": 14}],
        [name, {key: work[key] for key in work if key != "dur"}],
        [name, {"name": "m", "ph": "C", "ts": 0, "pid": 1, "args": {"KB": None}}],
    ):
        assert violations(wrong), wrong


def test_rounds_and_operators_are_processes_with_work_where_it_was() -> None:
    samples = row("one", 40, rounds=[a_round(WARM_UP, REGULAR)] * 2, profile=PROFILE), row("never ran", 1)
    trace = json.loads(trace_json(benchmark(*samples), [each.measured for each in samples]))
    events = trace["traceEvents"]
    assert (trace["displayTimeUnit"], violations(events)) == ("ms", [])
    names = {entry["pid"]: entry["args"]["name"] for entry in events if entry["name"] == "process_name"}
    assert names == {1: "one, round 1", 2: "one, round 2", 3: "one, operators"}
    expected = [
        ("import", 0, 40),
        ("open", 40, 155),
        ("load", 40, 100),
        ("delegates", 140, 20),
        ("allocate", 160, 30),
        ("warm-up run", 300, 50),
        ("read outputs", 350, 3),
        ("run", 400, 40),
        ("read outputs", 440, 2),
        ("run", 442, 41),
        ("read outputs", 483, 0),
        ("run", 500, 42),
        ("read outputs", 542, 2),
    ]
    assert complete(events, 1) == complete(events, 2) == expected, "the second run is put behind what was read before"


def test_memory_stands_at_the_three_moments() -> None:
    entry = row("one", 40, rounds=[a_round(WARM_UP, REGULAR)])
    counters = [entry for entry in events_of(entry) if entry["ph"] == "C"]
    assert [(entry["name"], entry["ts"], entry["args"]) for entry in counters] == [
        ("resident memory", 40, {"KB": 1000}),
        ("resident memory", 195, {"KB": 1500}),
        ("resident memory", 544, {"KB": 1600}),
        ("peak memory", 40, {"KB": 1000}),
        ("peak memory", 195, {"KB": 1700}),
        ("peak memory", 544, {"KB": 1800}),
    ]


def test_memory_that_is_not_known_is_left_out() -> None:
    measured = replace(a_round(WARM_UP, REGULAR), memory=Memory(None, None, 5, None, None, None, None))
    events = events_of(row("x", 1, rounds=[measured]))
    counters = [entry for entry in events if entry["ph"] == "C"]
    assert [(entry["name"], entry["args"]) for entry in counters] == [("resident memory", {"KB": 5})]


def test_operators_of_a_profiled_run_follow_each_other_within_it() -> None:
    """The second run's operators take longer, 60 us, than it says itself, 55 us."""
    events = events_of(row("one", 40, profile=PROFILE))
    assert violations(events) == []
    assert complete(events, 1) == [
        ("profiled run", 0, 80),
        ("CONV_2D", 0, 70),
        ("SOFTMAX", 70, 5),
        ("profiled run", 80, 60),
        ("CONV_2D", 80, 60),
        ("SOFTMAX", 140, 0),
    ]


def test_an_opening_whose_parts_are_not_known_is_one_piece() -> None:
    entry = row("one", 40, rounds=[a_round(WARM_UP, Phase(), load_us=None)])
    assert [name for name, _, _ in complete(events_of(entry), 1)] == [
        "import",
        "open",
        "warm-up run",
        "read outputs",
    ]


@pytest.mark.parametrize("load_us", [0, 5000])
@pytest.mark.parametrize("starts", [[0, 0, 0], [-50, 10, 11], [100, 900, 901]])
def test_times_that_contradict_each_other_make_a_valid_trace_all_the_same(load_us: int, starts: list[int]) -> None:
    phase = Phase([300, 300, 300], [10, 10, 10], starts)
    events = events_of(row("one", 40, rounds=[a_round(phase, phase, load_us)]))
    assert violations(events) == []
    assert [duration for name, _, duration in complete(events, 1) if name == "run"] == [300, 300, 300]


def test_the_model_stands_in_the_name_where_there_are_several() -> None:
    rows = [row("cpu", 40, model=number, rounds=[a_round(WARM_UP, REGULAR)]) for number in (0, 1)]
    trace = trace_json(benchmark(*rows, sizes=(1, 2)), [each.measured for each in rows])
    events = json.loads(trace)["traceEvents"]
    assert [event["args"] for event in events if event["name"] == "process_name"] == [
        {"name": "cpu of a, round 1"},
        {"name": "cpu of b, round 1"},
    ]

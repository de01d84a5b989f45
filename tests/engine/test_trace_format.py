"""Events of a trace, held against the names of fields in the Trace Event Format."""

from __future__ import annotations

from evaltools.engine.trace import Track

TRACK = Track(process=3, thread=7, category="work")
PLACE = {"pid": 3, "tid": 7}


def test_work_has_its_start_and_its_duration() -> None:
    assert TRACK.complete("decode", 5.0, 1.5, {"what": "a.jpg"}) == PLACE | {
        "name": "decode",
        "cat": "work",
        "ph": "X",
        "ts": 5.0,
        "dur": 1.5,
        "args": {"what": "a.jpg"},
    }


def test_a_counter_has_its_values_at_a_moment() -> None:
    assert TRACK.counter("memory", 9, {"KB": 1000}) == PLACE | {
        "name": "memory",
        "cat": "work",
        "ph": "C",
        "ts": 9,
        "args": {"KB": 1000},
    }


def test_names_and_places_are_metadata() -> None:
    assert [TRACK.process_name("p"), TRACK.thread_name("t"), TRACK.process_place(2)] == [
        PLACE | {"name": "process_name", "ph": "M", "args": {"name": "p"}},
        PLACE | {"name": "thread_name", "ph": "M", "args": {"name": "t"}},
        PLACE | {"name": "process_sort_index", "ph": "M", "args": {"sort_index": 2}},
    ]

"""The trace file: whole and readable whatever happens, or known to be of no use."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evaltools.engine.steps import Span
from evaltools.engine.trace import Trace

ODD = 'it\'s "quoted" \\ \u00fc \udcff\n'
SPANS = [Span("decode", 5_000, 1_500, 0, ODD), Span("inference", 7_000, 250, 2, "x"), Span("journal", 9_000, 1, -1, "")]


def events(path: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(path.read_text())["traceEvents"]
    return found


def named(path: Path) -> dict[str, int]:
    return {event["args"]["name"]: event["tid"] for event in events(path) if event["ph"] == "M"}


def test_work_stands_in_microseconds_under_who_did_it(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    with Trace(path) as trace:
        trace.add(SPANS)
        trace.add([])
        trace.add(SPANS[:1])
    assert named(path) == {"worker 0": 1, "worker 2": 3, "journal": 0}
    found = [event for event in events(path) if event["ph"] == "X"]
    assert [(event["name"], event["ts"], event["dur"], event["tid"], event["args"]["what"]) for event in found] == [
        ("decode", 5.0, 1.5, 1, ODD),
        ("inference", 7.0, 0.25, 3, "x"),
        ("journal", 9.0, 0.001, 0, ""),
        ("decode", 5.0, 1.5, 1, ODD),
    ]
    assert len(events(path)) == 3 + 4, "each worker is named once"
    assert trace.why_useless is None


def test_without_a_path_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with Trace(None) as trace:
        trace.add(SPANS)
    assert (list(tmp_path.iterdir()), trace.why_useless) == ([], None)


def test_a_file_that_cannot_be_opened_ends_nothing_and_is_said(tmp_path: Path) -> None:
    with Trace(tmp_path / "none" / "trace.json") as trace:
        trace.add(SPANS)
    path = tmp_path / "none" / "trace.json"
    assert trace.why_useless == f"--trace={path} cannot be written: No such file or directory; the file is of no use"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("times", [1, 2000])
def test_a_full_disk_ends_nothing_and_is_said(times: int) -> None:
    """Also where it is seen only when the last of it is written."""
    with Trace(Path("/dev/full")) as trace:
        for _ in range(times):
            trace.add(SPANS)
    assert trace.why_useless == "--trace=/dev/full cannot be written: No space left on device; the file is of no use"

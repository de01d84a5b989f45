"""What a bench takes from the journal of an earlier part of the search, and what it measures anew."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from evaltools.configuration import Configuration
from evaltools.engine.journal import Journal, temporary_journal
from evaltools.errors import SessionEnded
from evaltools.model import read_model
from evaltools.operators.bench import Bench
from evaltools.operators.part import Outcome, Part
from tests import locate_models

CPU = Configuration.from_text("cpu", "")
PART = Part(0, 1, CPU)


class ScriptedBench(Bench):
    """One whose process does what it is told, and that counts how often it is asked."""

    def __init__(self, journal: Journal, folder: Path, timeout_s: float, does: Outcome | SessionEnded) -> None:
        path = folder / "net.tflite"
        path.write_bytes(locate_models.net())
        super().__init__(read_model(path), CPU, folder, journal, timeout_s)
        self._does = does
        self.asked = 0

    def _call(self, *_arguments: Any) -> Any:
        self.asked += 1
        if isinstance(self._does, SessionEnded):
            raise self._does
        return self._does


@pytest.mark.parametrize(("timeout_s", "is_asked"), [(5.0, False), (60.0, True)])
def test_a_hang_is_kept_for_its_own_time_only(timeout_s: float, is_asked: bool, tmp_path: Path) -> None:
    journal = temporary_journal()
    hung = ScriptedBench(journal, tmp_path, 5.0, SessionEnded("no answer for 5 s", hung=True))
    assert hung.measure(PART).died == "no answer for 5 s"
    ran = ScriptedBench(journal, tmp_path, timeout_s, Outcome(nodes=2))
    assert (ran.measure(PART).died == "", ran.asked == 1) == (is_asked, is_asked)


def test_a_crash_is_kept_whatever_the_time(tmp_path: Path) -> None:
    journal = temporary_journal()
    assert ScriptedBench(journal, tmp_path, 5.0, SessionEnded("SIGABRT")).measure(PART).died == "SIGABRT"
    later = ScriptedBench(journal, tmp_path, 60.0, Outcome(nodes=2))
    assert (later.measure(PART).died, later.asked) == ("SIGABRT", 0)


def test_more_seconds_for_the_runs_of_a_part_are_used(tmp_path: Path) -> None:
    journal = temporary_journal()
    ScriptedBench(journal, tmp_path, 5.0, Outcome(runs=3)).measure(PART)
    later = ScriptedBench(journal, tmp_path, 5.0, Outcome(runs=9))
    assert later.measure(PART).runs == 3
    assert later.measure(replace(PART, seconds=9.0)).runs == 9

"""The load of a machine from the text of its files, whatever machine runs the tests."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from evaltools.engine.sampling import LoadOverTime, Reading, read_now
from evaltools.result.facts import Load

BUSY = "cpu  {} 0 0 0 0 0 0 {} 0 0\ncpu0 1 0 0 0 0 0 0 0 0 0\n"


def system_of(
    folder: Path, running: int, busy_s: float = 0, steal_s: float = 0, own: tuple[int, int, float] | None = None
) -> Path:
    """The files of a machine; ``own`` is a process, how many of its threads run, and its processor time."""
    ticks = os.sysconf("SC_CLK_TCK")
    proc = folder / "proc"
    proc.mkdir(parents=True, exist_ok=True)
    (proc / "loadavg").write_text(f"9.00 9.00 9.00 {running}/300 4242\n")
    (proc / "stat").write_text(BUSY.format(int(busy_s * ticks), int(steal_s * ticks)))
    if own is not None:
        number, threads, seconds = own
        stat = f"{{}} (a (tricky) name) {{}} 1 1 1 0 -1 4 0 0 0 0 {int(seconds * ticks)} 0 0 0 20 0 3 0\n"
        for thread in range(3):
            place = proc / str(number) / "task" / str(number + thread)
            place.mkdir(parents=True, exist_ok=True)
            (place / "stat").write_text(stat.format(number + thread, "R" if thread < threads else "S"))
        (proc / str(number) / "stat").write_text(stat.format(number, "S"))
    return folder


def load_between(readings: Sequence[Reading]) -> Load:
    """That of a machine with two cores."""
    seen = LoadOverTime(list, cpu_count=2)
    for reading in readings:
        seen.add(reading)
    return seen.load


def test_a_reading_knows_what_runs_and_what_of_it_is_our_own(tmp_path: Path) -> None:
    found = read_now([50, 999_999], system_of(tmp_path, 13, 100.0, 4.0, own=(50, 2, 7.0)))
    assert (found.running, found.own_running) == (13, 2)
    assert (found.busy_s, found.steal_s, found.own_s) == (100.0, 4.0, {50: 7.0})


def test_the_load_is_what_others_did_between_readings() -> None:
    readings = [
        Reading(10.0, 13, 2, busy_s=100.0, steal_s=4.0, own_s={50: 7.0}, throttled=1),
        Reading(11.0, 12, 1, busy_s=101.8, steal_s=4.1, own_s={50: 7.9}, throttled=1),
        Reading(14.0, 10, 2, busy_s=107.0, steal_s=4.8, own_s={51: 0.5}, throttled=4),
    ]
    found = load_between(readings)
    assert found.others_running == pytest.approx((11 + 11 + 8) / 3)
    assert found.others_cores == pytest.approx((7.0 - 0.9 - 0.5) / 4)
    assert found.steal == pytest.approx(0.8 / 4 / 2)
    assert (found.throttled, found.seconds, found.samples) == (3, 4.0, 3)


def test_a_machine_that_says_nothing_has_no_load(tmp_path: Path) -> None:
    found = load_between([read_now([1], tmp_path), read_now([1], tmp_path)])
    assert (found.others_running, found.others_cores, found.steal, found.throttled) == (None, None, None, None)
    assert found.others is None, "unknown, and not quiet"


def test_throttling_is_counted_over_all_cores(tmp_path: Path) -> None:
    for core, count in ((0, 3), (1, 4)):
        place = tmp_path / f"sys/devices/system/cpu/cpu{core}/thermal_throttle"
        place.mkdir(parents=True)
        (place / "core_throttle_count").write_text(f"{count}\n")
    assert read_now([], tmp_path).throttled == 7


def test_it_is_looked_at_while_the_context_lasts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVALTOOLS_SYSTEM", str(system_of(tmp_path, 12, own=(50, 1, 1.0))))
    with LoadOverTime(lambda: [50]) as seen:
        pass
    assert seen.load.others_running == 11.0
    assert seen.load.samples >= 2

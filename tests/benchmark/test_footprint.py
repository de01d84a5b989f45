"""Memory of a child process, compared with what the kernel reports to its parent."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import psutil
import pytest

from evaltools.benchmark import self_measuring
from evaltools.benchmark.self_measuring import PeakMonitor, anonymous_kb, peak_kb, resident_kb
from evaltools.errors import UsageError

ON_LINUX: Final = pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")
HELD_KB: Final = 96 * 1024
NEAR_KB: Final = 4 * 1024
"""Much less than what is held, more than what asking takes."""
CHILD: Final = f"""
import sys, time
from evaltools.benchmark.self_measuring import PeakMonitor, anonymous_kb, peak_kb, resident_kb

def say(*more):
    print(resident_kb(), anonymous_kb(), peak_kb(), *more, flush=True)
    sys.stdin.readline()

say()
held = b"x" * ({HELD_KB} * 1024)
say()
del held
say()
monitor = PeakMonitor(interval_ms=1)
monitor.start()
before = resident_kb()
held = b"x" * ({HELD_KB} * 1024)
until = time.monotonic() + 60
while monitor.peak_kb < before + {HELD_KB} // 2 and time.monotonic() < until:
    time.sleep(0.001)
del held
monitor.stop()
say(monitor.peak_kb)
"""


class Child:
    """Says what it sees, and waits until the parent has looked too."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def seen(self) -> list[int]:
        """What the child says next."""
        assert self._process.stdout is not None
        return [int(word) for word in self._process.stdout.readline().split()]

    def kernel(self) -> list[int]:
        """VmRSS, RssAnon and VmHWM of the child in kB."""
        lines = Path(f"/proc/{self._process.pid}/status").read_text().splitlines()
        values = {line.split(":")[0]: int(line.split()[1]) for line in lines if line.endswith(" kB")}
        return [values["VmRSS"], values["RssAnon"], values["VmHWM"]]

    def go_on(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()


@contextmanager
def started(code: str) -> Iterator[Child]:
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield Child(process)
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(60) == 0


@ON_LINUX
def test_figures_are_those_that_the_kernel_tells_another_process() -> None:
    with started(CHILD) as child:
        seen = []
        for _ in range(3):
            seen.append(child.seen())
            assert seen[-1] == pytest.approx(child.kernel(), abs=NEAR_KB)
            child.go_on()
        start, held, released = seen
        assert [held[place] - start[place] for place in range(3)] == pytest.approx([HELD_KB] * 3, abs=NEAR_KB)
        assert released[:2] == pytest.approx(start[:2], abs=NEAR_KB)
        assert released[2] == pytest.approx(held[2], abs=NEAR_KB), "a peak stays"
        resident, _, peak, monitored = child.seen()
        assert monitored == pytest.approx(resident + HELD_KB, abs=NEAR_KB)
        assert monitored == pytest.approx(peak, abs=NEAR_KB)
        child.go_on()


@ON_LINUX
def test_of_a_forked_process_the_peak_begins_with_what_it_shares() -> None:
    code = f"""
import os
from evaltools.benchmark.self_measuring import peak_kb, resident_kb
held = b"x" * ({HELD_KB} * 1024)
more = b"x" * ({HELD_KB} * 1024)
del more
child = os.fork()
print(resident_kb(), peak_kb(), flush=True) if child == 0 else os.waitpid(child, 0)
"""
    with started(code) as child:
        resident, peak = child.seen()
    assert resident > HELD_KB
    assert peak == pytest.approx(resident, abs=NEAR_KB), "not with the server's own peak, which was larger"


def test_what_a_platform_does_not_say_is_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    class Silent:
        def memory_info(self) -> None:
            raise psutil.AccessDenied

    monkeypatch.setattr(psutil, "Process", Silent)
    monkeypatch.setattr(self_measuring, "_STATUS", tmp_path / "none")
    monkeypatch.setattr(self_measuring, "peak_memory_kb", lambda: 0)
    assert (resident_kb(), anonymous_kb(), peak_kb()) == (None, None, None)
    monitor = PeakMonitor()
    monitor.start()
    monitor.stop()
    assert monitor.peak_kb is None


@pytest.mark.parametrize("interval_ms", [0, -5])
def test_an_interval_that_is_not_positive_is_refused(interval_ms: int) -> None:
    with pytest.raises(UsageError, match=f"every {interval_ms} ms; give an interval of 1 ms or more"):
        PeakMonitor(interval_ms)

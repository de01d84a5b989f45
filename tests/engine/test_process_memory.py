"""The memory of processes over time, compared with what they allocate."""

from __future__ import annotations

import subprocess
import sys

import pytest

from evaltools.engine.sampling import MemoryOverTime, NamedProcess

HOLDS = "import sys; held = bytearray(int(sys.argv[1])); print('ready', flush=True); sys.stdin.read()"
MB = 1024 * 1024


@pytest.fixture
def process():  # type: ignore[no-untyped-def]
    started = []

    def start(megabytes: int) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", HOLDS, str(megabytes * MB)]
        child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        started.append(child)
        return child

    yield start
    for child in started:
        child.communicate("")


def test_processes_have_the_memory_that_they_hold(process) -> None:  # type: ignore[no-untyped-def]
    small, large = process(1), process(101)
    named = [NamedProcess(small.pid, "evaltools"), NamedProcess(large.pid, "gpu, worker 0", "gpu")]
    with MemoryOverTime(lambda: named) as memory:
        pass
    first, second = memory.by_process
    assert (first.name, first.configuration, second.name, second.configuration) == (
        "evaltools",
        None,
        "gpu, worker 0",
        "gpu",
    )
    assert second.mb[0] - first.mb[0] == pytest.approx(100, abs=5)
    assert first.seconds == second.seconds
    assert first.seconds == sorted(first.seconds)
    assert len(first.mb) == len(first.seconds) >= 1


def test_a_process_that_is_started_again_goes_on_under_its_name(process) -> None:  # type: ignore[no-untyped-def]
    first, second = process(1), process(51)
    now = [NamedProcess(first.pid, "gpu, worker 0", "gpu")]
    memory = MemoryOverTime(lambda: now)
    memory.sample()
    first.communicate("")
    memory.sample()
    now[0] = NamedProcess(second.pid, "gpu, worker 0", "gpu")
    memory.sample()
    (found,) = memory.by_process
    assert len(found.mb) == 2, "the one that had ended is left out"
    assert found.mb[1] - found.mb[0] == pytest.approx(50, abs=5)

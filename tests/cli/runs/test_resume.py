"""A run with --run_dir that is killed, or that meets a full disk, goes on where it was; as another run it does not."""

from __future__ import annotations

import random
import signal
import subprocess
import time
import uuid
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct

from tests.cli.evaluate.sample_runs import (
    XNNPACK,
    figures,
    imagenet,
    journal_rows,
    left_after,
    needs_proc,
    start,
)

pytestmark = pytest.mark.once

KILLS = 4
PICTURES = 200
NEVER = 10**9
IN_SMALL_BATCHES = """
import os, signal, sys
from evaltools.cli.main import main
from evaltools.engine import journal
flush, written = journal.TaskJournal.flush, 0
def flush_and_die(self):
    global written
    written += self._rows_waiting
    flush(self)
    if written >= int(os.environ["EVALTOOLS_TEST_LAST_ROW"]):
        os.kill(os.getpid(), signal.SIGKILL)
journal.TaskJournal.flush = flush_and_die
journal._ROWS_PER_BATCH = 30
sys.exit(main(sys.argv[1:]))
"""
TESTS = (XNNPACK, "--config", "plain C++: kernels=reference", "--record_examples=true")
NAMES = ("reference", "test", "plain C++")


class Undisturbed(Struct, frozen=True):
    """What a run gives that nobody disturbs, how long it takes, and how much of that is the work."""

    figures: Any
    seconds: float
    seconds_of_work: float


class Moment(Struct, frozen=True):
    """When to kill: so long after the start, or after the sessions are open, or when so many rows are written."""

    seconds: float
    at_work: bool
    rows: int = NEVER

    def earlier(self) -> Moment:
        """For a run that ended before."""
        return Moment(self.seconds / 2, self.at_work)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    output = tmp_path_factory.mktemp("undisturbed") / "result.json"
    begun = time.monotonic()
    process = start([*imagenet(*TESTS, "--workers=2", pictures=PICTURES), f"--output_file_path={output}"])
    wait_for_sessions(process)
    opened = time.monotonic()
    process.communicate(timeout=120)
    assert process.returncode == 0
    return Undisturbed(figures(output), time.monotonic() - begun, time.monotonic() - opened)


@needs_proc
def test_killed_at_any_moment_a_run_goes_on_to_the_same_result(undisturbed: Undisturbed, tmp_path: Path) -> None:
    """A run is killed, and killed again as it goes on, at moments from start to end.

    One that ends before its moment is begun anew, to be killed earlier. The first kills itself half-way: where the work
    is short, no other moment may meet it.
    """
    rows_of_all = PICTURES * len(NAMES)
    moments = [*random_moments(undisturbed), Moment(120.0, at_work=False, rows=rows_of_all // 2)]
    rows_at_kills: list[int] = []
    number, ended = 0, False
    while moments or not ended:
        output, folder = tmp_path / f"{number}.json", tmp_path / f"run{number}"
        before = journal_rows(folder)
        command = ["resume", str(folder)] if before else [*imagenet(*TESTS, pictures=PICTURES), f"--run_dir={folder}"]
        mark = uuid.uuid4().hex
        process = start(
            [*command, "--workers=2", "--latency_examples=5", f"--output_file_path={output}"],
            mark,
            environment={"EVALTOOLS_TEST_LAST_ROW": str(moments[-1].rows if moments else NEVER)},
            program=("-c", IN_SMALL_BATCHES),
        )
        ended = not moments or not is_killed(process, moments[-1])
        process.wait(timeout=120)
        assert left_after(mark) == []
        _, errors = process.communicate(timeout=120)
        rows = journal_rows(folder)
        assert before.items() <= rows.items(), "nothing that was finished is run again"
        assert set(rows) == {(example, name) for example, _ in rows for name in NAMES}
        if not ended:
            moments.pop()
            rows_at_kills.append(len(rows))
            continue
        assert process.returncode == 0, errors
        assert figures(output) == undisturbed.figures
        number += 1
        if moments:
            moments[-1] = moments[-1].earlier()
    assert rows_of_all // 2 <= rows_at_kills[0] < rows_of_all


def random_moments(undisturbed: Undisturbed) -> list[Moment]:
    """Half of them spread over all of the run, half over its work."""
    chance = random.Random(5)
    half = KILLS // 2
    places = [(place + chance.random()) / half for place in range(half)]
    whole = [Moment(undisturbed.seconds * place, at_work=False) for place in places]
    work = [Moment(undisturbed.seconds_of_work * place, at_work=True) for place in reversed(places)]
    moments = [*whole, *work]
    chance.shuffle(moments)
    return moments


def is_killed(process: subprocess.Popen[str], moment: Moment) -> bool:
    """Kill a process, and nothing but that one, if it is still there; or wait until it does so itself."""
    if moment.at_work:
        wait_for_sessions(process)
    try:
        process.wait(moment.seconds)
    except subprocess.TimeoutExpired:
        process.kill()
    return process.wait() == -signal.SIGKILL


def wait_for_sessions(process: subprocess.Popen[str]) -> None:
    """What runs is the first thing that is printed."""
    assert process.stderr is not None
    process.stderr.readline()

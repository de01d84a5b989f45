"""A run with --run_dir that is killed goes on where it was, to the same result."""

from __future__ import annotations

import signal
import uuid
from pathlib import Path

import pytest

from tests.cli.evaluate.sample_runs import (
    XNNPACK,
    figures_here,
    imagenet,
    journal_rows,
    left_after,
    needs_proc,
    start,
)

pytestmark = pytest.mark.once

PICTURES = 120
TESTS = (XNNPACK, "--config", "plain C++: kernels=reference", "--record_examples=true")
NAMES = ("reference", "test", "plain C++")
ROWS_OF_ALL = PICTURES * len(NAMES)
KILLED_BY_ITSELF = """
import os, signal, sys
from evaltools.cli.main import main
from evaltools.engine import journal
moment, rows = os.environ["EVALTOOLS_TEST_KILL"].split()
flush, written = journal.Journal.flush, 0
def flush_and_die(self):
    global written
    written += len(self._waiting)
    if moment == "after":
        flush(self)
    if written >= int(rows):
        os.kill(os.getpid(), signal.SIGKILL)
    if moment == "before":
        flush(self)
journal.Journal.flush = flush_and_die
journal._RECORDS_PER_BATCH = 30
sys.exit(main(sys.argv[1:]))
"""


@needs_proc
def test_killed_again_and_again_a_run_goes_on_to_the_same_result(tmp_path: Path) -> None:
    """It is killed before its first rows are written, between batches of them, and when all are written."""
    expected = figures_here(imagenet(*TESTS, "--workers=1", pictures=PICTURES), tmp_path / "undisturbed.json")
    folder, output = tmp_path / "run", tmp_path / "result.json"
    begun = [*imagenet(*TESTS, pictures=PICTURES), f"--run_dir={folder}", f"--output_file_path={output}"]
    known: dict[tuple[int, str], bytes] = {}
    for moment, rows in (("before", 1), ("after", 90), ("before", 200), ("after", ROWS_OF_ALL)):
        mark = uuid.uuid4().hex
        process = start(
            ["resume", str(folder)] if known else [*begun, "--workers=2"],
            mark,
            environment={"EVALTOOLS_TEST_KILL": f"{moment} {min(rows, ROWS_OF_ALL - len(known))}"},
            program=("-c", KILLED_BY_ITSELF),
        )
        _, errors = process.communicate(timeout=120)
        assert process.returncode == -signal.SIGKILL, errors
        assert left_after(mark) == []
        found = journal_rows(folder)
        assert known.items() <= found.items(), "nothing that was finished is run again"
        assert set(found) == {(example, name) for example, _ in found for name in NAMES}
        known = found
    assert len(known) == ROWS_OF_ALL
    assert figures_here(["resume", str(folder), "--latency_examples=5"], output) == expected
    assert journal_rows(folder) == known

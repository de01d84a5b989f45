"""Delegates that do harm cost their own configuration, are told, and leave nothing; ``make hostile`` has them all."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import uuid
from itertools import product
from pathlib import Path
from time import monotonic, sleep

import pytest
from msgspec import Struct

from evaltools.exit_codes import EXAMPLES_FAILED, NOT_MEASURED, OK
from evaltools.result.result import Result, Row
from evaltools.result_file import read_result
from tests.cli.evaluate.sample_runs import imagenet, left_after
from tests.command import evaltools_here
from tests.hostile.examples import IS_LONG

pytestmark = [
    pytest.mark.once,
    pytest.mark.skipif(sys.platform != "linux", reason="other platforms do not tell what a process left"),
]
MOMENTS = ["load", "create", "prepare", "allocate", "first", "later", "between", "free", "destroy", "exit"]
HARMLESS = ["sleep", "stdout", "stderr", "reopen"]
HARM = [
    *(
        "abort",
        "segv",
        "exit0",
        "exit1",
        "hang",
        "child",
        "setsid",
        "group",
        "close",
        "junk",
        "length",
        "fork",
        "refuse",
    )
]
HARMLESS_AT = {"exit": ("exit0", "close", "junk", "length", "fork"), "between": ("hang", "fork")}
"""At its exit nobody writes any more. Between runs a thread of its own does harm: it alone hangs or ends."""
MAY_BE_TOLD = [("exit", "junk"), ("exit", "length")]
"""What arrives in time is told."""
REFUSED_AT = ("create", "prepare", "allocate", "first", "later")
SOME = [
    ("load", "group"),
    ("create", "refuse"),
    ("prepare", "close"),
    ("first", "stdout"),
    ("first", "junk"),
    ("later", "abort"),
    ("between", "length"),
    ("free", "hang"),
    ("destroy", "segv"),
    ("exit", "abort"),
]
TIMEOUT_S = 4
LONGEST_RUN_S = 150
MOST_MB = 300
PICTURES = 12


class Ended(Struct, frozen=True):
    """What a run with the delegate did: ``native`` are the lines on stdout of the configuration beside it."""

    code: int
    errors: str
    result: Result | None
    native: list[str]
    parent_mb: float
    left: list[str]


def run_beside(library: Path, moment: str, misbehaviour: str, folder: Path) -> Ended:
    """Run the delegate beside XNNPACK on a few pictures."""
    output, out, err, mark = folder / "result.json", folder / "out", folder / "err", uuid.uuid4().hex
    harm = f"external_delegate_path={library} external_delegate_options=moment:{moment};misbehaviour:{misbehaviour}"
    configurations = ("--config=plain: use_xnnpack=true", f"--config=bad: {harm} use_xnnpack=false")
    flags = ("--workers=1", f"--example_timeout={TIMEOUT_S}", f"--output_file_path={output}")
    words = [sys.executable, "-m", "evaltools.cli.main", *imagenet(*flags, *configurations, pictures=PICTURES)]
    environment = {**os.environ, "EVALTOOLS_TEST_RUN": mark, "EVALTOOLS_TEST_HARM": f"{moment}:{misbehaviour}"}
    start, peak_mb = monotonic(), 0.0
    with out.open("wb") as out_file, err.open("wb") as err_file:
        process = subprocess.Popen(words, stdout=out_file, stderr=err_file, env=environment)
        while process.poll() is None:
            if monotonic() - start > LONGEST_RUN_S:
                process.kill()
            peak_mb = max(peak_mb, peak_mb_of(process.pid))
            sleep(0.05)
    native = out.read_text().partition("Configuration: plain\n")[2].partition("Configuration: ")[0].splitlines()
    return Ended(
        process.returncode,
        err.read_text(errors="replace"),
        read_result(output) if output.exists() else None,
        [line for line in native if "Top-" in line],
        peak_mb,
        left_after(mark),
    )


def peak_mb_of(process_id: int) -> float:
    """What a process used at most until now. What wait4 says includes the memory of the process that started it."""
    try:
        status = Path(f"/proc/{process_id}/status").read_text()
    except OSError:
        return 0.0
    found = re.search(r"VmHWM:\s*(\d+) kB", status)
    return int(found[1]) / 1024 if found else 0.0


def must_be_told(moment: str, misbehaviour: str) -> bool:
    """Whether the harm is such that the run is not a pass."""
    if misbehaviour == "refuse":
        return moment in REFUSED_AT
    return misbehaviour in HARM and misbehaviour not in HARMLESS_AT.get(moment, ())


def reason_in(result: Result) -> str:
    """What the result says of the configuration with the delegate, empty where it has nothing to say."""
    bad = row_of_the_delegate(result)
    failed = [each.reason for each in result.failed if each.configuration == bad.name]
    return bad.reason or bad.not_clean or (failed[0] if failed else "")


def row_of_the_delegate(result: Result) -> Row:
    (bad,) = (row for row in result.rows if row.name == "bad")
    return bad


@pytest.fixture(scope="module")
def undisturbed(hostile_delegate: Path, tmp_path_factory: pytest.TempPathFactory) -> Ended:
    return run_beside(hostile_delegate, "never", "sleep", tmp_path_factory.mktemp("undisturbed"))


@pytest.mark.parametrize(("moment", "misbehaviour"), list(product(MOMENTS, HARM + HARMLESS)) if IS_LONG else SOME)
def test_harm_is_told_and_costs_nobody_else_anything(
    hostile_delegate: Path, undisturbed: Ended, moment: str, misbehaviour: str, tmp_path: Path
) -> None:
    ended = run_beside(hostile_delegate, moment, misbehaviour, tmp_path)
    assert "Traceback" not in ended.errors.replace("printed last", "")
    assert ended.result is not None, ended.errors
    expected = [NOT_MEASURED, EXAMPLES_FAILED] if must_be_told(moment, misbehaviour) else [OK]
    if (moment, misbehaviour) in MAY_BE_TOLD:
        expected.append(EXAMPLES_FAILED)
    assert ended.code in expected, ended.errors
    assert ended.code == OK or reason_in(ended.result)
    assert ended.native == undisturbed.native
    assert ended.parent_mb < MOST_MB
    assert ended.left == []


WITH_LITTLE_MEMORY = """
import sys
from evaltools.cli.main import main
from evaltools.runtime import memory
from evaltools.runtime.process import server
memory.MOST_OF_MEMORY *= float(sys.argv[1]) / memory.most_memory()
server._can_be_copied = lambda: True  # a new Python would not know of it
sys.exit(main(sys.argv[2:]))
"""
MOST_BYTES_OF_A_CHILD = 600e6


def test_a_process_that_takes_too_much_memory_is_ended_and_started_again(
    hostile_delegate: Path, tmp_path: Path
) -> None:
    """Every inference leaks 60 MiB: each process has a few, all answers come, and the run is not clean."""
    output = tmp_path / "result.json"
    leaking = f"--config=bad: external_delegate_path={hostile_delegate} "
    options = "external_delegate_options=moment:each;misbehaviour:leak use_xnnpack=false"
    flags = ("--workers=1", f"--output_file_path={output}", "--latency_examples=1", leaking + options)
    words = [sys.executable, "-c", WITH_LITTLE_MEMORY, str(MOST_BYTES_OF_A_CHILD), *imagenet(*flags, pictures=40)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=LONGEST_RUN_S)
    assert done.returncode == EXAMPLES_FAILED, done.stderr
    bad = row_of_the_delegate(read_result(output))
    assert (bad.finished_examples, bad.failed_examples) == (40, 0)
    assert bad.crashes >= 2
    assert re.search(r"it was ended when it had [0-9.]+ GB, more than .* % of the memory that there is", bad.not_clean)
    judged = evaltools_here("gate", str(output), "--limit=delegated_share >= 1 %")
    assert judged.code == NOT_MEASURED, "a gate is not clean, either"
    assert f"allow_crashes = {bad.crashes} allows it" in judged.out

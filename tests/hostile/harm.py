"""Runs with a delegate that does harm at a moment: what each did, and what of it must not be."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from time import monotonic, sleep
from typing import Any, Final

from msgspec import Struct

from evaltools.exit_codes import EXAMPLES_FAILED, NOT_MEASURED, OK
from tests.cli.evaluate.sample_runs import imagenet, left_after
from tests.example_delegate import build_delegate

MOMENTS: Final = (
    "load", "create", "prepare", "allocate", "first", "later", "between", "free", "destroy", "exit",
)  # fmt: skip
MISBEHAVIOURS: Final = (
    "abort", "segv", "exit0", "exit1", "hang", "sleep", "stdout", "stderr", "child", "setsid", "group", "close",
    "junk", "length", "fork", "reopen", "refuse",
)  # fmt: skip
TIMEOUT_S: Final = 4
_LONGEST_RUN_S: Final = 150
_SECONDS_BETWEEN_LOOKS: Final = 0.05
_MOST_MB: Final = 300
_PICTURES: Final = 12
_HARMLESS: Final = ("sleep", "stdout", "stderr", "reopen")
_HARMLESS_AT: Final = {"exit": ("exit0", "close", "junk", "length", "fork"), "between": ("hang", "fork")}
"""At its exit nobody writes any more. Between runs a thread of its own does harm: it alone hangs or ends."""
_MAY_BE_TOLD: Final = (("exit", "junk"), ("exit", "length"))
"""What arrives in time is told."""
_REFUSED_AT: Final = ("create", "prepare", "allocate", "first", "later")


class Cell(Struct, frozen=True):
    """What one run did: ``native`` are the lines on stdout of the configuration beside, ``left`` processes."""

    moment: str
    misbehaviour: str
    code: int
    seconds: float
    parent_mb: float
    left: list[str]
    native: list[str]
    errors: str
    result: Any

    @property
    def must_be_told(self) -> bool:
        """Whether the harm is such that the run is no pass."""
        if self.misbehaviour in _HARMLESS_AT.get(self.moment, ()):
            return False
        if self.misbehaviour == "refuse":
            return self.moment in _REFUSED_AT
        return self.misbehaviour not in _HARMLESS

    @property
    def reason(self) -> str:
        """What the result says of the configuration, empty where it has nothing to say."""
        if self.result is None:
            return ""
        (bad,) = (entry for entry in self.result["configurations"] if entry["name"] == "bad")
        failed = [entry["reason"] for entry in self.result["failed"] if entry["configuration"] == "bad"]
        return str(bad["reason"] or bad["not_clean"] or (failed[0] if failed else ""))


def problems(cell: Cell, undisturbed: Cell) -> Iterator[str]:
    """What of a run must not be."""
    if "Traceback" in cell.errors.replace("printed last", ""):
        yield "a traceback"
    if cell.result is None:
        yield "no result"
        return
    expected = (NOT_MEASURED, EXAMPLES_FAILED) if cell.must_be_told else (OK,)
    if (cell.moment, cell.misbehaviour) in _MAY_BE_TOLD:
        expected = (*expected, EXAMPLES_FAILED)
    if cell.code not in expected:
        yield f"exit code {cell.code}"
    if (cell.must_be_told or cell.code != OK) and not cell.reason:
        yield "no reason in the result"
    if cell.native != undisturbed.native:
        yield "other native lines"
    if cell.parent_mb > _MOST_MB:
        yield f"{cell.parent_mb:.0f} MB"
    if cell.left:
        yield f"left: {cell.left}"


def build_hostile_delegate(folder: Path) -> Path:
    """The delegate, compiled."""
    return build_delegate("hostile_delegate", folder, Path(__file__).parent)


def run_cell(library: Path, moment: str, misbehaviour: str, folder: Path) -> Cell:
    """Run the delegate beside XNNPACK on a few pictures."""
    output = folder / f"{moment}-{misbehaviour}.json"
    harm = f"external_delegate_path={library} external_delegate_options=moment:{moment};misbehaviour:{misbehaviour}"
    flags = ("--workers=1", f"--example_timeout={TIMEOUT_S}", f"--output_file_path={output}")
    command = imagenet(
        *flags, "--config=plain: use_xnnpack=true", f"--config=bad: {harm} use_xnnpack=false", pictures=_PICTURES
    )
    mark = uuid.uuid4().hex
    environment = {**os.environ, "EVALTOOLS_TEST_RUN": mark, "EVALTOOLS_TEST_HARM": f"{moment}:{misbehaviour}"}
    out, err = output.with_suffix(".out"), output.with_suffix(".err")
    start = monotonic()
    with out.open("wb") as out_file, err.open("wb") as err_file:
        process = subprocess.Popen(
            [sys.executable, "-m", "evaltools.cli.main", *command], stdout=out_file, stderr=err_file, env=environment
        )
        peak_mb = 0.0
        while process.poll() is None:
            if monotonic() - start > _LONGEST_RUN_S:
                process.kill()
            peak_mb = max(peak_mb, _peak_mb(process.pid))
            sleep(_SECONDS_BETWEEN_LOOKS)
    seconds = monotonic() - start
    return Cell(
        moment,
        misbehaviour,
        process.returncode,
        seconds,
        peak_mb,
        left_after(mark),
        _native_lines(out.read_text(), "plain"),
        err.read_text(errors="replace"),
        json.loads(output.read_text()) if output.exists() else None,
    )


def _peak_mb(process_id: int) -> float:
    """What a process used at most until now. What wait4 says includes the memory of the process that started it."""
    try:
        status = Path(f"/proc/{process_id}/status").read_text()
    except OSError:
        return 0.0
    found = re.search(r"VmHWM:\s*(\d+) kB", status)
    return int(found[1]) / 1024 if found else 0.0


def _native_lines(text: str, configuration: str) -> list[str]:
    """The figures of a configuration on stdout."""
    _, _, own = text.partition(f"Configuration: {configuration}\n")
    return [line for line in own.partition("Configuration: ")[0].splitlines() if "Top-" in line]

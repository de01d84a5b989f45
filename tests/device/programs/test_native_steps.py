"""What is read of the runs of native binaries on a device."""

from __future__ import annotations

from pathlib import Path

import pytest

from evaltools.device.adb.errors import CommandFailed
from evaltools.device.programs.native_program import Kills, StepDone, read_steps
from evaltools.device.programs.part import PartDone
from evaltools.device.programs.pool import Job
from evaltools.result.device_run import DeviceConditions, DevicePart


def ended(folder: Path, *codes: int) -> PartDone:
    """A part whose steps ended with these codes; each printed a word and wrote its file."""
    for number, code in enumerate(codes):
        (folder / f"code-{number}").write_text(f"{code}\n")
        (folder / f"out-{number}").write_text("a word\n")
        (folder / f"proto-{number}").write_bytes(b"proto")
    nothing = DeviceConditions()
    return PartDone(DevicePart(0, 1, "A", 1, "", 0.0, 1.0, nothing, nothing), 0, "", "", folder)


@pytest.mark.parametrize("code", [0, 1, 126, 134, 137, 139])
def test_a_crash_of_a_binary_is_a_result(code: int, tmp_path: Path) -> None:
    assert read_steps(ended(tmp_path, code), 1) == [StepDone(code, "a word\n", "", "", b"proto")]


def test_a_part_in_which_the_device_killed_the_binary_is_lost_once_and_then_a_result(tmp_path: Path) -> None:
    steps, kills = read_steps(ended(tmp_path, 0, 137, 0), 3), Kills()
    for job in (Job(0), Job(1)):
        with pytest.raises(CommandFailed, match=r"^A: run 2 was killed there \(SIGKILL\), as Android does"):
            kills.require_none("A", job, steps)
        kills.require_none("A", job, steps)
    kills.require_none("A", Job(2), steps[:1])


def test_a_run_without_an_exit_code_is_lost(tmp_path: Path) -> None:
    with pytest.raises(CommandFailed, match=r"^A: run 2 left no exit code"):
        read_steps(ended(tmp_path, 0), 2)

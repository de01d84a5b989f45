"""TensorFlow's binaries on a device: several runs, one after the other, with what each printed, wrote and logged."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from evaltools.device.adb.errors import CommandFailed
from evaltools.device.programs.part import PartDone, PartWork, SentFiles
from evaltools.device.programs.pool import Job

_NOW: Final = "t=$(date '+%m-%d %H:%M:%S.000')"
# An earlier process may have had the same number.
_LOGCAT: Final = 'command -v logcat > /dev/null && logcat -d -v threadtime -T "$t" --pid=$p'
_KINDS: Final = ("out", "err", "code", "log")
OUTPUT: Final = "proto"
_KILLED: Final = 128 + 9


class StepDone(Struct, frozen=True):
    """A run of a binary: its exit code, what it printed, its part of Android's log, and the file that it wrote.

    ``output`` is None where it wrote none.
    """

    code: int
    out: str
    err: str
    logcat: str
    output: bytes | None


class NativeProgram(Struct, frozen=True):
    """Runs of ``binary``, a path on the device, one after the other; each writes :func:`output_file` of its number.

    ``steps`` has the arguments of each run.
    """

    binary: str
    steps: tuple[tuple[str, ...], ...]

    def command(self, work: PartWork, sent: SentFiles, taskset: str) -> str:
        """A shell command that unpacks the folders, then runs all steps, whatever their exit codes."""
        lines = [f"chmod +x {shlex.quote(self.binary)} || exit 3"]
        for name in work.pictures:
            lines.append(f"mkdir {shlex.quote(name)} || exit 3")
            lines += [f"tar -xf {shlex.quote(path)} -C {shlex.quote(name)} || exit 3" for path in sent.archives[name]]
        affinity = f"taskset {shlex.quote(taskset)} " if taskset else ""
        for number, step in enumerate(self.steps):
            run = f"{affinity}{shlex.join([self.binary, *step])}"
            lines.append(_NOW)
            lines.append(f"( exec {run} ) > out-{number} 2> err-{number} < /dev/null &")
            lines.append(f"p=$!; wait $p; echo $? > code-{number}")
            lines.append(f"{_LOGCAT} > log-{number} 2> /dev/null")
        return "\n".join([*lines, "exit 0"])


def output_file(step: int) -> str:
    """The name of the file that a step writes."""
    return f"{OUTPUT}-{step}"


def results_of(steps: int) -> tuple[str, ...]:
    """The names of the files that a part with so many steps leaves."""
    return tuple(f"{kind}-{number}" for number in range(steps) for kind in (*_KINDS, OUTPUT))


def read_steps(done: PartDone, steps: int) -> list[StepDone]:
    """Read what each step of a part gave.

    Raises :class:`CommandFailed` where the steps could not be started, or one left no exit code.
    """
    if done.code != 0:
        serial = done.part.serial
        last = done.err.strip().splitlines()[-1:] or ["nothing"]
        raise CommandFailed(
            f"{serial}: the files could not be unpacked, or the binary not be made executable: {last[0]}",
            serial,
        )
    return [_read(done, number) for number in range(steps)]


class Kills:
    """The parts in which a device killed the binary, as Android does where memory runs out.

    The first time, the part is tried again. If it happens again in the same part, it counts as a result, as a crash
    does: the configuration may need more memory than there is.
    """

    def __init__(self) -> None:
        self._seen: set[Job] = set()

    def require_none(self, serial: str, job: Job, steps: Sequence[StepDone]) -> None:
        """Raise :class:`CommandFailed` the first time that a step of a part was killed."""
        killed = [number for number, step in enumerate(steps, 1) if step.code == _KILLED]
        if killed and job not in self._seen:
            self._seen.add(job)
            raise CommandFailed(
                f"{serial}: run {killed[0]} was killed there (SIGKILL), as Android does where memory runs out; it is "
                "tried once more",
                serial,
            )


def _read(done: PartDone, number: int) -> StepDone:
    out, err, code, log = (_text(done.folder / f"{kind}-{number}") for kind in _KINDS)
    output = done.folder / output_file(number)
    if not code.strip().isdigit():
        raise CommandFailed(
            f"{done.part.serial}: run {number + 1} left no exit code; memory or space ran out there: see adb shell df, "
            "then run it again",
            done.part.serial,
        )
    return StepDone(int(code), out, err, log, output.read_bytes() if output.is_file() else None)


def _text(path: Path) -> str:
    return path.read_bytes().decode("utf-8", "replace") if path.is_file() else ""


def interleaved(count: int, part: int) -> Sequence[int]:
    """The order of configurations in a part: forwards and backwards in turns, so that warming up and drift cancel out.

    >>> interleaved(3, 0), interleaved(3, 1)
    (range(0, 3), range(2, -1, -1))
    """
    return range(count) if part % 2 == 0 else range(count - 1, -1, -1)

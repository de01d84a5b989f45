"""The journal of a run on devices: what the run is made of, how many parts it has, and which devices do it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from evaltools.cli.device.jobs import jobs_of
from evaltools.cli.device.request import DeviceRequest
from evaltools.cli.device.run_flags import DeviceFlags
from evaltools.device.files.store import sha256_of
from evaltools.device.programs.pool import Job
from evaltools.engine import Journal
from evaltools.engine.run_folder import REQUEST, decode, digest, encode, require_same_run
from evaltools.errors import UsageError
from evaltools.request import Request
from evaltools.request.plain import to_plain
from evaltools.tasks.shared.options.execution import flags_to_repeat
from evaltools.tasks.shared.run_identity import files_below, fingerprint_of_files

_PARTS: Final = "parts on devices"
_SERIALS: Final = "devices that do everything"


@dataclass(frozen=True)
class Begun:
    """How a run began: ``count`` parts, and with ``--split=each`` the devices that do everything."""

    count: int
    serials: tuple[str, ...] = ()

    def jobs(self, split: str) -> list[Job]:
        """All parts."""
        return jobs_of(split, self.serials, self.count)


def begun(journal: Journal[object], own: DeviceFlags, there: DeviceRequest) -> Begun | None:
    """How the run in a folder began, None where it is new; raises :class:`UsageError` for the folder of another run."""
    count = int(journal.fact(_PARTS) or 0)
    require_same_run(journal, _identity(own, there), begun=bool(count))
    if not count:
        return None
    parts = own.parts
    if parts and parts != count:
        raise UsageError(f"--parts={parts}: the run in {journal.folder} began with {count}; leave the flag out")
    serials: list[str] = decode(journal.fact(_SERIALS) or "[]", list[str], journal.folder)
    return Begun(count, tuple(serials))


def begin(journal: Journal[object], request: Request, run: Begun, serials: Sequence[str], is_new: bool) -> Begun:
    """Write down that a run begins, or goes on, with the devices that do everything; those that began it stay."""
    together = tuple(dict.fromkeys((*run.serials, *serials)))
    facts = {_SERIALS: encode(list(together))}
    if is_new:
        facts |= {_PARTS: str(run.count), REQUEST: encode(to_plain(request))}
    journal.state(facts)
    return replace(run, serials=together)


def _identity(own: DeviceFlags, there: DeviceRequest) -> dict[str, str]:
    """Of files by their content: it stands in the paths that they have on devices."""
    folders = [path for below in there.folders.values() for path in files_below([below])]
    return {
        "the executor": "devices",
        "the task": there.request.task,
        "--split": own.split,
        "--taskset": own.taskset,
        "the files": digest([*there.files.values(), *map(sha256_of, folders)]),
        **{
            name: text
            for option, pictures in there.pictures.items()
            for name, text in fingerprint_of_files(f"the files of --{option}", files_below([pictures])).items()
        },
        **{
            f"configuration {configuration.name}": " ".join(configuration.to_flags())
            for configuration in there.request.configurations
        },
        **flags_to_repeat(there.request.options),
    }

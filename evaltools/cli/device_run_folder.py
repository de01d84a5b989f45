"""The journal of a run on devices: what the run is made of, how many parts it has, and which devices do it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from evaltools.cli.device_jobs import EACH, jobs_of
from evaltools.cli.device_run_flags import DeviceCommand
from evaltools.cli.device_words import DeviceWords
from evaltools.cli.stored_command import ON_DEVICES
from evaltools.device.pool import Job
from evaltools.device.store import new_mark, sha256_of
from evaltools.engine import Journal
from evaltools.engine.run_folder import COMMAND, decode, digest, encode, require_same_run
from evaltools.errors import UsageError
from evaltools.tasks.shared.options.execution import flags_to_repeat
from evaltools.tasks.shared.run_identity import files_below, fingerprint_of_files

_PARTS: Final = "parts on devices"
_MARK: Final = "mark of its folders on devices"
_SERIALS: Final = "devices that do everything"


@dataclass(frozen=True)
class Begun:
    """How a run began: ``count`` parts, and with ``--split=each`` the devices that do everything.

    ``mark`` stands in the names of its folders on devices.
    """

    count: int
    mark: str
    serials: tuple[str, ...] = ()

    def jobs(self, split: str) -> list[Job]:
        """All parts."""
        return jobs_of(split, self.serials, self.count)


def begun(journal: Journal[object], asked: DeviceCommand, words: DeviceWords) -> Begun | None:
    """How the run in a folder began, None where it is new; raises :class:`UsageError` for the folder of another run."""
    count = int(journal.fact(_PARTS) or 0)
    require_same_run(journal, _identity(asked, words), begun=bool(count))
    if not count:
        return None
    parts = asked.own.parts
    if parts and parts != count:
        raise UsageError(f"--parts={parts}: the run in {journal.folder} began with {count}; leave the flag out")
    serials: list[str] = decode(journal.fact(_SERIALS) or "[]", list[str], journal.folder)
    return Begun(count, journal.fact(_MARK) or new_mark(), tuple(serials))


def begin(journal: Journal[object], asked: DeviceCommand, run: Begun, serials: Sequence[str], is_new: bool) -> Begun:
    """Write down that a run begins, or goes on, with these devices; those that it began with belong to it for good."""
    together = tuple(dict.fromkeys((*run.serials, *serials))) if asked.own.split == EACH else ()
    facts = {_SERIALS: encode(list(together))}
    if is_new:
        _, _, _, task, *typed = asked.typed
        command = [os.getcwd(), "evaltools", f"{ON_DEVICES}{task}", *typed]
        facts |= {_PARTS: str(run.count), _MARK: run.mark, COMMAND: encode(command)}
    journal.state(facts)
    return replace(run, serials=together)


def _identity(asked: DeviceCommand, words: DeviceWords) -> dict[str, str]:
    folders = [path for below in words.folders.values() for path in files_below([below])]
    configurations = [word for word in words.words if word.startswith("--config=")] if "configs" in asked.flags else []
    return {
        "the executor": "devices",
        "the command": asked.task,
        "--split": asked.own.split,
        "--taskset": asked.own.taskset,
        "the files": digest([*words.files.values(), *map(sha256_of, folders)]),
        **({"the content of --configs": digest(configurations)} if configurations else {}),
        **{
            name: text
            for flag, pictures in words.pictures.items()
            for name, text in fingerprint_of_files(f"the files of --{flag}", files_below([pictures])).items()
        },
        **flags_to_repeat(asked.flags),
    }

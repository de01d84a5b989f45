"""An evaluation on devices with evaltools itself: each does everything, and its records are fetched.

In the run folder each device has a folder of its own with the journal of its run, which says in the end how the device
did it.
"""

from __future__ import annotations

import posixpath
import re
import shlex
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from typing import Final

from msgspec import Struct
from msgspec.structs import replace
from rich.console import Console

from evaltools.adb.store import KEPT, stored_folder
from evaltools.command import TaskCommand
from evaltools.device.device import Device, DevicesUsed, devices_used, do_on_each, require_any
from evaltools.device.flags import DeviceFlags
from evaltools.device.python_program import (
    SentFiles,
    carry_out_on,
    device_request,
)
from evaltools.engine.facts import CONFIGURATIONS
from evaltools.engine.journal import JOURNAL_NAME, open_journal, read_journal
from evaltools.engine.ledger import Tally
from evaltools.engine.run_folder import (
    REQUEST,
    Fact,
    RunIdentity,
    digest,
    request_facts,
    require_same_run,
    run_folder,
    run_journal,
)
from evaltools.known_tasks import task_command
from evaltools.native.logs.delegates import delegate_lines
from evaltools.request import Request
from evaltools.request.plain import to_plain
from evaltools.result.device import HOST, DeviceFacts, DeviceLeftOut, DeviceRun, DeviceWork
from evaltools.runs.finished import FinishedShards
from evaltools.runs.identity import RunAtPlace
from evaltools.runs.places import REFERENCE_HERE, examples_of, for_place, of_several, progress_of, run_here, together
from evaltools.runs.task_run import TaskRun
from evaltools.tasks.framework.observer import Observer
from evaltools.tasks.framework.request import flags_to_repeat

RUN: Final = "run"
"""The run folder, in the folder of a device here, and in the folder that a program works in there."""
RECORDS: Final = f"{RUN}/{JOURNAL_NAME}"
_SERIALS: Final = Fact[list[str]]("devices", list[str])
_KEPT_AS: Final = "folder of records on devices"


class KeptWork(Struct, frozen=True):
    """How the work was done, and the device that did it."""

    work: DeviceWork
    device: DeviceFacts


DONE: Final = Fact[KeptWork]("done on a device", KeptWork)
"""What is added to the journal of a device; from then on the work is not done again."""


@contextmanager
def records_of_devices(
    request: Request, flags: DeviceFlags, console: Console, observer: Observer
) -> Iterator[tuple[Request, FinishedShards, bool]]:
    """A context that has the devices do everything on entry; their records can be read until it ends.

    It gives the request that makes the result, the records, and whether every device has done its work.

    Raises :class:`UsageError` for flags that make no sense together, and :class:`DeviceError` where no device has done
    its work.
    """
    started_at, clock = datetime.now(timezone.utc).isoformat(timespec="seconds"), time.perf_counter()
    run_dir, task = request.options.path("run_dir"), task_command(request.task)
    device_request(request, flags.root, flags.libraries)
    examples = examples_of(task, request)
    with run_folder(run_dir) as folder, run_journal(folder) as journal:
        serials = _SERIALS.read(journal) or []
        identity = _identity_of(flags, request, examples)
        require_same_run(journal, identity, has_begun=bool(serials))
        is_done = bool(serials) and not missing_in(folder, serials)
        with nullcontext(DevicesUsed()) if is_done else devices_used(flags, console) as devices:
            if not serials:
                serials = list(devices.by_serial)
                journal.state({_KEPT_AS: uuid.uuid4().hex})
                _SERIALS.write(journal, serials)
                if not REQUEST.read(journal):
                    journal.state(request_facts(to_plain(request), identity))
            is_one = len(serials) == 1 and not flags.include_host
            wanted = request if is_one else of_several(task, request, folder)
            told, sent = device_request(wanted, flags.root, flags.libraries, examples.pictures_of)
            there = for_place(task, told, is_one).stating(run_dir=RUN, progress="json")
            places = []
            if flags.include_host:
                console.print("on this computer first ...", style="dim")
                here = for_place(task, wanted, is_one)
                run_here(here.stating(run_dir=folder / HOST, progress="none"))
                places.append(RunAtPlace((folder / HOST,), HOST, flags_to_repeat(here.options)))
            kept_there = posixpath.join(flags.root, KEPT, str(journal.fact(_KEPT_AS)))
            on_devices = OnDevices(task, there, sent, kept_there)
            missing, left_out = missing_in(folder, serials), list[DeviceLeftOut]()
            if missing:
                with observer.progress("on devices", len(missing) * examples.example_count) as on_progress:
                    left_out = on_devices.do(missing, folder, devices, console, on_progress)
        done = {serial: kept for serial in serials if (kept := work_kept_in(folder_of(folder, serial)))}
        step = f"; evaltools resume {shlex.quote(str(run_dir))} goes on" if run_dir is not None else ""
        require_any(done, left_out, step)
        for serial in done:
            run = folder_of(folder, serial) / RUN
            places.append(RunAtPlace((run,), "" if is_one else serial, flags_to_repeat(there.options)))
        facts, work = tuple(kept.device for kept in done.values()), tuple(kept.work for kept in done.values())
        records = FinishedShards(
            tuple(places),
            DeviceRun("evaltools", facts, work, tuple(left_out)),
            request.command,
            sent.host_names("" if wanted is request else REFERENCE_HERE),
            started_at,
            round(time.perf_counter() - clock, 3),
        )
        yield replace(wanted, devices=None).without_run_options(), records, len(done) == len(serials)


def _identity_of(flags: DeviceFlags, request: Request, examples: TaskRun) -> RunIdentity:
    """The identity of a run on devices: that of the same run here, and what of the devices decides its figures."""
    found = examples.identity()
    libraries = "" if flags.libraries is None else stored_folder(flags.root, flags.libraries)[0]
    own = {"--include_host": str(flags.include_host), "--taskset": flags.taskset, "--device_libraries": libraries}
    return replace(
        found,
        inputs={"the executor": "devices", **found.inputs},
        options={**found.options, **own},
        configurations={each.name: {"its setting": " ".join(each.to_flags())} for each in request.configurations},
    )


class OnDevices(Struct):
    """What each device does: a ``request`` for records, whose files are ``sent``.

    Records of work that is not finished stay in the folder ``kept_there``, so that they are not lost with an attempt.
    """

    task: TaskCommand
    request: Request
    sent: SentFiles
    kept_there: str

    def do(
        self,
        missing: Sequence[str],
        folder: Path,
        devices: DevicesUsed,
        console: Console,
        on_progress: Callable[[Tally], None],
    ) -> list[DeviceLeftOut]:
        """Do the work that is ``missing`` in a run folder, as far as the devices can; returns those that cannot.

        ``on_progress`` gets the progress of all.
        """
        here = [serial for serial in missing if serial in devices.by_serial]
        progress: dict[str, Tally] = {}

        def do(device: Device) -> None:
            def on_line(line: bytes) -> None:
                tally = progress_of(line)
                if tally is not None:
                    progress[device.serial] = tally
                    on_progress(together([*progress.values()]))

            self._do_on(device, folder_of(folder, device.serial), on_line)

        _, left_out = do_on_each(devices, here, do, console)
        away = set(missing) - {*here, *(entry.serial for entry in left_out)}
        why = "began this run and is not among the devices now: connect it, name it in --serials, then resume the run"
        return [*(DeviceLeftOut(serial, f"{serial} {why}") for serial in missing if serial in away), *left_out]

    def _do_on(self, device: Device, folder: Path, on_line: Callable[[bytes], None]) -> None:
        """Do everything on a device; the journal lies in :data:`RUN` of the folder then."""
        kept = shlex.quote(self.kept_there)
        before = f"mkdir -p {kept} && ln -s {kept} {RUN} || exit 3\n"
        work, answer = carry_out_on(device, self.task, self.request, self.sent, RECORDS, folder, on_line, before)
        device.link.patiently(partial(device.link.shell, f"rm -rf {kept}"))
        with closing(open_journal(folder / RUN)) as journal:
            described = CONFIGURATIONS.required(journal)
            messages = [entry.runtime.messages for entry in described if entry.runtime is not None]
            lines = delegate_lines("\n".join([*messages, answer.complaints]))
            DONE.write(journal, KeptWork(replace(work, delegate_lines=lines), device.facts))


def missing_in(run_dir: Path, serials: Sequence[str]) -> list[str]:
    """The devices whose work is not in a run folder."""
    return [serial for serial in serials if work_kept_in(folder_of(run_dir, serial)) is None]


def folder_of(run_dir: Path, serial: str) -> Path:
    """The folder with the records of a device, which may not be there yet."""
    return run_dir / f"{re.sub('[^A-Za-z0-9-]', '_', serial)}-{digest([serial])[:6]}"


def work_kept_in(folder: Path) -> KeptWork | None:
    """How a device did its work, perhaps in an earlier run; None where it has not done it."""
    return DONE.read(read_journal(folder / RUN)) if (folder / RECORDS).exists() else None

"""An evaluation on devices with evaltools itself: each does everything, and its records are fetched."""

from __future__ import annotations

import posixpath
import shlex
import shutil
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from typing import Final

from msgspec.structs import replace
from rich.console import Console

from evaltools.command import TaskCommand
from evaltools.device.device import Device
from evaltools.device.devices import DevicesUsed, Outcome, do_on_each, require_answer, require_any
from evaltools.device.flags import DeviceFlags
from evaltools.device.python_program import python_on
from evaltools.device.records import RECORDS, KeptRecords, KeptWork, Progress, messages_in, progress_of
from evaltools.device.request import (
    DeviceRequest,
    carry_out_on_host,
    device_request,
    pictures_on_device,
    without_host_options,
)
from evaltools.device.store import KEPT, names_in, stored_folder
from evaltools.device.transfer import sha256_of
from evaltools.device.work import RUN, Program, SentFolder, StderrLines, Work
from evaltools.engine.ledger import Tally
from evaltools.engine.run_folder import (
    RunIdentity,
    decode,
    digest,
    encode,
    has_request,
    request_facts,
    require_same_run,
    run_folder,
    run_journal,
)
from evaltools.errors import UsageError
from evaltools.exit_codes import EXAMPLES_FAILED, LIMIT_BROKEN, NOT_MEASURED, OK, USAGE
from evaltools.known_tasks import task_command
from evaltools.native.logs.delegates import delegate_lines
from evaltools.report.files.evaluation import planned_files, planned_files_of_task
from evaltools.request import Request
from evaltools.request.plain import to_plain
from evaltools.result.device import HOST, DeviceLeftOut, DeviceRun, DeviceWork, LostAttempt
from evaltools.runs.first_look import check_on_host
from evaltools.runs.identity import RunAtPlace, files_below, run_identity, with_files
from evaltools.runs.measure import FinishedShards
from evaltools.runs.stored import to_bytes
from evaltools.runs.task_run import TaskRun
from evaltools.tasks.framework import read
from evaltools.tasks.framework.observer import Observer
from evaltools.tasks.framework.request import flags_to_repeat

_SERIALS: Final = "devices"
_KEPT_AS: Final = "folder of records on devices"
_REFERENCE: Final = "reference"
_REFERENCE_ON_HOST: Final = "that of the reference run on this computer"
WITH_RECORDS: Final = (OK, NOT_MEASURED)
"""The exit codes of a run on a device that leaves records."""
_WITH_RESULT: Final = (*WITH_RECORDS, EXAMPLES_FAILED, LIMIT_BROKEN)
"""Those of a run on the host, which goes on to a result."""


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
    task, run_dir = task_command(request.task), request.options.path("run_dir")
    sent = device_request(request, flags.root, flags.libraries)
    examples = examples_of(task, request)
    with run_folder(run_dir) as folder, run_journal(folder) as journal:
        serials: list[str] = decode(journal.fact(_SERIALS) or "[]", list[str], folder)
        require_same_run(journal, identity_of(flags, sent), has_begun=bool(serials))
        kept = KeptRecords(folder)
        is_done = bool(serials) and all(map(kept.is_done, serials))
        with nullcontext() if is_done else DevicesUsed(flags, console) as devices:
            if devices is not None and not serials:
                serials = list(devices.serials)
                journal.state({_SERIALS: encode(serials), _KEPT_AS: uuid.uuid4().hex})
                if not has_request(journal):
                    journal.state(request_facts(to_plain(request), identity_of(flags, sent)))
            is_one = len(serials) == 1 and not flags.include_host
            if not is_one:
                require_one_file(task, request)
            against_host = None if is_one else _against_host_outputs(task, request, folder)
            if against_host is not None:
                request, sent = against_host, device_request(against_host, flags.root, flags.libraries)
            kept_there = posixpath.join(flags.root, KEPT, str(journal.fact(_KEPT_AS)))
            run = DeviceEvaluation(task, request, sent, examples, kept, kept_there, is_one, against_host is not None)
            host = (run.on_host(folder, console),) if flags.include_host else ()
            outcome = Outcome[None]()
            if devices is not None:
                outcome = run.do(serials, devices, console, observer)
        done = [serial for serial in serials if kept.is_done(serial)]
        step = f"; evaltools resume {shlex.quote(str(run_dir))} goes on" if run_dir is not None else ""
        require_any(done, outcome.left_out, step)
        records = replace(
            run.finished(done, outcome.left_out, host),
            started_at=started_at,
            elapsed_s=round(time.perf_counter() - clock, 3),
        )
        yield run.merge_request, records, len(done) == len(serials)


def examples_of(task: TaskCommand, request: Request) -> TaskRun:
    """Read and check model, data and files on the host, before anything is sent.

    Raises :class:`UsageError` and its kinds.
    """
    asked = read(task, request)
    planned_files_of_task(task, request, planned_files(request).values())
    task_run = TaskRun(asked)
    check_on_host(task_run)
    return task_run


def identity_of(flags: DeviceFlags, sent: DeviceRequest) -> RunIdentity:
    """The identity of a run on devices.

    Files count by their content: the path of a file on devices contains its checksum.
    """
    folders = [path for below in sent.folders.values() for path in files_below([below])]
    libraries = "" if flags.libraries is None else stored_folder(flags.root, flags.libraries)[0]
    found = RunIdentity(
        {
            "the executor": "devices",
            "the task": sent.request.task,
            "the files": digest([*sent.files.values(), *map(sha256_of, folders)]),
        },
        options={
            "--include_host": str(flags.include_host),
            "--taskset": flags.taskset,
            "--device_libraries": libraries,
            **flags_to_repeat(sent.request.options),
        },
        configurations={each.name: {"its setting": " ".join(each.to_flags())} for each in sent.request.configurations},
    )
    for option, pictures in sent.pictures.items():
        found = with_files(found, f"the files of --{option}", files_below([pictures]))
    return found


def _against_host_outputs(task: TaskCommand, request: Request, folder: Path) -> Request | None:
    """The request that compares every place with the reference's outputs on the host; None if the task has no such.

    The host computes these outputs once, into a folder below ``folder``. Raises :class:`UsageError` where it cannot.
    """
    saved, unfinished = folder / _REFERENCE, folder / f"{_REFERENCE}.part"
    outputs = task.reference_outputs
    saving: Request | None = None if outputs is None else outputs.saving_reference(request, unfinished)
    if outputs is None or saving is None:
        return None
    if not saved.is_dir():
        shutil.rmtree(unfinished, ignore_errors=True)
        carry_out_on_host(saving, (OK, LIMIT_BROKEN, EXAMPLES_FAILED))
        unfinished.rename(saved)
    against_saved: Request = outputs.against_saved(request, saved)
    return against_saved


def require_one_file(task: TaskCommand, request: Request) -> None:
    """Raise :class:`UsageError` for files by configuration, where every place has configurations of its own."""
    files = planned_files(request)
    more = planned_files_of_task(task, request, files.values())
    path = next(iter([*more.values(), *(path for path in files.values() if path.suffix.lower() != ".json")]), None)
    if path is not None:
        raise UsageError(
            f"{path}: what several places give is one result in JSON; give --output_file_path a name ending in .json, "
            "or name one device with --serials"
        )


class DeviceEvaluation:
    """An evaluation that each device does as a whole; what is done is kept in the run folder.

    ``is_one``: one device alone does it. ``is_against_host``: devices are compared with outputs of the host.
    ``kept_there`` is the folder on devices for records of work that is not finished.
    """

    def __init__(
        self,
        task: TaskCommand,
        request: Request,
        sent: DeviceRequest,
        examples: TaskRun,
        kept: KeptRecords,
        kept_there: str,
        is_one: bool = True,
        is_against_host: bool = False,
    ) -> None:
        self._task = task
        self._request = request
        self._sent = sent
        self._examples = examples
        self._kept = kept
        self._kept_there = kept_there
        self._is_one = is_one
        self._is_against_host = is_against_host
        self._names = {option: names_in(folder) for option, folder in sent.pictures.items()}
        self._progress: dict[str, Progress] = {}
        self._on_progress: Callable[[Tally], None] = lambda _tally: None

    @property
    def on_devices(self) -> Request:
        """The request that is sent: for records alone."""
        return self._for_place(self._sent.request).stating(run_dir=RUN, progress="json")

    def _for_place(self, request: Request) -> Request:
        """The request without what the host makes of the records; of several places also what only it measures."""
        request = without_host_options(request).for_records()
        outputs = self._task.reference_outputs
        return request if self._is_one or outputs is None else outputs.for_places(request)

    @property
    def merge_request(self) -> Request:
        """The request by which the host makes the result of the records."""
        return replace(self._request, devices=None).of_no_run()

    def on_host(self, folder: Path, console: Console) -> RunAtPlace:
        """Do everything on the host as well, in a folder below ``folder``.

        Finished by an earlier command, it is kept.
        """
        console.print("on this computer first ...", style="dim")
        request = self._for_place(self._request)
        folders = tuple(ThisComputer().carry_out({folder / HOST: request}))
        return RunAtPlace(folders, HOST, flags_to_repeat(request.options))

    def do(self, serials: Sequence[str], devices: DevicesUsed, console: Console, observer: Observer) -> Outcome[None]:
        """Do what is missing, as far as the devices can; the ``observer`` is shown their progress."""
        missing = [serial for serial in serials if not self._kept.is_done(serial)]
        here = [serial for serial in missing if serial in devices.serials]
        with observer.progress("on devices", len(missing) * self._examples.example_count) as self._on_progress:
            outcome = do_on_each(devices, here, self._do, console)
        known = {*here, *(entry.serial for entry in outcome.left_out)}
        outcome.left_out[:0] = [
            DeviceLeftOut(
                serial,
                f"{serial} began this run and is not among the devices now: connect it, name it in --serials, then "
                "resume the run",
            )
            for serial in missing
            if serial not in known
        ]
        return outcome

    def _do(self, device: Device, lost: Sequence[LostAttempt]) -> None:
        """The work of one device, whose records are kept."""
        place = OnDevice(device, self.work, python_on(device, self._task), partial(self._report, device.serial))
        for folder in place.carry_out({self._kept.unfinished(device.serial): self.on_devices}):
            run_identity(folder / RUN)
            lines = delegate_lines(f"{messages_in(folder / RUN)}\n{place.printed}")
            done = replace(place.done, delegate_lines=lines, lost=tuple(lost))
            self._kept.keep(KeptWork(done, device.facts))

    def _report(self, serial: str, progress: Progress) -> None:
        self._progress[serial] = progress
        each = list(self._progress.values())
        failed: Counter[str] = Counter()
        for one in each:
            failed.update(one.failed)
        self._on_progress(Tally(sum(one.done for one in each), sum(one.failed_examples for one in each), dict(failed)))

    @property
    def work(self) -> Work:
        """What is sent to a device beside the request, and what is fetched."""
        sent = self._sent
        pictures = {
            pictures_on_device(option): SentFolder(folder, self._examples.pictures_of(option), self._names[option])
            for option, folder in sent.pictures.items()
        }
        return Work(
            files=sent.files,
            folders={**pictures, **sent.whole_folders},
            results=(RECORDS,),
            kept=self._kept_there,
        )

    def finished(
        self, serials: Sequence[str], left_out: Sequence[DeviceLeftOut], host: tuple[RunAtPlace, ...] = ()
    ) -> FinishedShards:
        """What these devices have done, and the run on the ``host``; :attr:`merge_request` makes a result of them."""
        kept = self._kept
        found = [kept.read(serial) for serial in serials]
        device_run = DeviceRun(
            "evaltools",
            tuple(entry.device for entry in found),
            tuple(entry.work for entry in found),
            tuple(left_out),
        )
        repeated = flags_to_repeat(self.on_devices.options)
        places = host + tuple(
            RunAtPlace((kept.of(serial) / RUN,), "" if self._is_one else serial, repeated) for serial in serials
        )
        host_names = self._sent.host_names(_REFERENCE_ON_HOST if self._is_against_host else "")
        return FinishedShards(places, device_run, self._request.command, host_names)


class ThisComputer:
    """The computer here as one of several places: a :class:`~evaltools.runs.places.Place`."""

    def carry_out(self, ranges: Mapping[Path, Request]) -> Iterator[Path]:
        """Each range in a process of its own; raises :class:`UsageError` where one does not end well."""
        for folder, request in ranges.items():
            carry_out_on_host(request.stating(run_dir=folder, progress="none"), _WITH_RESULT)
            yield folder


class OnDevice:
    """A device with Python: a :class:`~evaltools.runs.places.Place`.

    ``work`` is what it needs beside the request. ``done`` is how it did the last range, ``printed`` what it said.
    """

    done: DeviceWork
    printed: str

    def __init__(self, device: Device, work: Work, program: Program, on_progress: Callable[[Progress], None]) -> None:
        self._device, self._work, self._program, self._on_progress = device, work, program, on_progress

    def carry_out(self, ranges: Mapping[Path, Request]) -> Iterator[Path]:
        """One range after the other; the journal lies in :data:`RUN` of its folder.

        Raises :class:`DeviceError` where the device did not finish.
        """
        device = self._device
        for folder, request in ranges.items():
            asked = replace(self._work, request=to_bytes(request))
            done = device.do(asked, self._program, folder, StderrLines(self._on_line))
            if done.code not in WITH_RECORDS:
                device.python = None  # a package may be gone
            if done.code in (*WITH_RECORDS, USAGE):
                device.link.patiently(partial(device.shell, f"rm -rf {shlex.quote(self._work.kept)}"))
            require_answer(done, WITH_RECORDS, RECORDS, "records")
            self.done, self.printed = done.work, done.err
            yield folder

    def _on_line(self, line: bytes) -> None:
        progress = progress_of(line)
        if progress is not None:
            self._on_progress(progress)

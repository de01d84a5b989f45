"""An evaluation on devices with evaltools itself: each does everything, and its records are fetched."""

from __future__ import annotations

import posixpath
import shlex
import shutil
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from typing import Final

from msgspec import Struct
from msgspec.structs import replace
from rich.console import Console

from evaltools.command import TaskCommand
from evaltools.device.device import Device
from evaltools.device.devices import DevicesUsed, devices_used, do_on_each, require_any
from evaltools.device.flags import DeviceFlags
from evaltools.device.python_program import carry_out_on
from evaltools.device.records import (
    RECORDS,
    RUN,
    KeptWork,
    folder_of,
    is_kept,
    keep,
    messages_in,
    progress_of,
    read_kept,
    together,
)
from evaltools.device.request import SentFiles, carry_out_on_host, device_request, without_host_options
from evaltools.device.store import KEPT, stored_folder
from evaltools.engine.ledger import Tally
from evaltools.engine.run_folder import (
    REQUEST,
    Fact,
    RunIdentity,
    request_facts,
    require_same_run,
    run_folder,
    run_journal,
)
from evaltools.errors import UsageError
from evaltools.exit_codes import EXAMPLES_FAILED, LIMIT_BROKEN, OK
from evaltools.known_tasks import task_command
from evaltools.native.logs.delegates import delegate_lines
from evaltools.report.files.evaluation import planned_files, planned_files_of_task
from evaltools.request import Request
from evaltools.request.plain import to_plain
from evaltools.result.device import HOST, DeviceLeftOut, DeviceRun
from evaltools.runs.evaluate import FinishedShards
from evaltools.runs.first_look import check_on_host
from evaltools.runs.identity import RunAtPlace, run_identity
from evaltools.runs.task_run import TaskRun
from evaltools.tasks.framework import read
from evaltools.tasks.framework.observer import Observer
from evaltools.tasks.framework.request import flags_to_repeat

_SERIALS: Final = Fact[list[str]]("devices", list[str])
_KEPT_AS: Final = "folder of records on devices"
_REFERENCE: Final = "reference"
_REFERENCE_ON_HOST: Final = "that of the reference run on this computer"


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
    run_dir = request.options.path("run_dir")
    device_request(request, flags.root, flags.libraries)
    examples = examples_of(task_command(request.task), request)
    with run_folder(run_dir) as folder, run_journal(folder) as journal:
        serials = _SERIALS.read(journal) or []
        identity = identity_of(flags, request, examples)
        require_same_run(journal, identity, has_begun=bool(serials))
        is_done = bool(serials) and all(is_kept(folder_of(folder, serial)) for serial in serials)
        with nullcontext() if is_done else devices_used(flags, console) as devices:
            if devices is not None and not serials:
                serials = list(devices.by_serial)
                journal.state({_KEPT_AS: uuid.uuid4().hex})
                _SERIALS.write(journal, serials)
                if not REQUEST.read(journal):
                    journal.state(request_facts(to_plain(request), identity))
            is_one = len(serials) == 1 and not flags.include_host
            evaluation = DeviceEvaluation(request, flags, examples, folder, is_one)
            host = (evaluation.on_host(console),) if flags.include_host else ()
            kept_there = posixpath.join(flags.root, KEPT, str(journal.fact(_KEPT_AS)))
            left_out = [] if devices is None else evaluation.do(serials, kept_there, devices, console, observer)
        done = [serial for serial in serials if is_kept(folder_of(folder, serial))]
        step = f"; evaltools resume {shlex.quote(str(run_dir))} goes on" if run_dir is not None else ""
        require_any(done, left_out, step)
        records = replace(
            evaluation.finished(done, left_out, host),
            started_at=started_at,
            elapsed_s=round(time.perf_counter() - clock, 3),
        )
        yield evaluation.merge_request, records, len(done) == len(serials)


def examples_of(task: TaskCommand, request: Request) -> TaskRun:
    """Read and check model, data and files on the host, before anything is sent.

    Raises :class:`UsageError` and its kinds.
    """
    asked = read(task, request)
    planned_files_of_task(task, request, planned_files(request).values())
    task_run = TaskRun(asked)
    check_on_host(task_run)
    return task_run


def identity_of(flags: DeviceFlags, request: Request, examples: TaskRun) -> RunIdentity:
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
    """An evaluation that each device does as a whole; what is done is kept in the run folder ``folder``.

    ``is_one``: one device alone does it. Several are compared with outputs of the host where the task has such.

    Attributes:
        on_devices: the request that is sent, for records alone
        merge_request: the one by which the host makes the result of the records
    """

    def __init__(
        self, request: Request, flags: DeviceFlags, examples: TaskRun, folder: Path, is_one: bool = True
    ) -> None:
        self._task = task_command(request.task)
        self._examples = examples
        self._folder = folder
        self._is_one = is_one
        against_host = None
        if not is_one:
            require_one_file(self._task, request)
            against_host = _against_host_outputs(self._task, request, folder)
        self._request = request if against_host is None else against_host
        asked, self._sent = device_request(self._request, flags.root, flags.libraries)
        self._host_names = self._sent.host_names("" if against_host is None else _REFERENCE_ON_HOST)
        self.on_devices = self._for_place(asked).stating(run_dir=RUN, progress="json")
        self.merge_request = replace(self._request, devices=None).of_no_run()

    def _for_place(self, request: Request) -> Request:
        """The request without what the host makes of the records; of several places also what only it measures."""
        request = without_host_options(request).for_records()
        outputs = self._task.reference_outputs
        return request if self._is_one or outputs is None else outputs.for_places(request)

    def on_host(self, console: Console) -> RunAtPlace:
        """Do everything on the host as well; finished by an earlier command, it is kept."""
        console.print("on this computer first ...", style="dim")
        request = self._for_place(self._request)
        folders = tuple(ThisComputer().carry_out({self._folder / HOST: request}))
        return RunAtPlace(folders, HOST, flags_to_repeat(request.options))

    def do(
        self, serials: Sequence[str], kept_there: str, devices: DevicesUsed, console: Console, observer: Observer
    ) -> list[DeviceLeftOut]:
        """Do what is missing, as far as the devices can; returns those that cannot.

        ``kept_there`` is the folder on devices for records of work that is not finished. The ``observer`` is shown the
        progress of all.
        """
        missing = [serial for serial in serials if not is_kept(folder_of(self._folder, serial))]
        here = [serial for serial in missing if serial in devices.by_serial]
        progress: dict[str, Tally] = {}

        def report(serial: str, tally: Tally) -> None:
            progress[serial] = tally
            on_progress(together([*progress.values()]))

        def do(device: Device) -> list[Path]:
            on_line = partial(report, device.serial)
            place = OnDevice(device, self._task, self._sent, self._examples, kept_there, on_line)
            return list(place.carry_out({folder_of(self._folder, device.serial): self.on_devices}))

        with observer.progress("on devices", len(missing) * self._examples.example_count) as on_progress:
            left_out = do_on_each(devices, here, do, console).left_out
        away = set(missing) - {*here, *(entry.serial for entry in left_out)}
        why = "began this run and is not among the devices now: connect it, name it in --serials, then resume the run"
        return [*(DeviceLeftOut(serial, f"{serial} {why}") for serial in missing if serial in away), *left_out]

    def finished(
        self, serials: Sequence[str], left_out: Sequence[DeviceLeftOut], host: tuple[RunAtPlace, ...] = ()
    ) -> FinishedShards:
        """What these devices have done, and the run on the ``host``; :attr:`merge_request` makes a result of them."""
        kept = [read_kept(folder_of(self._folder, serial)) for serial in serials]
        work, facts = tuple(entry.work for entry in kept), tuple(entry.device for entry in kept)
        repeated = flags_to_repeat(self.on_devices.options)
        places = tuple(
            RunAtPlace((folder_of(self._folder, serial) / RUN,), "" if self._is_one else serial, repeated)
            for serial in serials
        )
        device_run = DeviceRun("evaltools", facts, work, tuple(left_out))
        return FinishedShards(host + places, device_run, self._request.command, self._host_names)


class ThisComputer:
    """The computer here as one of several places that carry out ranges of a run."""

    def carry_out(self, ranges: Mapping[Path, Request]) -> Iterator[Path]:
        """Each range in a process of its own; raises :class:`UsageError` where one does not end well."""
        for folder, request in ranges.items():
            carry_out_on_host(request.stating(run_dir=folder, progress="none"))
            yield folder


class OnDevice(Struct):
    """A device with Python, which carries out ranges of a run.

    ``sent`` are the files of its requests, ``examples`` says which pictures are needed. Records of work that is not
    finished stay in the folder ``kept_there``, so that they are not lost with an attempt.
    """

    device: Device
    task: TaskCommand
    sent: SentFiles
    examples: TaskRun
    kept_there: str
    on_progress: Callable[[Tally], None]

    def carry_out(self, ranges: Mapping[Path, Request]) -> Iterator[Path]:
        """One range after the other; the journal lies in :data:`RUN` of its folder.

        Raises :class:`DeviceError` where the device did not finish.
        """
        device, kept = self.device, shlex.quote(self.kept_there)
        for folder, request in ranges.items():
            done = carry_out_on(
                device,
                self.task,
                request,
                self.sent,
                RECORDS,
                folder,
                self._on_line,
                self.examples.pictures_of,
                before=f"mkdir -p {kept} && ln -s {kept} {RUN} || exit 3\n",
            )
            device.link.patiently(partial(device.shell, f"rm -rf {kept}"))
            run_identity(folder / RUN)
            lines = delegate_lines(f"{messages_in(folder / RUN)}\n{done.err}")
            keep(folder, KeptWork(replace(done.work, delegate_lines=lines), device.facts))
            yield folder

    def _on_line(self, line: bytes) -> None:
        progress = progress_of(line)
        if progress is not None:
            self.on_progress(progress)

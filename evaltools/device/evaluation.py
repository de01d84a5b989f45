"""An evaluation on devices with evaltools itself: devices do its parts, and their records are fetched."""

from __future__ import annotations

import shlex
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Final

from msgspec.structs import replace
from rich.console import Console

from evaltools.device.device import Device
from evaltools.device.devices import DevicesUsed
from evaltools.device.flags import DeviceFlags
from evaltools.device.part import PartDone, PartWork, SentFolder, StderrLines
from evaltools.device.parts import (
    RECORDS,
    RUN,
    KeptPart,
    PartProgress,
    PartsFolder,
    part_figures,
    part_messages,
    progress_of,
)
from evaltools.device.pool import (
    SPLIT_EACH,
    Alike,
    Job,
    Pool,
    PoolOutcome,
    complete_jobs,
    device_run_of,
    jobs_of,
    parts_of,
    require_answer,
)
from evaltools.device.python_program import python_on
from evaltools.device.request import (
    DeviceRequest,
    carry_out_on_host,
    device_request,
    pictures_on_device,
    without_host_options,
)
from evaltools.device.store import names_in, stored_folder
from evaltools.device.transfer import sha256_of
from evaltools.engine.execution import Shard
from evaltools.engine.ledger import Tally
from evaltools.engine.run_folder import (
    RunIdentity,
    decode,
    digest,
    encode,
    has_own_request,
    request_facts,
    require_same_run,
    run_folder,
    run_journal,
)
from evaltools.errors import UsageError
from evaltools.exit_codes import EXAMPLES_FAILED, LIMIT_BROKEN, NOT_MEASURED, OK
from evaltools.native.logs.delegates import delegate_lines
from evaltools.report.files.evaluation import planned_files
from evaltools.request import Request
from evaltools.request.plain import to_plain
from evaltools.result.device_run import HOST, DeviceLeftOut, LostAttempt
from evaltools.result.environment import describe_environment
from evaltools.result.evaluation import EvaluationResult
from evaltools.result_file import read_result
from evaltools.runs.measure import FinishedShards
from evaltools.runs.stored import to_bytes
from evaltools.tasks.shared.declared import DeclaredTask, declared_task
from evaltools.tasks.shared.evaluation import Evaluation, Observer
from evaltools.tasks.shared.merging import RunAtPlace, files_below, run_identity, with_files
from evaltools.tasks.shared.request import flags_to_repeat

_PARTS: Final = "parts on devices"
_SERIALS: Final = "devices that do everything"
_WHOLE: Final = "result.json"
_REFERENCE: Final = "reference"
_REFERENCE_ON_HOST: Final = "that of the reference run on this computer"
WITH_RECORDS: Final = (OK, NOT_MEASURED, EXAMPLES_FAILED)


@contextmanager
def parts_on_devices(
    request: Request, flags: DeviceFlags, console: Console, observer: Observer
) -> Iterator[tuple[Request, FinishedShards, bool]]:
    """A context that runs the parts on entry; their records can be read until it ends.

    It gives the request that makes the result, the parts that are done as shards, and whether no part is missing.

    Raises :class:`UsageError` for flags that make no sense together, and :class:`DeviceError` where devices have not
    done the parts that a result needs.
    """
    started_at, clock = datetime.now(timezone.utc).isoformat(timespec="seconds"), time.perf_counter()
    kind, run_dir = declared_task(request.task), request.options.path("run_dir")
    is_each = flags.split == SPLIT_EACH
    sent = device_request(request, flags.root, flags.libraries)
    examples = examples_of(kind, request)
    _require_sense(kind, request, flags, examples)
    with run_folder(run_dir) as folder, run_journal(folder) as journal:
        count = int(journal.fact(_PARTS) or 0)
        require_same_run(journal, identity_of(flags, sent), has_begun=bool(count))
        if count and flags.parts not in (0, count):
            raise UsageError(f"--parts={flags.parts}: the run in {folder} began with {count}; leave the flag out")
        kept = PartsFolder(folder, count)
        serials: list[str] = decode(journal.fact(_SERIALS) or "[]", list[str], folder)
        jobs = jobs_of(flags.split, serials, count)
        is_done = bool(jobs) and all(map(kept.is_done, jobs))
        with nullcontext() if is_done else DevicesUsed(flags, console) as devices:
            if devices is not None:
                kept = PartsFolder(folder, count or _parts_wanted(kind, flags, examples, len(devices.serials)))
                serials = list(dict.fromkeys((*serials, *devices.serials)))
                jobs = jobs_of(flags.split, serials, kept.count)
                journal.state({_PARTS: str(kept.count), _SERIALS: encode(serials)})
                if not has_own_request(journal):
                    journal.state(request_facts(to_plain(request), identity_of(flags, sent)))
            against_host = _against_host_outputs(kind, request, folder) if is_each else None
            if against_host is not None:
                request, sent = against_host, device_request(against_host, flags.root, flags.libraries)
            run = DeviceEvaluation(kind, request, sent, examples, kept, is_each, against_host is not None)
            host = (run.on_host(folder, console),) if flags.include_host else ()
            outcome = PoolOutcome[PartDone]()
            if devices is not None:
                outcome = run.do(jobs, devices, console, observer)
        done = [job for job in jobs if kept.is_done(job)]
        complete = complete_jobs(jobs, done, outcome, _step(run_dir))
        shards = replace(
            run.finished(complete, outcome.left_out, host),
            started_at=started_at,
            elapsed_s=round(time.perf_counter() - clock, 3),
        )
        yield run.merge_request, shards, len(complete) == len(jobs)


def examples_of(kind: DeclaredTask, request: Request) -> Evaluation[Any]:
    """Read and check model, data and files on the host, before anything is sent.

    Raises :class:`UsageError` and its kinds.
    """
    asked = kind.read(request)
    kind.evaluation.more_files(request, planned_files(request).values())
    evaluation = kind.prepare(asked)
    evaluation.check_on_host()
    return evaluation


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
            "--split": flags.split,
            "--taskset": flags.taskset,
            "--device_libraries": libraries,
            **flags_to_repeat(sent.request.options),
        },
        configurations={each.name: {"its setting": " ".join(each.to_flags())} for each in sent.request.configurations},
    )
    for option, pictures in sent.pictures.items():
        found = with_files(found, f"the files of --{option}", files_below([pictures]))
    return found


def _against_host_outputs(kind: DeclaredTask, request: Request, folder: Path) -> Request | None:
    """The request that compares every place with the reference's outputs on the host; None if the task has no such.

    The host computes these outputs once, into a folder below ``folder``. Raises :class:`UsageError` where it cannot.
    """
    saved, unfinished = folder / _REFERENCE, folder / f"{_REFERENCE}.part"
    saving = kind.evaluation.saving_reference(request, unfinished)
    if saving is None:
        return None
    if not saved.is_dir():
        shutil.rmtree(unfinished, ignore_errors=True)
        carry_out_on_host(saving, (OK, LIMIT_BROKEN, EXAMPLES_FAILED))
        unfinished.rename(saved)
    return kind.evaluation.against_saved(request, saved)


def _parts_wanted(kind: DeclaredTask, flags: DeviceFlags, examples: Evaluation[Any], devices: int) -> int:
    if examples.task.keeps_state or (kind.whole_run_option and not flags.parts):
        return 1
    return parts_of(examples.example_count, flags.parts, 1 if flags.split == SPLIT_EACH else devices)


def _step(run_dir: Path | None) -> str:
    if run_dir is None:
        return " and are lost; --run_dir=FOLDER keeps such parts"
    return f"; evaltools resume {shlex.quote(str(run_dir))} goes on"


def _require_sense(kind: DeclaredTask, request: Request, flags: DeviceFlags, examples: Evaluation[Any]) -> None:
    """Raise :class:`UsageError` for flags that have no effect together, or none on devices."""
    whole = kind.whole_run_option
    if examples.task.keeps_state and flags.parts > 1:
        raise UsageError(
            f"--parts={flags.parts}: every run depends on those before it, so there is one part; leave it out"
        )
    if flags.split != SPLIT_EACH and flags.parts > 1 and whole and whole in request.options:
        raise UsageError(
            f"--{whole} has no effect on several parts: the noise floor is that of a device that does all; leave out "
            "one of it and --parts"
        )


class DeviceEvaluation:
    """An evaluation whose parts devices do; those that are done are kept in the run folder.

    ``is_each``: every device does everything, ``is_against_host``: and is compared with outputs of the host. Devices
    that share the parts must be alike in what the records say of configurations.
    """

    def __init__(
        self,
        kind: DeclaredTask,
        request: Request,
        sent: DeviceRequest,
        examples: Evaluation[Any],
        kept: PartsFolder,
        is_each: bool = False,
        is_against_host: bool = False,
    ) -> None:
        self._kind = kind
        self._request = request
        self._sent = sent
        self._examples = examples
        self._kept = kept
        self._is_each = is_each
        self._is_against_host = is_against_host
        self._names = {option: names_in(folder) for option, folder in sent.pictures.items()}
        self._alike = Alike(RunIdentity.changes)
        self._progress: dict[Job, PartProgress] = {}
        self._losses: dict[Job, list[LostAttempt]] = {}
        self._on_progress: Callable[[Tally], None] = lambda _tally: None

    @property
    def is_whole(self) -> bool:
        """Whether one device does all examples, so that it also measures what only a whole run can measure."""
        return bool(self._kind.whole_run_option) and not self._is_each and self._kept.count == 1

    @property
    def good_codes(self) -> tuple[int, ...]:
        """The exit codes of a run that leaves records.

        1 is a broken limit; in a task without limits, a crash of Python.
        """
        return (*WITH_RECORDS, LIMIT_BROKEN) if self._kind.has_limits else WITH_RECORDS

    @property
    def on_devices(self) -> Request:
        """The request that is sent for every part; :meth:`work` adds which part it is."""
        return self._without_host_work(without_host_options(self._sent.request)).stating(run_dir=RUN, progress="json")

    def _without_host_work(self, request: Request) -> Request:
        """The request without what the host does once for all parts."""
        if self.is_whole:
            name = self._kind.whole_run_option
            stated = {name: self._request.options.value(name)} if name in self._request.options else {}
            return request.stating(**stated, output_file_path=_WHOLE)
        return request.in_parts()

    @property
    def merge_request(self) -> Request:
        """The request by which the host makes the result of the parts.

        It leaves out what only a whole run measures, where devices share the examples: the host would measure that on
        its own CPU, which says nothing about a device's outputs.
        """
        whole = replace(self._request, devices=None).of_no_run()
        if not self._kind.whole_run_option or self._is_each or self.is_whole:
            return whole
        parameter = whole.options.parameters[self._kind.whole_run_option]
        return whole.stating(**{parameter.name: parameter.in_parts})

    def on_host(self, folder: Path, console: Console) -> RunAtPlace:
        """Do everything on the host as well, in a folder below ``folder``.

        Finished by an earlier command, it is kept.
        """
        console.print("on this computer first ...", style="dim")
        request = self._without_host_work(without_host_options(self._request))
        run_dir = folder / HOST
        carry_out_on_host(request.stating(run_dir=run_dir, progress="none"), self.good_codes)
        return RunAtPlace((run_dir,), HOST, flags_to_repeat(request.options))

    def do(
        self, jobs: Sequence[Job], devices: DevicesUsed, console: Console, observer: Observer
    ) -> PoolOutcome[PartDone]:
        """Do the parts that are missing, as far as the devices can; the ``observer`` is shown their progress."""
        kept = self._kept
        for job in filter(kept.is_done, jobs):
            self._progress[job] = self._finished(job)
            self._alike.require(job, kept.read(job).part.serial, run_identity(kept.of(job) / RUN))
        missing = [job for job in jobs if not kept.is_done(job)]
        with observer.progress("on devices", sum(map(self._size_of, jobs))) as self._on_progress:
            outcome = Pool(devices, missing, kept.count, self._do, console, self._lose).run()
        known = {*devices.serials, *(entry.serial for entry in devices.left_out)}
        outcome.left_out[:0] = [
            DeviceLeftOut(
                serial,
                f"{serial} began this run and is not among the devices now: connect it, name it in --serials, then "
                "resume the run",
            )
            for serial in dict.fromkeys(job.serial for job in missing if job.serial)
            if serial not in known
        ]
        return outcome

    def _size_of(self, job: Job) -> int:
        return Shard(job.index, self._kept.count).size_of(self._examples.example_count)

    def _do(self, device: Device, job: Job) -> PartDone:
        """One part on one device, with its records, which are kept."""
        program = python_on(device, self._kind)
        most = self._size_of(job) - 1  # it is whole once its records are here

        def on_line(line: bytes) -> None:
            progress = progress_of(line)
            if progress is not None:
                self._report(job, replace(progress, done=min(progress.done, most)))

        folder = self._kept.unfinished(job)
        done = device.do(self.work(job), program, folder, StderrLines(on_line))
        if done.code not in self.good_codes:
            device.python = None  # a package may be gone
        require_answer(done, self.good_codes, RECORDS, "records")
        run = folder / RUN
        self._alike.require(job, device.serial, run_identity(run))
        part = replace(
            done.part,
            delegate_lines=delegate_lines(f"{part_messages(run)}\n{done.err}"),
            figures=part_figures(run),
            lost=tuple(self._losses.get(job, ())),
        )
        self._kept.keep(job, KeptPart(part, device.facts))
        self._report(job, self._finished(job))
        return done

    def _lose(self, job: Job, attempt: LostAttempt) -> None:
        """Its examples are to be done again."""
        self._report(job, PartProgress(0))
        self._losses.setdefault(job, []).append(attempt)

    def _report(self, job: Job, progress: PartProgress) -> None:
        self._progress[job] = progress
        parts = list(self._progress.values())
        failed: Counter[str] = Counter()
        for part in parts:
            failed.update(part.failed)
        done, failed_examples = sum(part.done for part in parts), sum(part.failed_examples for part in parts)
        self._on_progress(Tally(done, failed_examples, dict(failed)))

    def _finished(self, job: Job) -> PartProgress:
        """Of a part that is done: as many examples failed as for the configuration with the most failures, at least."""
        failed = {figures.configuration: figures.failed for figures in self._kept.read(job).part.figures}
        return PartProgress(self._size_of(job), max(failed.values(), default=0), failed)

    def work(self, job: Job) -> PartWork:
        """What one part sends to a device, and what it fetches."""
        request, sent, shard = self.on_devices, self._sent, Shard(job.index, self._kept.count)
        if shard.count > 1:
            request = request.stating(shard_index=shard.index, shard_count=shard.count)
        pictures = {
            pictures_on_device(option): SentFolder(
                folder, self._examples.pictures_of(option, shard), self._names[option]
            )
            for option, folder in sent.pictures.items()
        }
        return PartWork(
            index=shard.index,
            count=shard.count,
            examples=self._size_of(job),
            request=to_bytes(request),
            files=sent.files,
            folders={**pictures, **sent.whole_folders},
            results=(RECORDS, _WHOLE) if self.is_whole else (RECORDS,),
            records_only=not self.is_whole,
        )

    def finished(
        self, jobs: Sequence[Job], left_out: Sequence[DeviceLeftOut], host: tuple[RunAtPlace, ...] = ()
    ) -> FinishedShards:
        """The finished parts ``jobs``, and the run on the ``host``; :attr:`merge_request` makes a result of them."""
        kept = self._kept
        found = [kept.read(job) for job in jobs]
        device_run = device_run_of(
            "evaltools",
            SPLIT_EACH if self._is_each else "pool",
            (entry.device for entry in found),
            [entry.part for entry in found],
            left_out,
        )
        repeated = flags_to_repeat(self.on_devices.options)
        places = host + tuple(
            RunAtPlace(tuple(kept.of(job) / RUN for job in jobs if job.serial == serial), serial, repeated)
            for serial in dict.fromkeys(job.serial for job in jobs)
        )
        whole = _result_of_device(kept.of(jobs[0]) / _WHOLE, self._request) if self.is_whole else None
        host_names = self._sent.host_names(_REFERENCE_ON_HOST if self._is_against_host else "")
        return FinishedShards(places, device_run, self._request.command, whole, host_names)


def _result_of_device(path: Path, request: Request) -> EvaluationResult:
    """The whole result that a device wrote, with the model's name on the host, and the environment of the host."""
    result = read_result(path)
    own = result.environment
    return replace(
        result,
        model=replace(result.model, file=request.options.text("model_file")),
        environment=describe_environment(own.command, own.started_at, own.elapsed_s, load=own.load),
    )

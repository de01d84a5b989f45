"""An evaluation on devices with evaltools itself: its parts are done there, and their records fetched."""

from __future__ import annotations

import shlex
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Final

from rich.console import Console

from evaltools.device.adb.errors import NoSuchDevice
from evaltools.device.files.archive import write_manifest
from evaltools.device.files.store import sha256_of
from evaltools.device.programs.part import PartDone, PartWork, PictureFolder
from evaltools.device.programs.pool import Job, PoolOutcome
from evaltools.device.run.devices import DevicesUsed
from evaltools.device.run.flags import DeviceFlags
from evaltools.device.run.host import run_here
from evaltools.device.run.jobs import SPLIT_EACH, complete_jobs, device_run_of, jobs_of, parts_of
from evaltools.device.run.parts import RECORDS, RUN, WITH_RECORDS, PartsFolder, run_parts
from evaltools.device.run.request import DeviceRequest, device_request, pictures_there, without_host_options
from evaltools.engine import Journal, Shard
from evaltools.engine.run_folder import (
    REQUEST,
    RunIdentity,
    decode,
    digest,
    encode,
    require_same_run,
    run_folder,
    run_journal,
)
from evaltools.errors import UsageError
from evaltools.exit_codes import EXAMPLES_FAILED, LIMIT_BROKEN, OK
from evaltools.report.files.planned import planned_files
from evaltools.request import Request
from evaltools.request.plain import to_plain
from evaltools.result.device_run import HOST, DeviceLeftOut
from evaltools.result.environment import describe_environment
from evaltools.result.evaluation import EvaluationResult
from evaltools.result_file import read_result
from evaltools.runs.finished_shards import FinishedShards
from evaltools.runs.stored import to_bytes
from evaltools.tasks.shared.kind import EvaluationKind, PartsOfTask, evaluation_kind
from evaltools.tasks.shared.measuring import Observer
from evaltools.tasks.shared.options.execution import flags_to_repeat
from evaltools.tasks.shared.run_identity import RunAtPlace, files_below, with_files

_PARTS: Final = "parts on devices"
_SERIALS: Final = "devices that do everything"
_WHOLE: Final = "result.json"
_REFERENCE: Final = "reference"
_REFERENCE_HERE: Final = "that of the reference run on this computer"


@dataclass(frozen=True)
class MergedParts:
    """Parts that are done: ``merging`` is the request that makes the result of these ``shards``.

    ``are_all``: no part is missing.
    """

    merging: Request
    shards: FinishedShards
    are_all: bool


@contextmanager
def parts_on_devices(request: Request, own: DeviceFlags, console: Console, observer: Observer) -> Iterator[MergedParts]:
    """Run the parts, whose records are there inside the context.

    Raises :class:`UsageError` for flags that make no sense together, and :class:`DeviceError` where devices have not
    done the parts that a result needs.
    """
    started_at, clock = datetime.now(timezone.utc).isoformat(timespec="seconds"), time.perf_counter()
    kind, run_dir = evaluation_kind(request.task), request.options.path("run_dir")
    there = device_request(request, own.root)
    examples = examples_of(kind, request)
    _require_sense(kind, request, own, examples)
    with run_folder(run_dir) as folder, run_journal(folder) as journal:
        plan, tried = _try_all(kind, request, own, there, examples, folder, journal, console, observer)
        complete = complete_jobs(tried.jobs, tried.done, tried.outcome, _step(run_dir))
        shards = plan.finished(complete, tried)
        shards = replace(shards, started_at=started_at, elapsed_s=round(time.perf_counter() - clock, 3))
        yield MergedParts(plan.merging, shards, len(complete) == len(tried.jobs))


def examples_of(kind: EvaluationKind, request: Request) -> PartsOfTask:
    """Read and check model, data and files here, before anything is sent; raises :class:`UsageError` and its kinds."""
    asked = kind.read(request)
    files = planned_files(request, kind.files_read(asked))
    kind.more_files(request, asked, files.values())
    return kind.parts(asked)


@dataclass(frozen=True)
class _BegunRun:
    """How a run began: ``count`` parts, and with ``--split=each`` the devices that do everything."""

    count: int
    serials: tuple[str, ...] = ()

    def jobs(self, split: str) -> list[Job]:
        """All parts."""
        return jobs_of(split, self.serials, self.count)


def _read_begun(journal: Journal[object], own: DeviceFlags, there: DeviceRequest) -> _BegunRun | None:
    """How the run in a folder began, None where it is new; raises :class:`UsageError` for the folder of another run."""
    count = int(journal.fact(_PARTS) or 0)
    require_same_run(journal, _identity(own, there), begun=bool(count))
    if not count:
        return None
    parts = own.parts
    if parts and parts != count:
        raise UsageError(f"--parts={parts}: the run in {journal.folder} began with {count}; leave the flag out")
    serials: list[str] = decode(journal.fact(_SERIALS) or "[]", list[str], journal.folder)
    return _BegunRun(count, tuple(serials))


def _write_begun(
    journal: Journal[object], request: Request, run: _BegunRun, serials: Sequence[str], is_new: bool
) -> _BegunRun:
    """Write down that a run begins, or goes on, with the devices that do everything; those that began it stay."""
    together = tuple(dict.fromkeys((*run.serials, *serials)))
    facts = {_SERIALS: encode(list(together))}
    if is_new:
        facts |= {_PARTS: str(run.count), REQUEST: encode(to_plain(request))}
    journal.state(facts)
    return replace(run, serials=together)


def _identity(own: DeviceFlags, there: DeviceRequest) -> RunIdentity:
    """Of files by their content: it stands in the paths that they have on devices."""
    folders = [path for below in there.folders.values() for path in files_below([below])]
    found = RunIdentity(
        {
            "the executor": "devices",
            "the task": there.request.task,
            "the files": digest([*there.files.values(), *map(sha256_of, folders)]),
        },
        options={"--split": own.split, "--taskset": own.taskset, **flags_to_repeat(there.request.options)},
        configurations={each.name: {"its setting": " ".join(each.to_flags())} for each in there.request.configurations},
    )
    for option, pictures in there.pictures.items():
        found = with_files(found, f"the files of --{option}", files_below([pictures]))
    return found


@dataclass(frozen=True)
class _Tried:
    """All parts, where those lie that are done, what happened meanwhile, and what this computer did itself."""

    jobs: list[Job]
    kept: PartsFolder
    outcome: PoolOutcome[PartDone]
    host: tuple[RunAtPlace, ...]

    @property
    def done(self) -> list[Job]:
        return [job for job in self.jobs if self.kept.is_done(job)]


def _try_all(
    kind: EvaluationKind,
    request: Request,
    own: DeviceFlags,
    there: DeviceRequest,
    examples: PartsOfTask,
    folder: Path,
    journal: Journal[object],
    console: Console,
    observer: Observer,
) -> tuple[_DeviceEvaluation, _Tried]:
    """Begin the run, or go on with it; without devices where all its parts are done."""
    is_each = own.split == SPLIT_EACH
    run = _read_begun(journal, own, there)
    is_done = run is not None and all(map(PartsFolder(folder, run.count).is_done, run.jobs(own.split)))
    with (
        tempfile.TemporaryDirectory(prefix="evaltools-") as temporary,
        nullcontext() if is_done else DevicesUsed(own, console) as devices,
    ):
        if devices is not None:
            opened = run or _BegunRun(_parts_wanted(kind, own, examples, len(devices.serials)))
            run = _write_begun(journal, request, opened, devices.serials if is_each else (), is_new=run is None)
        assert run is not None
        against = _against_here(kind, request, folder) if is_each else None
        if against is not None:
            request, there = against, device_request(against, own.root)
        manifests = _manifests(Path(temporary), there)
        plan = _DeviceEvaluation(kind, request, there, examples, run.count, manifests, is_each, against is not None)
        host = (plan.here(folder, console),) if own.include_host else ()
        tried = _Tried(run.jobs(own.split), PartsFolder(folder, run.count), PoolOutcome(), host)
        if devices is None:
            return plan, tried
        count = run.count
        outcome = run_parts(
            tried.jobs, count, examples.count, plan.work, tried.kept, devices, kind, console, observer, plan.good_codes
        )
        outcome.left_out[:0] = _absent(tried.jobs, tried.kept, devices)
        return plan, replace(tried, outcome=outcome)


def _against_here(kind: EvaluationKind, request: Request, folder: Path) -> Request | None:
    """The request that holds places against outputs of this computer, in ``folder``; None where a task does not.

    Raises :class:`UsageError` where they cannot be computed.
    """
    saved, unfinished = folder / _REFERENCE, folder / f"{_REFERENCE}.part"
    saving = kind.saving_reference(request, unfinished)
    if saving is None:
        return None
    if not saved.is_dir():
        shutil.rmtree(unfinished, ignore_errors=True)
        run_here(saving, (OK, LIMIT_BROKEN, EXAMPLES_FAILED))
        unfinished.rename(saved)
    return kind.against_saved(request, saved)


def _parts_wanted(kind: EvaluationKind, own: DeviceFlags, examples: PartsOfTask, devices: int) -> int:
    if examples.in_one_part or (kind.whole_run_option and not own.parts):
        return 1
    return parts_of(examples.count, own.parts, 1 if own.split == SPLIT_EACH else devices)


def _absent(jobs: Sequence[Job], kept: PartsFolder, devices: DevicesUsed) -> list[DeviceLeftOut]:
    """The devices that began this run, have not done all of it, and cannot be used now."""
    known = {*devices.serials, *(entry.serial for entry in devices.left_out)}
    away = dict.fromkeys(job.serial for job in jobs if job.serial not in known and not kept.is_done(job))
    reason = "began this run and is not among the devices now: connect it, name it in --serials, then resume the run"
    return [DeviceLeftOut(serial, NoSuchDevice.kind, f"{serial} {reason}") for serial in away if serial]


def _step(run_dir: Path | None) -> str:
    if run_dir is None:
        return " and are lost; --run_dir=FOLDER keeps such parts"
    return f"; evaltools resume {shlex.quote(str(run_dir))} goes on"


def _require_sense(kind: EvaluationKind, request: Request, own: DeviceFlags, examples: PartsOfTask) -> None:
    """Raise :class:`UsageError` for flags that have no effect together, or none on devices."""
    whole = kind.whole_run_option
    if examples.in_one_part and own.parts > 1:
        raise UsageError(
            f"--parts={own.parts}: every run depends on those before it, so there is one part; leave it out"
        )
    if own.split != SPLIT_EACH and own.parts > 1 and whole and whole in request.options:
        raise UsageError(
            f"--{whole} has no effect on several parts: the yardsticks are those of a device that does all; leave out "
            "one of it and --parts"
        )


@dataclass(frozen=True)
class _DeviceEvaluation:
    """What devices are to do, and what this computer makes of it."""

    kind: EvaluationKind
    request: Request
    there: DeviceRequest
    examples: PartsOfTask
    count: int
    manifests: Mapping[str, Path]
    each: bool
    is_against_here: bool

    @property
    def is_whole(self) -> bool:
        """Whether a device gives the whole result: what only a whole run measures is that of the device."""
        return bool(self.kind.whole_run_option) and not self.each and self.count == 1

    @property
    def good_codes(self) -> tuple[int, ...]:
        """The exit codes of a run with records; without limits 1 is a crash of Python."""
        return (*WITH_RECORDS, LIMIT_BROKEN) if self.kind.has_limits else WITH_RECORDS

    @property
    def on_devices(self) -> Request:
        """What devices do in all parts; a part adds which it is."""
        return self._without_host_work(without_host_options(self.there.request)).stating(run_dir=RUN, progress="json")

    def _without_host_work(self, request: Request) -> Request:
        """The request without what is done on this computer, once for all parts."""
        if self.is_whole:
            name = self.kind.whole_run_option
            stated = {name: self.request.options.value(name)} if name in self.request.options else {}
            return request.stating(**stated, output_file_path=_WHOLE)
        parameters = request.options.parameters.values()
        return request.stating(**{each.name: each.in_parts for each in parameters if each.in_parts is not None})

    @property
    def merging(self) -> Request:
        """What makes the result here. The outputs of one device say nothing about the CPU here."""
        whole = replace(self.request, devices=None).of_no_run()
        if not self.kind.whole_run_option or self.each or self.is_whole:
            return whole
        parameter = whole.options.parameters[self.kind.whole_run_option]
        return whole.stating(**{parameter.name: parameter.in_parts})

    def here(self, folder: Path, console: Console) -> RunAtPlace:
        """Everything done on this computer as well, in ``folder``, unless an earlier run did it."""
        console.print("on this computer first ...", style="dim")
        request = self._without_host_work(without_host_options(self.request))
        run_dir = folder / HOST
        run_here(request.stating(run_dir=run_dir, progress="none"), self.good_codes)
        return RunAtPlace((run_dir,), HOST, flags_to_repeat(request.options))

    def work(self, shard: Shard) -> PartWork:
        """A part."""
        request = self.on_devices
        if shard.count > 1:
            request = request.stating(shard_index=shard.index, shard_count=shard.count)
        return PartWork(
            index=shard.index,
            count=shard.count,
            examples=shard.size_of(self.examples.count),
            request=to_bytes(request),
            files=self.there.files,
            pictures={
                pictures_there(option): PictureFolder(
                    folder, self.examples.pictures_of(option, shard), self.manifests[option]
                )
                for option, folder in self.there.pictures.items()
            },
            folders=self.there.folders,
            results=(RECORDS, _WHOLE) if self.is_whole else (RECORDS,),
        )

    def finished(self, jobs: Sequence[Job], tried: _Tried) -> FinishedShards:
        """The parts that are done, to be merged by :attr:`merging`."""
        kept = tried.kept
        found = [kept.read(job) for job in jobs]
        device_run = device_run_of(
            "evaltools",
            SPLIT_EACH if self.each else "pool",
            (entry.device for entry in found),
            [entry.part for entry in found],
            tried.outcome.left_out,
        )
        repeated = flags_to_repeat(self.on_devices.options)
        places = tried.host + tuple(
            RunAtPlace(tuple(kept.of(job) / RUN for job in jobs if job.serial == serial), serial, repeated)
            for serial in dict.fromkeys(job.serial for job in jobs)
        )
        whole = _result_of_device(kept.of(jobs[0]) / _WHOLE, self.request) if self.is_whole else None
        names_here = self.there.names_here(_REFERENCE_HERE if self.is_against_here else "")
        return FinishedShards(places, device_run, self.request.command, whole, names_here)


def _result_of_device(path: Path, request: Request) -> EvaluationResult:
    """The whole result that a device wrote, with the model's name and the environment of this computer."""
    result = read_result(path)
    own = result.environment
    return replace(
        result,
        model=replace(result.model, file=request.options.text("model_file")),
        environment=describe_environment(own.command, own.started_at, own.elapsed_s),
    )


def _manifests(folder: Path, there: DeviceRequest) -> dict[str, Path]:
    """The names and sizes of all files in the folders of pictures, in a file per folder."""
    manifests = {}
    for flag, pictures in there.pictures.items():
        manifests[flag] = folder / f"{flag}.json"
        write_manifest(manifests[flag], pictures, sorted(path for path in pictures.iterdir() if path.is_file()))
    return manifests

"""An evaluation on devices with evaltools itself: devices do its parts, and their records are fetched."""

from __future__ import annotations

import shlex
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace
from rich.console import Console

from evaltools.device.devices import DevicesUsed
from evaltools.device.flags import DeviceFlags
from evaltools.device.part import PartDone, PartWork, PictureFolder
from evaltools.device.parts import RECORDS, RUN, WITH_RECORDS, MissingParts, PartsFolder
from evaltools.device.pool import SPLIT_EACH, Job, PoolOutcome, complete_jobs, device_run_of, jobs_of, parts_of
from evaltools.device.python_program import Pythons
from evaltools.device.request import (
    DeviceRequest,
    carry_out_on_host,
    device_request,
    pictures_on_device,
    without_host_options,
)
from evaltools.device.store import stored_folder
from evaltools.device.transfer import sha256_of
from evaltools.engine.execution import Shard
from evaltools.engine.journal import Journal
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
from evaltools.exit_codes import EXAMPLES_FAILED, LIMIT_BROKEN, OK
from evaltools.report.files.evaluation import planned_files
from evaltools.request import Request
from evaltools.request.plain import to_plain
from evaltools.result.device_run import HOST, DeviceLeftOut
from evaltools.result.environment import describe_environment
from evaltools.result.evaluation import EvaluationResult
from evaltools.result_file import read_result
from evaltools.runs.finished_shards import FinishedShards
from evaltools.runs.stored import to_bytes
from evaltools.tasks.shared.declared import DeclaredTask, declared_task
from evaltools.tasks.shared.evaluation import Evaluation, Observer
from evaltools.tasks.shared.merging import RunAtPlace, files_below, with_files
from evaltools.tasks.shared.request import flags_to_repeat

_PARTS: Final = "parts on devices"
_SERIALS: Final = "devices that do everything"
_WHOLE: Final = "result.json"
_REFERENCE: Final = "reference"
_REFERENCE_ON_HOST: Final = "that of the reference run on this computer"


class MergedParts(Struct, frozen=True):
    """The parts that are done, as ``shards``; ``merge_request`` is the request that makes the result of them.

    ``are_all``: no part is missing.
    """

    merge_request: Request
    shards: FinishedShards
    are_all: bool


@contextmanager
def parts_on_devices(
    request: Request, flags: DeviceFlags, console: Console, observer: Observer
) -> Iterator[MergedParts]:
    """A context that runs the parts on entry; their records can be read until it ends.

    Raises :class:`UsageError` for flags that make no sense together, and :class:`DeviceError` where devices have not
    done the parts that a result needs.
    """
    started_at, clock = datetime.now(timezone.utc).isoformat(timespec="seconds"), time.perf_counter()
    kind, run_dir = declared_task(request.task), request.options.path("run_dir")
    sent = device_request(request, flags.root, flags.libraries)
    examples = examples_of(kind, request)
    _require_sense(kind, request, flags, examples)
    pythons = Pythons(flags, console)
    with run_folder(run_dir) as folder, run_journal(folder) as journal:
        begun = _Begun.read(journal, flags, identity_of(flags, sent))
        is_done = begun.count > 0 and all(map(PartsFolder(folder, begun.count).is_done, begun.jobs(flags.split)))
        with (
            tempfile.TemporaryDirectory(prefix="evaltools-") as temporary,
            nullcontext() if is_done else DevicesUsed(flags, console) as devices,
        ):
            if devices is not None:
                serials = devices.serials if flags.split == SPLIT_EACH else ()
                count = begun.count or _parts_wanted(kind, flags, examples, len(devices.serials))
                begun = begun.write(journal, request, count, serials)
            against_host = _against_host_outputs(kind, request, folder) if flags.split == SPLIT_EACH else None
            if against_host is not None:
                request, sent = against_host, device_request(against_host, flags.root, flags.libraries)
            run = DeviceEvaluation(
                kind=kind,
                request=request,
                sent=sent,
                examples=examples,
                jobs=begun.jobs(flags.split),
                kept=PartsFolder(folder, begun.count),
                manifests=sent.manifests(Path(temporary)),
                pythons=pythons,
                is_each=flags.split == SPLIT_EACH,
                is_against_host=against_host is not None,
            )
            if flags.include_host:
                run = replace(run, host=(run.run_on_host(folder, console),))
            outcome = PoolOutcome[PartDone]() if devices is None else run.run(devices, console, observer)
        done = [job for job in run.jobs if run.kept.is_done(job)]
        complete = complete_jobs(run.jobs, done, outcome, _step(run_dir))
        shards = run.finished(complete, outcome.left_out)
        shards = replace(shards, started_at=started_at, elapsed_s=round(time.perf_counter() - clock, 3))
        yield MergedParts(run.merge_request, shards, len(complete) == len(run.jobs))


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


class _Begun(Struct, frozen=True):
    """How a run was begun: in ``count`` parts, 0 for one that is new, and with ``--split=each`` on ``serials``.

    A run that is resumed keeps its count, and its devices beside those that it has now.
    """

    identity: RunIdentity
    count: int
    serials: tuple[str, ...]

    def jobs(self, split: str) -> list[Job]:
        """All parts."""
        return jobs_of(split, self.serials, self.count)

    @classmethod
    def read(cls, journal: Journal, flags: DeviceFlags, identity: RunIdentity) -> _Begun:
        """What the journal states.

        Raises :class:`UsageError` for that of another run, and for another ``--parts`` than the run has.
        """
        count = int(journal.fact(_PARTS) or 0)
        require_same_run(journal, identity, has_begun=bool(count))
        if count and flags.parts not in (0, count):
            raise UsageError(
                f"--parts={flags.parts}: the run in {journal.folder} began with {count}; leave the flag out"
            )
        serials: list[str] = decode(journal.fact(_SERIALS) or "[]", list[str], journal.folder)
        return cls(identity, count, tuple(serials))

    def write(self, journal: Journal, request: Request, count: int, serials: Sequence[str]) -> _Begun:
        """Write to the journal how the run goes on, and return that."""
        together = tuple(dict.fromkeys((*self.serials, *serials)))
        facts = {_SERIALS: encode(list(together)), _PARTS: str(count)}
        if not self.count or not has_own_request(journal):
            facts |= request_facts(to_plain(request), self.identity)
        journal.state(facts)
        return replace(self, count=count, serials=together)


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
            f"--{whole} has no effect on several parts: the noise floor are those of a device that does all; leave out "
            "one of it and --parts"
        )


class DeviceEvaluation(Struct, frozen=True):
    """What is sent to devices, and how the host makes a result of their parts.

    ``jobs`` are all parts, ``kept`` is the folder with those that are done, ``host`` the run on the host, if one was
    asked for. ``is_each``: every device does everything. ``is_against_host``: it is compared with outputs of the host.
    """

    kind: DeclaredTask
    request: Request
    sent: DeviceRequest
    examples: Evaluation[Any]
    jobs: list[Job]
    kept: PartsFolder
    manifests: Mapping[str, Path]
    pythons: Pythons
    is_each: bool
    is_against_host: bool
    host: tuple[RunAtPlace, ...] = ()

    @property
    def is_whole(self) -> bool:
        """Whether one device does all examples, so that it also measures what only a whole run can measure."""
        return bool(self.kind.whole_run_option) and not self.is_each and self.kept.count == 1

    @property
    def good_codes(self) -> tuple[int, ...]:
        """The exit codes of a run that leaves records.

        1 is a broken limit; in a task without limits, a crash of Python.
        """
        return (*WITH_RECORDS, LIMIT_BROKEN) if self.kind.has_limits else WITH_RECORDS

    @property
    def on_devices(self) -> Request:
        """The request that is sent for every part; :meth:`work` adds which part it is."""
        return self._without_host_work(without_host_options(self.sent.request)).stating(run_dir=RUN, progress="json")

    def _without_host_work(self, request: Request) -> Request:
        """The request without what the host does once for all parts."""
        if self.is_whole:
            name = self.kind.whole_run_option
            stated = {name: self.request.options.value(name)} if name in self.request.options else {}
            return request.stating(**stated, output_file_path=_WHOLE)
        return request.in_parts()

    @property
    def merge_request(self) -> Request:
        """The request by which the host makes the result of the parts.

        It leaves out what only a whole run measures, where devices share the examples: the host would measure that on
        its own CPU, which says nothing about a device's outputs.
        """
        whole = replace(self.request, devices=None).of_no_run()
        if not self.kind.whole_run_option or self.is_each or self.is_whole:
            return whole
        parameter = whole.options.parameters[self.kind.whole_run_option]
        return whole.stating(**{parameter.name: parameter.in_parts})

    def run_on_host(self, folder: Path, console: Console) -> RunAtPlace:
        """Do everything on the host as well, in a folder below ``folder``.

        Finished by an earlier command, it is kept.
        """
        console.print("on this computer first ...", style="dim")
        request = self._without_host_work(without_host_options(self.request))
        run_dir = folder / HOST
        carry_out_on_host(request.stating(run_dir=run_dir, progress="none"), self.good_codes)
        return RunAtPlace((run_dir,), HOST, flags_to_repeat(request.options))

    def run(self, devices: DevicesUsed, console: Console, observer: Observer) -> PoolOutcome[PartDone]:
        """Do the parts that are missing, as far as the devices can; the ``observer`` is shown their progress."""
        size, count = self.examples.example_count, self.kept.count
        with observer.progress(
            "on devices", sum(Shard(job.index, count).size_of(size) for job in self.jobs)
        ) as on_progress:
            missing = MissingParts(
                self.kind, self.pythons, self.jobs, self.kept, size, self.work, self.good_codes, on_progress
            )
            outcome = missing.run(devices, console)
        known = {*devices.serials, *(entry.serial for entry in devices.left_out)}
        away = dict.fromkeys(
            job.serial for job in self.jobs if job.serial not in known and job.serial and not self.kept.is_done(job)
        )
        outcome.left_out[:0] = [
            DeviceLeftOut(
                serial,
                f"{serial} began this run and is not among the devices now: connect it, name it in --serials, then "
                "resume the run",
            )
            for serial in away
        ]
        return outcome

    def work(self, shard: Shard) -> PartWork:
        """What one part sends to a device, and what it fetches."""
        request = self.on_devices
        if shard.count > 1:
            request = request.stating(shard_index=shard.index, shard_count=shard.count)
        return PartWork(
            index=shard.index,
            count=shard.count,
            examples=shard.size_of(self.examples.example_count),
            request=to_bytes(request),
            files=self.sent.files,
            pictures={
                pictures_on_device(option): PictureFolder(
                    folder, self.examples.pictures_of(option, shard), self.manifests[option]
                )
                for option, folder in self.sent.pictures.items()
            },
            folders=self.sent.folders,
            results=(RECORDS, _WHOLE) if self.is_whole else (RECORDS,),
            records_only=not self.is_whole,
        )

    def finished(self, jobs: Sequence[Job], left_out: Sequence[DeviceLeftOut]) -> FinishedShards:
        """The finished parts ``jobs``, which :attr:`merge_request` makes a result of."""
        kept = self.kept
        found = [kept.read(job) for job in jobs]
        device_run = device_run_of(
            "evaltools",
            SPLIT_EACH if self.is_each else "pool",
            (entry.device for entry in found),
            [entry.part for entry in found],
            left_out,
        )
        repeated = flags_to_repeat(self.on_devices.options)
        places = self.host + tuple(
            RunAtPlace(tuple(kept.of(job) / RUN for job in jobs if job.serial == serial), serial, repeated)
            for serial in dict.fromkeys(job.serial for job in jobs)
        )
        whole = _result_of_device(kept.of(jobs[0]) / _WHOLE, self.request) if self.is_whole else None
        host_names = self.sent.host_names(_REFERENCE_ON_HOST if self.is_against_host else "")
        return FinishedShards(places, device_run, self.request.command, whole, host_names)


def _result_of_device(path: Path, request: Request) -> EvaluationResult:
    """The whole result that a device wrote, with the model's name on the host, and the environment of the host."""
    result = read_result(path)
    own = result.environment
    return replace(
        result,
        model=replace(result.model, file=request.options.text("model_file")),
        environment=describe_environment(own.command, own.started_at, own.elapsed_s, load=own.load),
    )

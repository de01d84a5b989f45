"""``evaltools device run`` of an evaluation with evaltools itself: parts on devices, their records made one result."""

from __future__ import annotations

import shlex
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from types import ModuleType
from typing import Final

from rich.console import Console

from evaltools.cli.device_diff import against_host, result_of_device
from evaltools.cli.device_examples import TaskExamples, examples_of
from evaltools.cli.device_jobs import EACH, complete_jobs, device_run_of
from evaltools.cli.device_parts import RECORDS, RUN, WITH_RECORDS, Parts, PartsFolder
from evaltools.cli.device_run_flags import DeviceCommand
from evaltools.cli.device_run_folder import Begun, begin, begun
from evaltools.cli.device_words import DeviceWords, device_words, host_words
from evaltools.cli.devices_used import DevicesUsed
from evaltools.cli.evaluate.output import interrupts_restored
from evaltools.cli.flags import GivenFlags, parse_flags
from evaltools.cli.host_run import run_here
from evaltools.cli.terminal import make_console
from evaltools.device.archive import write_manifest
from evaltools.device.errors import NoSuchDevice
from evaltools.device.part import PartDone, PartWork, PictureFolder
from evaltools.device.pool import Job, PoolOutcome
from evaltools.device.store import new_mark
from evaltools.engine import Journal, Shard
from evaltools.engine.run_folder import run_journal
from evaltools.errors import UsageError
from evaltools.exit_codes import EXAMPLES_FAILED, LIMIT_BROKEN, NOT_MEASURED, OK
from evaltools.result.device_run import HOST, DeviceLeftOut
from evaltools.runs.finished_shards import FinishedShards
from evaltools.runs.names_here import NamesHere
from evaltools.tasks.shared.options.execution import flags_to_repeat
from evaltools.tasks.shared.run_identity import Place

_WHOLE: Final = "result.json"
_NOISE: Final = "noise_floor_runs"
_DIFFS: Final = ("inference-diff", "diff")
_REFERENCE_HERE: Final = "that of the reference run on this computer"


def run_on_devices(asked: DeviceCommand) -> int:
    """Run the parts, merge them; returns the exit code."""
    started_at, clock = datetime.now(timezone.utc).isoformat(timespec="seconds"), time.perf_counter()
    words = device_words(asked.flags, asked.own.root)
    examples = examples_of(asked.task, asked.flags)
    _require_sense(asked, examples)
    with (
        interrupts_restored(),
        _folder(asked.flags.path("run_dir")) as folder,
        run_journal(folder) as journal,
    ):
        plan, tried = _try_all(asked, words, examples, folder, journal)
        complete = complete_jobs(tried.jobs, tried.done, tried.outcome, _step(asked.flags.path("run_dir")))
        shards = plan.finished(complete, tried, asked.typed)
        shards = replace(shards, started_at=started_at, elapsed_s=round(time.perf_counter() - clock, 3))
        code: int = asked.module.run(plan.merging, shards)
    is_short = len(complete) < len(tried.jobs)
    return NOT_MEASURED if code in (OK, LIMIT_BROKEN, EXAMPLES_FAILED) and is_short else code


@dataclass(frozen=True)
class _Tried:
    """All parts, where those lie that are done, what happened meanwhile, and what this computer did itself."""

    jobs: list[Job]
    kept: PartsFolder
    outcome: PoolOutcome[PartDone]
    host: tuple[Place, ...]

    @property
    def done(self) -> list[Job]:
        return [job for job in self.jobs if self.kept.is_done(job)]


def _try_all(
    asked: DeviceCommand, words: DeviceWords, examples: TaskExamples, folder: Path, journal: Journal[object]
) -> tuple[_Plan, _Tried]:
    """Begin the run, or go on with it; without devices where all its parts are done."""
    own, flags, console = asked.own, asked.flags, make_console()
    run = begun(journal, asked, words)
    is_done = run is not None and all(map(PartsFolder(folder, run.count).is_done, run.jobs(own.split)))
    mark = new_mark() if run is None else run.mark
    with (
        tempfile.TemporaryDirectory(prefix="evaltools-") as temporary,
        nullcontext() if is_done else DevicesUsed(own, console, mark) as devices,
    ):
        if devices is not None:
            opened = run or Begun(_parts_wanted(asked, examples, len(devices.serials)), mark)
            run = begin(journal, asked, opened, devices.serials, is_new=run is None)
        assert run is not None
        if asked.task in _DIFFS and own.split == EACH:
            flags = against_host(flags, folder)
            words = device_words(flags, own.root)
        manifests = _manifests(Path(temporary), words)
        plan = _Plan(asked.task, asked.module, words, examples, run.count, manifests, own.split == EACH, flags)
        host = (plan.here(folder, console),) if own.include_host else ()
        tried = _Tried(run.jobs(own.split), PartsFolder(folder, run.count), PoolOutcome(), host)
        if devices is None:
            return plan, tried
        parts = Parts(tried.jobs, run.count, examples.count, plan.work, tried.kept, devices, console, plan.good_codes)
        outcome = parts.run(flags.text("progress"))
        outcome.left_out[:0] = [*devices.left_out, *_absent(tried.jobs, tried.kept, devices)]
        return plan, replace(tried, outcome=outcome)


def _parts_wanted(asked: DeviceCommand, examples: TaskExamples, devices: int) -> int:
    if asked.task in _DIFFS and not asked.own.parts:
        return 1
    return examples.parts(asked.own.parts, 1 if asked.own.split == EACH else devices)


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


def _require_sense(asked: DeviceCommand, examples: TaskExamples) -> None:
    """Raise :class:`UsageError` for flags that have no effect together, or none on devices."""
    parts = asked.own.parts
    if examples.in_one_part and parts > 1:
        raise UsageError(f"--parts={parts}: every run depends on those before it, so there is one part; leave it out")
    if asked.task in _DIFFS and asked.own.split != EACH and parts > 1 and _NOISE in asked.flags:
        raise UsageError(
            f"--{_NOISE} has no effect on several parts: the yardsticks are those of a device that does all; leave out "
            "one of it and --parts"
        )


@dataclass(frozen=True)
class _Plan:
    """What devices are told to do, and what becomes of it."""

    task: str
    module: ModuleType
    words: DeviceWords
    examples: TaskExamples
    count: int
    manifests: Mapping[str, Path]
    each: bool
    flags: GivenFlags

    @property
    def is_whole(self) -> bool:
        """Whether a device gives the whole result: an inference diff's yardsticks are those of the device."""
        return self.task in _DIFFS and not self.each and self.count == 1

    @property
    def good_codes(self) -> tuple[int, ...]:
        """The exit codes of a run with records; 1 is a broken limit of an inference diff, else a crash of Python."""
        return (*WITH_RECORDS, LIMIT_BROKEN) if self.task in _DIFFS else WITH_RECORDS

    @property
    def told(self) -> tuple[str, ...]:
        """The command for devices, without what tells parts apart."""
        return (self.task, *self.words.words, *self._once, f"--run_dir={RUN}", "--progress=json")

    @property
    def _once(self) -> list[str]:
        if self.is_whole:
            return [*(f"--{_NOISE}={text}" for text in self.flags.texts(_NOISE)), f"--output_file_path={_WHOLE}"]
        parameters = self.flags.parameters.values()
        return [each.format(each.in_parts) for each in parameters if each.in_parts is not None]

    @property
    def merging(self) -> list[str]:
        """The command that makes the result here."""
        left_out = {"run_dir"} | ({_NOISE} if self._without_noise else set())
        kept = [f"--{name}={text}" for name, text in self.flags.given if name not in left_out]
        return [*kept, f"--{_NOISE}=0"] if self._without_noise else kept

    @property
    def _without_noise(self) -> bool:
        """The outputs of one device say nothing about the CPU here."""
        return self.task in _DIFFS and not self.each and not self.is_whole

    def here(self, folder: Path, console: Console) -> Place:
        """Everything done on this computer as well, in ``folder``, unless an earlier run did it."""
        console.print("on this computer first ...", style="dim")
        words = [*host_words(self.flags), *self._once]
        run_dir = folder / HOST
        run_here([self.task, *words, f"--run_dir={run_dir}", "--progress=none"], self.good_codes)
        return Place((run_dir,), HOST, flags_to_repeat(parse_flags(self.task, "", "", self.module.GROUPS, words)))

    def work(self, shard: Shard) -> PartWork:
        """A part."""
        sharding = (f"--shard_index={shard.index}", f"--shard_count={shard.count}") if shard.count > 1 else ()
        return PartWork(
            index=shard.index,
            count=shard.count,
            examples=shard.size_of(self.examples.count),
            words=(*self.told, *sharding),
            files=self.words.files,
            pictures={
                flag: PictureFolder(folder, self.examples.pictures_of(flag, shard), self.manifests[flag])
                for flag, folder in self.words.pictures.items()
            },
            folders=self.words.folders,
            results=(RECORDS, _WHOLE) if self.is_whole else (RECORDS,),
        )

    def finished(self, jobs: Sequence[Job], tried: _Tried, command: tuple[str, ...]) -> FinishedShards:
        """Parts that are done, for the command that makes the result."""
        kept = tried.kept
        found = [kept.read(job) for job in jobs]
        split = EACH if self.each else "pool"
        device_run = device_run_of(
            "evaltools",
            split,
            (entry.device for entry in found),
            [entry.part for entry in found],
            tried.outcome.left_out,
        )
        repeated = flags_to_repeat(parse_flags(self.task, "", "", self.module.GROUPS, self.told[1:]))
        places = tried.host + tuple(
            Place(tuple(kept.of(job) / RUN for job in jobs if job.serial == serial), serial, repeated)
            for serial in dict.fromkeys(job.serial for job in jobs)
        )
        whole = result_of_device(kept.of(jobs[0]) / _WHOLE, self.flags.text("model_file")) if self.is_whole else None
        reference_here = _REFERENCE_HERE if self.task in _DIFFS and self.each else ""
        return FinishedShards(places, device_run, command, whole, self._names_here, reference_here=reference_here)

    @property
    def _names_here(self) -> NamesHere:
        """What files and folders are called here, by what they are called on devices."""
        found = {there: str(here) for here, there in self.words.files.items()}
        for there, here in self.words.pictures.items():
            found |= {f"pictures in {there}, ": f"pictures in {here}, ", f"'{there}/": f"'{here}/"}
        return NamesHere(found, {there: str(here) for there, here in self.words.folders.items()})


@contextmanager
def _folder(stated: Path | None) -> Iterator[Path]:
    if stated is not None:
        yield stated.resolve()
        return
    with tempfile.TemporaryDirectory(prefix="evaltools-") as folder:
        yield Path(folder)


def _manifests(folder: Path, words: DeviceWords) -> dict[str, Path]:
    """The names and sizes of all files in the folders of pictures, in a file per folder."""
    manifests = {}
    for flag, pictures in words.pictures.items():
        manifests[flag] = folder / f"{flag}.json"
        write_manifest(manifests[flag], pictures, sorted(path for path in pictures.iterdir() if path.is_file()))
    return manifests

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
from evaltools.cli.evaluation_output import interrupts_restored
from evaltools.cli.execution_flags import flags_to_repeat
from evaltools.cli.exit_codes import EXAMPLES_FAILED, LIMIT_BROKEN, NOT_MEASURED, OK
from evaltools.cli.finished_shards import FinishedShards
from evaltools.cli.flags import GivenFlags, parse_flags
from evaltools.cli.host_run import run_here
from evaltools.cli.names_here import NamesHere
from evaltools.cli.terminal import make_console
from evaltools.device.archive import write_manifest
from evaltools.device.errors import NoSuchDevice
from evaltools.device.part import PartDone, PartWork, PictureFolder, new_mark
from evaltools.device.pool import Job, PoolOutcome
from evaltools.engine import Shard
from evaltools.engine.run_folder import run_journal
from evaltools.errors import UsageError
from evaltools.report.device_run import HOST, DeviceLeftOut
from evaltools.report.diff_result import LOADED_FROM
from evaltools.tasks.run_identity import Place

_WHOLE: Final = "result.json"
_NOISE: Final = "noise_floor_runs"
_DIFFS: Final = ("inference-diff", "diff")
_ONCE: Final = {"imagenet": "--label_check=false", "coco": "--bootstrap_resamples=0"}
"""What is done once, here, and not by every part."""
_REFERENCE_HERE: Final = "that of the reference run on this computer"


def run_on_devices(asked: DeviceCommand) -> int:
    """Run the parts, merge them; returns the exit code."""
    task, flags, own = asked.task, asked.flags, asked.own
    console = make_console()
    started_at, clock = datetime.now(timezone.utc).isoformat(timespec="seconds"), time.perf_counter()
    each = own.split == EACH
    words = device_words(flags.given, own.root)
    examples = examples_of(task, flags)
    _require_sense(asked, examples)
    with (
        interrupts_restored(),
        _folder(flags.path("run_dir")) as folder,
        run_journal(folder) as journal,
        tempfile.TemporaryDirectory(prefix="evaltools-") as temporary,
    ):
        run = begun(journal, asked, words)
        is_done = run is not None and all(map(PartsFolder(folder, run.count).is_done, run.jobs(own.split)))
        mark = new_mark() if run is None else run.mark
        with nullcontext() if is_done else DevicesUsed(own, console, mark) as devices:
            if devices is not None:
                sharing = 1 if each else len(devices.serials)
                wanted = 1 if task in _DIFFS and not own.parts else examples.parts(own.parts, sharing)
                run = begin(journal, asked, run or Begun(wanted, mark), devices.serials, is_new=run is None)
            assert run is not None
            if task in _DIFFS and each:
                flags = against_host(flags, folder)
                words = device_words(flags.given, own.root)
            manifests = _manifests(Path(temporary), words)
            plan = _Plan(task, asked.module, words, examples, run.count, manifests, each, flags)
            host = (plan.here(folder, console),) if own.include_host else ()
            jobs, kept = run.jobs(own.split), PartsFolder(folder, run.count)
            outcome: PoolOutcome[PartDone] = PoolOutcome()
            if devices is not None:
                parts = Parts(jobs, run.count, examples.count, plan.work, kept, devices, console, plan.good_codes)
                outcome = parts.run(flags.text("progress"))
                outcome.left_out[:0] = [*devices.left_out, *_absent(jobs, kept, devices)]
        done = [job for job in jobs if kept.is_done(job)]
        complete = complete_jobs(jobs, done, outcome, _step(flags.path("run_dir")))
        shards = plan.finished(complete, kept, outcome, host, asked.typed)
        if flags is not asked.flags:
            made_here = {f"{LOADED_FROM}{flags.text('load_reference')}": _REFERENCE_HERE}
            shards = replace(shards, names_here=NamesHere({**shards.names_here.by_name_there, **made_here}))
        shards = replace(shards, started_at=started_at, elapsed_s=round(time.perf_counter() - clock, 3))
        code: int = asked.module.run(plan.merging, shards)
    return NOT_MEASURED if code in (OK, LIMIT_BROKEN, EXAMPLES_FAILED) and len(complete) < len(jobs) else code


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
    if "trace" in asked.flags:
        raise UsageError("--trace is of one process on one machine, so it has no effect on devices; leave it out")
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
        return [_ONCE[self.task]] if self.task in _ONCE else [f"--{_NOISE}=0"]

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
        words = [*host_words(self.flags.given), *self._once]
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

    def finished(
        self,
        jobs: Sequence[Job],
        kept: PartsFolder,
        outcome: PoolOutcome[PartDone],
        host: tuple[Place, ...],
        command: tuple[str, ...],
    ) -> FinishedShards:
        """Parts that are done, for the command that makes the result."""
        found = [kept.read(job) for job in jobs]
        split = EACH if self.each else "pool"
        device_run = device_run_of(
            "evaltools", split, (entry.device for entry in found), [entry.part for entry in found], outcome.left_out
        )
        repeated = flags_to_repeat(parse_flags(self.task, "", "", self.module.GROUPS, self.told[1:]))
        places = host + tuple(
            Place(tuple(kept.of(job) / RUN for job in jobs if job.serial == serial), serial, repeated)
            for serial in dict.fromkeys(job.serial for job in jobs)
        )
        whole = result_of_device(kept.of(jobs[0]) / _WHOLE, self.flags.text("model_file")) if self.is_whole else None
        return FinishedShards(places, device_run, command, whole, self._names_here)

    @property
    def _names_here(self) -> NamesHere:
        """What files and folders are called here, by what they are called on devices."""
        found = {there: str(here) for here, there in self.words.files.items()}
        for there, here in self.words.pictures.items():
            found |= {f"pictures in {there}, ": f"pictures in {here}, ", f"'{there}/": f"'{here}/"}
        for there, here in self.words.folders.items():
            found[f"{LOADED_FROM}{there}"] = f"{LOADED_FROM}{here}"
        return NamesHere(found)


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

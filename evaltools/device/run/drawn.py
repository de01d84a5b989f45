"""Drawn examples on devices: the reference runs here, devices get the examples that are drawn, part by part."""

from __future__ import annotations

import shlex
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import datetime, timezone
from pathlib import Path

from msgspec.structs import replace
from rich.console import Console

from evaltools.device.programs.part import PartWork
from evaltools.device.programs.pool import Job
from evaltools.device.run.devices import DevicesUsed
from evaltools.device.run.evaluation import DeviceEvaluation, examples_of
from evaltools.device.run.flags import DeviceFlags
from evaltools.device.run.jobs import complete_jobs, device_run_of
from evaltools.device.run.parts import RUN, WITH_RECORDS, EvaltoolsProgram, PartsFolder
from evaltools.device.run.request import device_request
from evaltools.device.run.runner import run_jobs
from evaltools.engine.execution import Shard
from evaltools.engine.journal import Journal
from evaltools.engine.run_folder import RunIdentity, journals_of
from evaltools.engine.task import Example
from evaltools.errors import UsageError
from evaltools.request import Request
from evaltools.result.device_run import DeviceLeftOut
from evaltools.result.evaluation import ConfigurationResult, EvaluationResult
from evaltools.runs.finished_shards import FinishedShards
from evaltools.tasks.shared.kind import EvaluationKind, PartsOfTask, evaluation_kind
from evaltools.tasks.shared.options.sampling import SAMPLING
from evaltools.tasks.shared.run_identity import described_in


@contextmanager
def drawn_on_devices(request: Request, flags: DeviceFlags, console: Console) -> Iterator[DrawnOnDevices]:
    """A context in which devices run the tests on examples that are drawn.

    Raises :class:`UsageError` for flags that make no sense together. Devices are looked at when they get their first
    part; one that is needed and cannot be used raises :class:`DeviceError`.
    """
    _require_sense(request, flags)
    kind = evaluation_kind(request.task)
    examples = examples_of(kind, request)
    with ExitStack() as held:
        temporary = Path(held.enter_context(tempfile.TemporaryDirectory(prefix="evaltools-")))
        yield DrawnOnDevices(kind, request, flags, examples, temporary, held, console)


def _require_sense(request: Request, flags: DeviceFlags) -> None:
    """Raise :class:`UsageError` for flags that have no effect on drawn examples, or none together."""
    if flags.split == "each" or flags.include_host:
        raise UsageError(
            "--sample=informed on devices: the reference runs on this computer, the tests on devices that share the "
            "examples; leave --split and --include_host out"
        )
    if flags.parts:
        raise UsageError(f"--parts={flags.parts}: drawn examples make a part each time; leave it out")
    if request.options.number("latency_examples") != -1:
        raise UsageError(
            "--latency_examples: on devices, the latency of a run with --sample=informed is that of all drawn "
            "examples; leave it out"
        )


class DrawnOnDevices:
    """The tests of an evaluation on devices: its :class:`~evaltools.tasks.shared.sampled.elsewhere.OtherMachines`.

    Parts have one worker each. The first ones, one for each device, have no example, and say what the tests run on
    there. What devices did lies in the run folder, or in ``temporary`` where there is none.
    """

    def __init__(
        self,
        kind: EvaluationKind,
        request: Request,
        flags: DeviceFlags,
        examples: PartsOfTask,
        temporary: Path,
        held: ExitStack,
        console: Console,
    ) -> None:
        self._kind, self._request, self._flags, self._examples = kind, request, flags, examples
        self._temporary, self._held, self._console = temporary, held, console
        self._run_dir = request.options.path("run_dir")
        self._count = 2 * examples.count
        self._kept = PartsFolder(self._run_dir or temporary / RUN, self._count)
        self._shards: dict[int, Shard] = {}
        self._left_out: list[DeviceLeftOut] = []
        self._devices: DevicesUsed | None = None
        self._plan: DeviceEvaluation | None = None
        self._started_at = datetime.now(timezone.utc).isoformat(timespec="seconds")
        self._clock = time.perf_counter()

    def describe(self, _identity: RunIdentity, beside_reference: bool, journal: Journal) -> list[ConfigurationResult]:
        """What the tests run on there: parts without examples say it before the reference begins."""
        names = [parameter.name for parameter in SAMPLING]
        request = replace(self._request, reference=self._request.reference if beside_reference else None)
        request = request.without(*names).stating(workers="1")
        sent = device_request(request, self._flags.root)
        manifests = sent.manifests(self._temporary)
        self._plan = DeviceEvaluation(
            self._kind, request, sent, self._examples, self._count, manifests, is_each=False, is_against_host=False
        )
        if not self._done():
            devices = min(len(self._used().serials), self._examples.count)
            self._do({Job(number): () for number in range(devices)})
        for job in self._done():
            self._take(job, journal)
        with journals_of([self._kept.of(self._done()[0]) / RUN]) as (opened,):
            return [entry for entry in described_in(opened) if entry.role == "test"]

    def run(self, examples: Sequence[Example], journal: Journal) -> None:
        """Have the examples done; raises :class:`DeviceError`."""
        missing = [example.index for example in examples]
        devices = self._used()
        first = max(job.index for job in self._done()) + 1
        each = -(-len(missing) // len(devices.serials))
        chunks = [tuple(missing[start : start + each]) for start in range(0, len(missing), each)]
        jobs = {Job(first + place): chunk for place, chunk in enumerate(chunks)}
        self._do(jobs)
        for job in jobs:
            self._take(job, journal)

    def complete(self, result: EvaluationResult) -> EvaluationResult:
        """The result with the devices, and with the host's names of files."""
        assert self._plan is not None
        kept = [done for job in self._done() if (done := self._kept.read(job)).part.examples]
        shards = FinishedShards(
            places=(),
            device_run=device_run_of(
                "evaltools", "pool", (entry.device for entry in kept), [entry.part for entry in kept], self._left_out
            ),
            command=self._request.command,
            host_names=self._plan.sent.host_names(),
            started_at=self._started_at,
            elapsed_s=round(time.perf_counter() - self._clock, 3),
        )
        return self._kind.with_host_names(shards.complete(result, self._request.configurations), shards.host_names)

    def _done(self) -> list[Job]:
        return [job for job in map(Job, range(self._count)) if self._kept.is_done(job)]

    def _used(self) -> DevicesUsed:
        if self._devices is None:
            self._devices = self._held.enter_context(DevicesUsed(self._flags, self._console))
        return self._devices

    def _do(self, jobs: Mapping[Job, tuple[int, ...]]) -> None:
        """Have parts done; raises :class:`DeviceError` where one is not."""
        assert self._plan is not None
        devices = self._used()
        devices.stop.clear()
        before = self._done()
        self._shards |= {job.index: Shard(job.index, self._count, numbers) for job, numbers in jobs.items()}
        program = _DrawnParts(self._shards, [*before, *jobs], self._count, self._plan.work, self._kept, self._kind)
        outcome = run_jobs(program, list(jobs), self._count, devices, self._console)
        self._left_out = list({entry.serial: entry for entry in (*self._left_out, *outcome.left_out)}.values())
        step = ""
        if self._run_dir is not None:
            step = f"; evaltools resume {shlex.quote(str(self._run_dir))} goes on"
        complete_jobs(list(jobs), [job for job in jobs if self._kept.is_done(job)], outcome, step)

    def _take(self, job: Job, journal: Journal) -> None:
        """Copy the records of the tests that a part has."""
        with journals_of([self._kept.of(job) / RUN]) as (part,):
            journal.take_records(part, *(configuration.name for configuration in self._request.tests))


class _DrawnParts(EvaltoolsProgram):
    """Parts whose examples were drawn; the progress is told by the pass."""

    def __init__(
        self,
        shards: Mapping[int, Shard],
        jobs: Sequence[Job],
        count: int,
        work: Callable[[Shard], PartWork],
        kept: PartsFolder,
        kind: EvaluationKind,
    ) -> None:
        self._shards = shards
        super().__init__(jobs, count, 0, work, kept, kind, lambda _tally: None, WITH_RECORDS)

    def _shard(self, job: Job) -> Shard:
        """Of a part that an earlier command had done, its number alone is known."""
        return self._shards.get(job.index, Shard(job.index, self._count, ()))

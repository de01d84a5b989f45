"""The result of an evaluation: typed here, described by ``result.schema.json``, written as JSON.

``docs/result-format.md`` explains it. Fields are only added within one ``schema_version``; a changed meaning gets a new
one.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Literal

from msgspec import Struct, field

from evaltools import exit_codes
from evaltools.metrics.interval import Interval
from evaltools.metrics.latency import Drift, Latency
from evaltools.metrics.series import Withheld
from evaltools.parameter import Value
from evaltools.result.device import DeviceRun
from evaltools.result.figure import Figure, Part
from evaltools.result.section import Section
from evaltools.result.verdict import Verdict


class Load(Struct, frozen=True):
    """The machine beside the run, on average over ``samples`` looks in ``seconds``; null where it does not say.

    ``others_running`` is how many processes of others ran or waited for a core, ``others_cores`` how many cores they
    used. ``steal`` is the share of the time of all cores, 0..1, that a hypervisor gave to others. ``throttled`` counts
    how often a core was slowed down for heat.
    """

    cpu_count: int
    others_running: float | None = None
    others_cores: float | None = None
    steal: float | None = None
    throttled: int | None = None
    seconds: float = 0.0
    samples: int = 0

    @property
    def others(self) -> float | None:
        """How many other processes wanted to run, as far as it is known; None where nothing is."""
        known = (self.others_running, self.others_cores)
        return max((each for each in known if each is not None), default=None)


def load_of_parts(parts: Sequence[Load]) -> Load | None:
    """The load over several stretches of time; None without one that was looked at.

    >>> load_of_parts([Load(2, 1.0, 0.5, samples=1, seconds=1.0), Load(2, 4.0, 2.0, samples=2, seconds=1.0)])
    Load(cpu_count=2, others_running=3.0, others_cores=1.25, steal=None, throttled=None, seconds=2.0, samples=3)
    """
    seen = [part for part in parts if part.samples]
    if not seen:
        return None
    throttled = [part.throttled for part in seen if part.throttled is not None]
    return Load(
        cpu_count=seen[0].cpu_count,
        others_running=_mean([(part.others_running, part.samples) for part in seen]),
        others_cores=_mean([(part.others_cores, part.seconds) for part in seen]),
        steal=_mean([(part.steal, part.seconds) for part in seen]),
        throttled=sum(throttled) if throttled else None,
        seconds=round(sum(part.seconds for part in seen), 3),
        samples=sum(part.samples for part in seen),
    )


def _mean(weighted: Sequence[tuple[float | None, float]]) -> float | None:
    """The mean of the known values by their weights; None where there are none."""
    known = [(value, weight) for value, weight in weighted if value is not None and weight > 0]
    total = sum(weight for _, weight in known)
    return round(sum(value * weight for value, weight in known) / total, 3) if total else None


SCHEMA_VERSION: Final = "7"


class Tensor(Struct, frozen=True):
    """An input or output of the model; -1 in ``shape`` is a size that may change."""

    name: str
    dtype: str
    shape: list[int]
    scale: float | None
    zero_point: int | None


class Model(Struct, frozen=True):
    """The model file. ``sha256`` is that of its bytes; ``operators`` counts those of all its graphs by name."""

    file: str
    sha256: str
    size_bytes: int
    node_count: int
    inputs: list[Tensor]
    outputs: list[Tensor]
    operators: dict[str, int] = field(default_factory=dict)


class Environment(Struct, frozen=True):
    """The machine and the software that measured.

    ``packages`` maps installed packages to versions. ``folder`` is where the command was given, from which relative
    names of files are meant, and ``trace`` the file that ``--trace`` wrote; empty where there is none. ``load`` is
    what else the machine did while latencies were measured; null where that was not measured.
    """

    evaltools: str
    python: str
    platform: str
    machine: str
    processor: str
    cpu_count: int
    packages: dict[str, str]
    started_at: str
    elapsed_s: float
    command: list[str]
    folder: str = ""
    trace: str = ""
    load: Load | None = None


class RuntimeUsed(Struct, frozen=True):
    """The runtime that ran; ``kernels`` are those of the part that stayed on the CPU.

    ``messages`` is what native code printed while the model was loaded. ``emulator`` names what computed in the place
    of the hardware, empty where the hardware did; there are no latencies then.
    """

    name: str
    package: str
    version: str
    kernels: str
    messages: str = ""
    emulator: str = ""


NOT_REPEATABLE: Final = "gave other outputs when the same input came again"
"""What ``not_clean`` says of a configuration of which that was seen."""


INVOKE_US: Final = "invoke_us"
"""The series of single times."""


class DelegateUsed(Struct, frozen=True):
    """A delegate with the options in force, and the nodes that it took.

    ``requested`` is false for XNNPACK where the runtime added it by itself. ``nodes`` is null where the delegate could
    not be created, and where it ran, as ``evidence`` says then, but a native log does not say how many nodes it took.
    ``device`` is what ran it, as the runtime names it, empty where it names none; ``is_cpu`` says that
    this device is the CPU after all, as with a software GPU. ``evidence`` says what shows that it ran.
    """

    name: str
    requested: bool
    options: dict[str, Value]
    nodes: int | None
    partitions: int | None
    device: str = ""
    is_cpu: bool = False
    evidence: str = ""


class DelegationProof(Struct, frozen=True):
    """Of ``total_nodes`` nodes of the main graph, ``delegated_nodes`` ran on a delegate; the others are listed."""

    total_nodes: int
    delegated_nodes: int
    cpu_operators: dict[str, int]


class ConfigurationResult(Struct, frozen=True):
    """One configuration: what was asked, what ran, what came out.

    ``status`` is ``measured`` or ``not measured``, then with ``reason``. ``fallback`` says why a configuration that
    asked for a delegate was measured on the CPU (``--allow_fallback=true``). ``flags`` give the same configuration
    again. ``inference_latency`` is of fewer examples than ``finished_examples`` where it was measured apart in quiet.

    ``cannot_exist``: no Python runtime can create what was asked for, or its package is not installed here.
    ``latency_drift`` is the trend of the times in ``inference_latency``, null for fewer than 10, and for those of
    several shards. ``peak_memory_mb`` is the largest resident memory of its process, in units of 1024 * 1024 bytes:
    Python, runtime, model and delegate; null where the platform does not say. ``place`` is the device that ran it, or
    ``host``, where several did the same; then ``name`` ends with it, and ``preprocessing_latency`` is that of the
    place, which else is null: the data's. ``crashes`` counts how often one of its processes crashed, or hung and
    was ended: when it was opened, in a run, in between, or when it was released; ``first_crash`` says why it first did.
    ``not_clean`` says why figures that were measured are no clean pass: such crashes, outputs that changed when the
    same input came again, or what a released delegate left; empty where there was none. ``load_ms`` is what loading the
    model and creating its delegates took, in milliseconds.
    ``nan_outputs`` counts outputs, detections or elements of outputs that are NaN or infinite. ``other_model`` is the
    one that it runs, null where that is the result's. ``latency_cpu_ratio`` is its time by that of the fastest
    configuration of the run that is on the CPU, on the same examples where these were compared; null for that one.

    ``series`` are numbers by name, in order: ``invoke_us`` has each time that ``inference_latency`` sums up, in
    microseconds, where they were kept.

    ``figures`` are the task's, by the names that limits use; one that each output of the model has, as ``parts`` say,
    is that of the worst output. ``verdicts`` are those against other configurations, the reference's first.
    """

    name: str
    role: Literal["reference", "test"]
    flags: list[str]
    num_threads: int
    status: Literal["measured", "not measured"]
    reason: str | None
    fallback: str | None
    runtime: RuntimeUsed | None
    delegates: list[DelegateUsed]
    delegation: DelegationProof | None
    inference_latency: Latency | None
    failed_examples: int
    finished_examples: int = 0
    cannot_exist: bool = False
    latency_drift: Drift | None = None
    peak_memory_mb: float | None = None
    place: str = ""
    preprocessing_latency: Latency | None = None
    figures: dict[str, Figure] = field(default_factory=dict)
    parts: list[Part] = field(default_factory=list)
    series: dict[str, list[float]] = field(default_factory=dict)
    verdicts: list[Verdict] = field(default_factory=list)
    not_clean: str = ""
    crashes: int = 0
    first_crash: str = ""
    load_ms: float | None = None
    nan_outputs: int = 0
    other_model: Model | None = None
    latency_cpu_ratio: float | None = None

    @property
    def is_emulated(self) -> bool:
        """Whether an emulator computed in the place of the hardware, so that there is no latency."""
        return self.runtime is not None and bool(self.runtime.emulator)

    def value(self, name: str) -> float | None:
        """The number of a figure; None where there is none, or no such figure."""
        found = self.figures.get(name)
        return None if found is None else found.value

    @property
    def times_us(self) -> list[float]:
        """Each time that its latency sums up, in order; empty where they were not kept."""
        return self.series.get(INVOKE_US, [])

    @property
    def crashes_of_runs(self) -> str:
        """How often its process crashed in how many runs, empty where it never did."""
        if not self.crashes:
            return ""
        runs = self.finished_examples + self.failed_examples
        during = f"in {runs} run{'s' * (runs != 1)}" if runs else "before its first run"
        return f"crashed {self.crashes} time{'s' * (self.crashes != 1)} {during}"

    @property
    def verdict(self) -> Verdict | None:
        """The verdict against the reference, or what stands in for it; None where nothing was judged."""
        return self.verdicts[0] if self.verdicts else None


def other_models(result: EvaluationResult) -> list[Model]:
    """The models that configurations run in the place of the result's, each once."""
    found = {entry.other_model.sha256: entry.other_model for entry in result.configurations if entry.other_model}
    return list(found.values())


def models_in_words(result: EvaluationResult) -> str:
    """The name of the model, and of those that it is compared with."""
    names = [Path(model.file).name for model in (result.model, *other_models(result))]
    return " compared with ".join(names[:1] + [", ".join(names[1:])] * (len(names) > 1))


class LatencyComparison(Struct, frozen=True):
    """How many times as long as ``baseline`` the ``other`` takes: the ratio of their medians over ``pairs`` examples.

    ``interval`` is the 95 % interval, null for the reason ``withheld``: ``few`` pairs, or times that ``jumped`` or
    drifted while they were measured. With several ``processes`` of each it allows for what such processes differ by;
    with one it is about the two that ran, and others of the same configurations can be faster or slower.
    """

    baseline: str
    other: str
    pairs: int
    ratio: float
    interval: Interval | None
    processes: int = 1
    withheld: Withheld | None = None


class FailedExample(Struct, frozen=True):
    """An example without an answer; ``configuration`` is null where its input could not be made at all."""

    example: str
    configuration: str | None
    stage: Literal["input", "inference", "score"]
    reason: str


class InferenceSeconds(Struct, frozen=True):
    """Where the inference of a configuration went, in seconds over all workers.

    ``run`` is within the runtime's runs, ``read_back`` is reading their outputs, ``copy`` the rest: inputs and outputs
    on their way between processes and into the model, waiting for the other process, and starting it where a worker
    opens its own.
    """

    copy: float
    run: float
    read_back: float


class ProcessMemory(Struct, frozen=True):
    """Resident memory of a process during the pass: ``mb``, in units of 1024 * 1024 bytes, at each of ``seconds``.

    ``configuration`` is the one that it runs; null for the process of the run, which is called ``evaltools``, and for
    those that make inputs. What several processes share is counted in each.
    """

    name: str
    configuration: str | None
    seconds: list[float]
    mb: list[float]


class ExecutionUsed(Struct, frozen=True):
    """How the evaluation was carried out, which changes times, never figures.

    ``examples_run`` were finished by this process, not by an earlier part of the run; they and ``workers`` are 0 where
    shards were merged. ``shard`` is ``i/n`` where this is the part of one of several hosts; ``merged_shards`` of them
    make up the result, 0 where it was measured in one run. ``quiet_latency_examples`` is how many examples the
    latencies are of, measured apart from the pass; null where they are those of the pass, which is quiet with one
    worker, and busy where several were stopped.
    ``startup_seconds`` is what passed until the first example was finished, by phase. ``stage_seconds`` is the work of
    all workers in read, decode, resize, prepare (the rest of an input's making),
    inference, metrics and journal; ``bound`` says which part of it is the largest. ``worker_seconds`` has the same by
    worker, without the journal, which no worker writes; ``inference_seconds`` says where the inference of each
    configuration went; ``memory`` is that of processes over time. The three are empty where shards were merged.
    ``not_traced`` says why the trace could not be written. ``one_worker``: the runs depended on those before them, so
    that more workers are refused.
    """

    workers: int
    examples_run: int
    shard: str | None
    merged_shards: int
    quiet_latency_examples: int | None
    startup_seconds: dict[str, float]
    stage_seconds: dict[str, float]
    bound: Literal["input", "inference", "metrics", "journal"] | None
    not_traced: str | None = None
    one_worker: bool = False
    worker_seconds: list[dict[str, float]] = field(default_factory=list)
    inference_seconds: dict[str, InferenceSeconds] = field(default_factory=dict)
    memory: list[ProcessMemory] = field(default_factory=list)


class EvaluationResult(Struct, frozen=True):
    """The whole result.

    ``subject`` is the name of the task; ``task`` is the same, but ``own`` for every task of one's own. ``complete`` is
    false where the run ended before the last example, or where a configuration has neither an answer nor a failure for
    some of them; ``stopped`` says why. ``examples_done`` counts the examples that were tried, failed ones included, of
    ``example_count`` over all shards. ``given`` is everything beside model and configurations that decides the figures,
    as texts by name: two results with the same texts are of the same examples. ``pictures_digest`` changes with the
    names of the pictures, their sizes and order. ``blocks`` are what the task shows beside the figures. ``examples``
    has what each configuration gave for each example, by columns, where that was asked for; ``changed`` the answers
    that are others than the reference's. ``lines`` are those of stdout by configuration, where the task gives some.
    ``limits_broken``: a limit that was given as an option is broken. ``not_saved`` says what a run could not write
    while it measured, and why. ``device_run`` says how it was done on devices.
    """

    schema_version: Literal["7"]
    task: str
    subject: str
    complete: bool
    stopped: (
        Literal["interrupted", "too many failed examples", "every configuration was given up", "records are missing"]
        | None
    )
    examples_done: int
    example_count: int
    environment: Environment
    model: Model
    configurations: list[ConfigurationResult]
    failed: list[FailedExample]
    warnings: list[str]
    preprocessing_latency: Latency
    given: dict[str, str] = field(default_factory=dict)
    execution: ExecutionUsed | None = None
    latency_comparisons: list[LatencyComparison] = field(default_factory=list)
    pictures_digest: str = ""
    device_run: DeviceRun | None = None
    blocks: list[Section] = field(default_factory=list)
    examples: dict[str, list[Any]] = field(default_factory=dict)
    changed: dict[str, list[Any]] = field(default_factory=dict)
    lines: dict[str, list[str]] = field(default_factory=dict)
    limits_broken: bool = False
    not_saved: str = ""


def exit_code_of(result: EvaluationResult) -> int:
    """The exit code of an evaluation whose files were all written."""
    if result.stopped == "interrupted":
        return exit_codes.INTERRUPTED
    without_input = [failure for failure in result.failed if failure.stage == "input"]
    no_input_at_all = bool(without_input) and len(without_input) == result.examples_done
    unavailable = [entry for entry in result.configurations if entry.status == "not measured"]
    if unavailable and not (no_input_at_all and all(entry.runtime is not None for entry in unavailable)):
        return exit_codes.NOT_MEASURED
    if result.limits_broken:
        return exit_codes.LIMIT_BROKEN
    is_clean = not any(entry.not_clean or entry.nan_outputs for entry in result.configurations)
    is_whole = result.stopped is None and not result.failed and is_clean
    return exit_codes.OK if is_whole else exit_codes.EXAMPLES_FAILED

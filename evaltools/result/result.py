"""The result of any command: rows of figures with their verdicts, notes, and blocks to show beside them.

Whatever measured, a result is read in the same way: gates, reports, frames and tests look at rows, figures and blocks
and know nothing of the command. Each fact is stated once. ``docs/result-format.md`` explains it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Literal

from msgspec import Struct, field
from msgspec.structs import replace

from evaltools import exit_codes
from evaltools.metrics.latency import NativeTimes
from evaltools.parameter import Value
from evaltools.result.device import DeviceRun
from evaltools.result.facts import (
    DelegateUsed,
    DelegationProof,
    Environment,
    FailedExample,
    Load,
    Model,
    RuntimeUsed,
)
from evaltools.result.figure import Figure, Part
from evaltools.result.section import Note, Section
from evaltools.result.verdict import Verdict, of_all_metrics
from evaltools.text import printable

VERSION: Final = "8"
WARNING: Final = "warning"
"""What a note is of that needs attention before figures are believed."""
NEXT: Final = "next"
"""What a note is of that says what to do next."""
HINT: Final = "hint"
"""What a note is of that says what is not known, and what brings it."""


ALL: Final = "*"
"""The name of a row that stands for all configurations of a job which gave none of its own."""
INVOKE: Final = "invoke"
"""The times of single runs."""
PREPROCESSING: Final = "preprocessing"
"""The times of making single inputs."""
INVOKE_US: Final = "invoke_us"
"""The series of single times of runs, in microseconds."""
DRIFT: Final = "drift"
"""The text which says that times rose or fell while they were measured."""
LIMIT: Final = "limit"
"""The role of a row in a row: a limit on it, named by its text; its figure is what was found."""
SHARD: Final = "shard"
"""What is given, where the result is of one of several shards: ``i/n``."""
STATE: Final = "state"
"""The text that says why a row has no figures: it ``failed``, or was ``skipped``."""
ACCURACY: Final = "accuracy"
"""The text with the name of the figure that is the accuracy, of a task with a ground truth."""
ANSWERS_CHANGED: Final = "answers_changed"
"""The text that says how many answers are others than the reference's, where some are."""
WORST_EXAMPLE: Final = "worst_example"
"""The text with the name of the example that loses most by the metric that is worse."""
FRONT: Final = "on_latency_front"
"""The count that is 1 where no other row is both as fast and as accurate."""
EXAMPLES: Final = "examples"
"""The table of what each configuration gave for each example, where that was asked for."""
CHANGED: Final = "changed"
"""The table of answers that are others than the reference's."""


class Row(Struct, frozen=True, omit_defaults=True):
    """A configuration, an operator, a chip or a device: what was asked, what ran, what came out.

    A field that a file lacks is empty; ``role`` and ``status`` are always there. ``role`` says what it is: the
    ``reference``, a ``test``, an ``operator``, a ``chip``, a ``device``, a ``limit`` on the row that it is a part of.
    ``reason`` says why it was not measured; ``not_clean`` why measured figures are no clean pass; ``fallback`` why the
    CPU did what a delegate was asked for. ``cannot_exist``: no runtime here can create what was asked for. ``command``
    and ``model`` are what gave the row, the latter by its place in the result's models; ``other_model`` is the one that
    it ran in the place of that. ``job`` is what a suite calls the command, ``place`` the device, or ``host``, where
    several did the same. ``flags`` give the same configuration again.

    ``runtime``, ``delegates`` and ``delegation`` are what ran, and the proof. ``load`` is what else the machine did
    while it was timed, null where nobody looked. ``counts`` are whole numbers by name, such as ``rounds``. ``texts``
    are facts in words by name. ``figures`` are numbers by the names that limits use; one that each output of the model
    has, as ``parts`` say, is that of the worst output. ``times`` are what the native tools say of times, by what was
    timed. ``series`` are numbers by name in the order in which they were measured, such as single times in
    microseconds. ``verdicts`` are those against other rows, the reference's first. ``rows`` are parts of this one.
    ``lines`` are those of stdout, where a task gives its own.
    """

    name: str
    role: str = field(default_factory=lambda: "test")
    status: Literal["measured", "not measured"] = field(default_factory=lambda: "measured")
    reason: str = ""
    not_clean: str = ""
    fallback: str = ""
    cannot_exist: bool = False
    command: str = ""
    model: int = 0
    other_model: Model | None = None
    job: str = ""
    place: str = ""
    flags: list[str] = field(default_factory=list)
    num_threads: int = 1
    runtime: RuntimeUsed | None = None
    delegates: list[DelegateUsed] = field(default_factory=list)
    delegation: DelegationProof | None = None
    load: Load | None = None
    given: dict[str, str] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    figures: dict[str, Figure] = field(default_factory=dict)
    times: dict[str, NativeTimes] = field(default_factory=dict)
    series: dict[str, list[float]] = field(default_factory=dict)
    verdicts: list[Verdict] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    parts: list[Part] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)

    @property
    def is_all(self) -> bool:
        """Whether it stands for all configurations of a job which gave none of its own."""
        return self.name == ALL

    @property
    def is_emulated(self) -> bool:
        """Whether an emulator computed in the place of the hardware, so that there is no latency."""
        return self.runtime is not None and bool(self.runtime.emulator)

    @property
    def verdict(self) -> Verdict | None:
        """The one against the reference, by all metrics together; None where nothing was judged."""
        return of_all_metrics(self.verdicts)

    def value(self, name: str) -> float | None:
        """The number of a figure; None where there is none, or no such figure."""
        found = self.figures.get(name)
        return None if found is None else found.value

    def number_of(self, name: str) -> int:
        """A figure that counts; 0 where there is none."""
        return int(self.value(name) or 0)

    @property
    def finished_examples(self) -> int:
        """How many examples have an answer."""
        return self.number_of("examples")

    @property
    def failed_examples(self) -> int:
        """How many examples have none."""
        return self.number_of("failed_examples")

    @property
    def nan_outputs(self) -> int:
        """How many outputs, detections or elements of outputs are NaN or infinite."""
        return self.number_of("nan_outputs")

    @property
    def crashes(self) -> int:
        """How often one of its processes crashed, or hung and was ended."""
        return self.number_of("crashes")

    @property
    def first_crash(self) -> str:
        """Why one of its processes first crashed; empty where none did."""
        return self.texts.get("first_crash", "")

    @property
    def crashes_of_runs(self) -> str:
        """How often its process crashed in how many runs, empty where it never did."""
        if not self.crashes:
            return ""
        runs = self.finished_examples + self.failed_examples
        during = f"in {runs} run{'s' * (runs != 1)}" if runs else "before its first run"
        return f"crashed {self.crashes} time{'s' * (self.crashes != 1)} {during}"

    @property
    def latency(self) -> NativeTimes | None:
        """What the native tools say of the times of its runs; None where there is none, as for an emulator."""
        return self.times.get(INVOKE)


class Result(Struct, frozen=True):
    """What a command found.

    ``command`` is what gave it, such as ``imagenet`` or ``benchmark``; ``own`` of every task of one's own, whose name
    is the ``subject``; that of a gate is its file, else it is empty. ``complete`` is false where it ended early, or
    where a row has neither an answer nor a failure for some examples; ``stopped`` says why. ``examples_done`` counts
    the examples that were tried, failed ones included, of ``example_count`` over all shards; both are 0 where there are
    no examples.

    ``given`` is everything beside model and configuration that decides the figures, as texts by name: two results with
    the same texts are of the same examples. ``options`` are the flags in force. ``failed`` are examples without an
    answer. ``notes`` are remarks on rows and warnings; ``blocks`` are what there is to show beside the rows: the answer
    first, then tables and charts under headings. ``device_run`` says how it was done on devices. ``tables`` have by
    columns what single examples gave, where that was asked for. ``limits_broken``: a limit that was given as an option
    is broken. ``not_saved`` says what could not be written while it was measured, and why.
    """

    command: str
    environment: Environment
    models: list[Model]
    rows: list[Row]
    version: Literal["8"] = VERSION
    subject: str = ""
    complete: bool = True
    stopped: str = ""
    examples_done: int = 0
    example_count: int = 0
    given: dict[str, str] = field(default_factory=dict)
    options: dict[str, Value] = field(default_factory=dict)
    failed: list[FailedExample] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    blocks: list[Section] = field(default_factory=list)
    device_run: DeviceRun | None = None
    tables: dict[str, dict[str, list[Any]]] = field(default_factory=dict)
    limits_broken: bool = False
    not_saved: str = ""

    @property
    def model(self) -> Model:
        """The first model, which is the only one of most commands."""
        return self.models[0]

    @property
    def model_names(self) -> list[str]:
        """What the models are called."""
        return model_names([Path(model.file) for model in self.models])

    @property
    def is_of_examples(self) -> bool:
        """Whether it is that of an evaluation: of examples, each of which every row has an answer to, or a failure."""
        return self.example_count > 0

    @property
    def about(self) -> str:
        """The name of the command, or of the task of one's own."""
        return self.subject or self.command

    @property
    def warnings(self) -> list[str]:
        """What needs attention before figures are believed."""
        return [note.text for note in self.notes if note.of == WARNING]

    @property
    def next_steps(self) -> list[Note]:
        """What to do next."""
        return [note for note in self.notes if note.of == NEXT]

    @property
    def measured_tests(self) -> list[Row]:
        """The test configurations that have figures, in the order given."""
        return [row for row in self.rows if row.role == "test" and row.status == "measured"]

    @property
    def other_models(self) -> list[Model]:
        """The models that rows ran in the place of the result's, each once."""
        return list({row.other_model.sha256: row.other_model for row in self.rows if row.other_model}.values())

    @property
    def models_in_words(self) -> str:
        """The name of the model, and of those that it is compared with."""
        names = [Path(model.file).name for model in (self.model, *self.other_models)]
        return " compared with ".join(names[:1] + [", ".join(names[1:])] * (len(names) > 1))


def missing_records(result: Result) -> str:
    """Which row has neither an answer nor a failure for some of the examples that were done, in words.

    Empty where none is missing. A reference whose outputs were loaded has no records at all.
    """
    for row in result.rows if result.example_count else ():
        known = row.finished_examples + row.failed_examples
        if row.status == "measured" and known not in (0, result.examples_done):
            return f"{row.name!r} has records of {known} of {result.examples_done} examples"
    return ""


def without_examples(result: Result) -> Result:
    """The result without what each configuration gave for each example."""
    return replace(result, tables={name: table for name, table in result.tables.items() if name != EXAMPLES})


def next_step(text: str, command: str = "") -> Note:
    """What to do next: a command with what it brings, or a sentence."""
    return Note(NEXT, text, command=command)


def warning(text: str) -> Note:
    """A note that needs attention before figures are believed."""
    return Note(WARNING, text, "open")


def with_warnings(result: Result, texts: Sequence[str]) -> Result:
    """The result with more warnings, behind those that it has."""
    return replace(result, notes=[*result.notes, *map(warning, texts)])


def standing_alone(result: Result) -> list[Row]:
    """The rows, each with what the result says of all of them: command, what was given, why it ended early."""
    given = dict(result.given)
    if result.example_count:
        given["examples"] = str(result.examples_done)
    known = {"subject": result.subject, "stopped": result.stopped}
    texts = {name: text for name, text in known.items() if text}
    return [
        replace(row, command=row.command or result.command, given=row.given or given, texts=row.texts | texts)
        for row in result.rows
    ]


def exit_code_of(result: Result) -> int:
    """The exit code of an evaluation whose files were all written."""
    without_input = [failure for failure in result.failed if failure.stage == "input"]
    no_input_at_all = bool(without_input) and len(without_input) == result.examples_done
    unavailable = [row for row in result.rows if row.status == "not measured"]
    excused = no_input_at_all and all(row.runtime is not None for row in unavailable)
    is_clean = not any(row.not_clean or row.nan_outputs for row in result.rows)
    was_interrupted = result.stopped == "interrupted"
    ended_early = bool(result.stopped) and not was_interrupted
    found = {
        exit_codes.INTERRUPTED: was_interrupted,
        exit_codes.NOT_MEASURED: bool(unavailable) and not excused,
        exit_codes.EXAMPLES_FAILED: bool(result.failed) or not is_clean or ended_early,
        exit_codes.LIMIT_BROKEN: result.limits_broken,
    }
    return exit_codes.worst_of([code for code, is_so in found.items() if is_so])


def model_names(paths: Sequence[Path]) -> list[str]:
    """The files' names without their endings; with the folder where two files have the same name.

    >>> model_names([Path("a/m.tflite"), Path("b/m.tflite"), Path("b/n.tflite")])
    ['a/m.tflite', 'b/m.tflite', 'n']
    """
    names = Counter(path.name for path in paths)
    return [printable(path.stem if names[path.name] == 1 else str(path)) for path in paths]

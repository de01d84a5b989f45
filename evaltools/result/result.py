"""The result of any command: rows of figures with their verdicts, notes, and blocks to show beside them.

Whatever measured, a result is read in the same way: gates, reports, frames and tests look at rows, figures and blocks
and know nothing of the command. Each fact is stated once. ``docs/result-format.md`` explains it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Literal

from msgspec import Struct, field

from evaltools.parameter import Value
from evaltools.result.device import DeviceRun
from evaltools.result.evaluation import (
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
from evaltools.result.verdict import Verdict
from evaltools.text import printable

VERSION: Final = "7"
WARNING: Final = "warning"
"""What a note is of that needs attention before figures are believed."""
NEXT: Final = "next"
"""What a note is of that says what to do next."""
HINT: Final = "hint"
"""What a note is of that says what is not known, and what brings it."""


ALL: Final = "*"
"""The name of a row that stands for all configurations of a job which gave none of its own."""


class Row(Struct, frozen=True, omit_defaults=True):
    """A configuration, an operator, a chip or a device: what was asked, what ran, what came out.

    ``role`` says what it is: the ``reference``, a ``test``, an ``operator``, a ``chip``, a ``device``. ``reason`` says
    why it was not measured; ``not_clean`` why measured figures are no clean pass; ``fallback`` why the CPU did what a
    delegate was asked for. ``cannot_exist``: no runtime here can create what was asked for. ``command`` and ``model``
    are what gave the row, the latter by its place in the result's models; ``job`` is what a suite calls the command.
    ``flags`` give the same configuration again.

    ``runtime``, ``delegates`` and ``delegation`` are what ran, and the proof. ``load`` is what else the machine did
    while it was timed, null where nobody looked. ``counts`` are whole numbers by name,
    such as ``finished`` and ``failed`` examples, ``crashes``. ``texts`` are facts in words by name. ``series`` are
    numbers by name in the order in which they were measured, such as single times in microseconds. ``verdicts`` are
    those against other rows, the reference's first. ``rows`` are parts of this one, such as the outputs of a model.
    """

    name: str
    role: str = "test"
    status: Literal["measured", "not measured"] = "measured"
    reason: str = ""
    not_clean: str = ""
    fallback: str = ""
    cannot_exist: bool = False
    command: str = ""
    model: int = 0
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
    series: dict[str, list[float]] = field(default_factory=dict)
    verdicts: list[Verdict] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    parts: list[Part] = field(default_factory=list)

    @property
    def is_all(self) -> bool:
        """Whether it stands for all configurations of a job which gave none of its own."""
        return self.name == ALL

    @property
    def verdict(self) -> Verdict | None:
        """The first verdict; None where nothing was judged."""
        return self.verdicts[0] if self.verdicts else None

    def value(self, name: str) -> float | None:
        """The number of a figure; None where there is none, or no such figure."""
        found = self.figures.get(name)
        return None if found is None else found.value


class Result(Struct, frozen=True):
    """What a command found.

    ``command`` is what gave it, such as ``imagenet`` or ``benchmark``. ``complete`` is false where it ended early;
    ``stopped`` says why. ``given`` is everything beside model and configuration that decides the figures, as texts by
    name: two results with the same texts are of the same examples. ``options`` are the flags in force. ``notes`` are
    remarks on rows and warnings; ``blocks`` are what there is to show beside the rows: the answer first, then tables
    and charts under headings.
    """

    command: str
    environment: Environment
    models: list[Model]
    rows: list[Row]
    version: Literal["7"] = VERSION
    complete: bool = True
    stopped: str = ""
    given: dict[str, str] = field(default_factory=dict)
    options: dict[str, Value] = field(default_factory=dict)
    failed: list[FailedExample] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    blocks: list[Section] = field(default_factory=list)
    device_run: DeviceRun | None = None

    @property
    def model_names(self) -> list[str]:
        """What the models are called."""
        return model_names([Path(model.file) for model in self.models])

    @property
    def warnings(self) -> list[str]:
        """What needs attention before figures are believed."""
        return [note.text for note in self.notes if note.of == WARNING]


def model_names(paths: Sequence[Path]) -> list[str]:
    """The files' names without their endings; with the folder where two files have the same name.

    >>> model_names([Path("a/m.tflite"), Path("b/m.tflite"), Path("b/n.tflite")])
    ['a/m.tflite', 'b/m.tflite', 'n']
    """
    names = Counter(path.name for path in paths)
    return [printable(path.stem if names[path.name] == 1 else str(path)) for path in paths]

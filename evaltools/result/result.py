"""The result of any command: rows of figures with their verdicts, notes, and blocks to show beside them.

Whatever measured, a result is read in the same way: gates, reports, frames and tests look at rows, figures and blocks
and know nothing of the command. Each fact is stated once. ``docs/result-format.md`` explains it.
"""

from __future__ import annotations

from typing import Final, Literal

from msgspec import Struct, field

from evaltools.metrics.interval import Interval
from evaltools.metrics.metric import Better
from evaltools.parameter import Value
from evaltools.result.device import DeviceRun
from evaltools.result.evaluation import DelegateUsed, DelegationProof, Environment, FailedExample, Model, RuntimeUsed
from evaltools.result.section import Note, Section
from evaltools.result.verdict import Verdict

VERSION: Final = "7"


class Spread(Struct, frozen=True, omit_defaults=True):
    """How numbers of examples differ: what the bounds of their mean follow from.

    ``deviation`` is the standard deviation. ``unequal`` of them are not the most frequent one. They lie from ``low`` to
    ``high``: the metric's own bounds if ``is_bounded``, else the smallest and the largest that were seen, 0 included.
    """

    deviation: float
    unequal: int = 0
    low: float = 0.0
    high: float = 0.0
    is_bounded: bool = False


class Change(Struct, frozen=True, omit_defaults=True):
    """How a figure differs from that of the row ``against``: ``value`` is this row's minus the other's.

    Both are of the same ``count`` examples. ``lost`` and ``gained`` count, of a share, the examples that changed sides.
    ``spread`` is that of the differences of single examples, of a mean. ``draws`` are differences over draws of the
    examples, of a figure that is neither. ``interval`` is the 95 % interval, ``p_value`` the one of the test, corrected
    for several comparisons with one row.
    """

    against: str
    value: float
    interval: Interval | None = None
    count: int = 0
    lost: int | None = None
    gained: int | None = None
    spread: Spread | None = None
    draws: list[float] = field(default_factory=list)
    differing: float | None = None
    p_value: float | None = None


class Figure(Struct, frozen=True, omit_defaults=True):
    """A number of a row, with all that is known of it; ``value`` is null where there is no number for it.

    ``interval`` is the 95 % interval; ``withheld`` says why there is none. The value is that of ``count`` examples,
    runs or pairs. A share has that many examples behind it, of which ``round(value * count)`` count; a mean has the
    ``spread`` of its scores. ``scores`` are those of each example in order, where they were recorded. ``better`` is
    empty where neither direction is.
    """

    value: float | None
    unit: str = ""
    better: Better | None = None
    interval: Interval | None = None
    withheld: str = ""
    count: int | None = None
    is_share: bool = False
    spread: Spread | None = None
    change: Change | None = None
    scores: list[float | None] = field(default_factory=list)


class Row(Struct, frozen=True, omit_defaults=True):
    """A configuration, an operator, a chip or a device: what was asked, what ran, what came out.

    ``role`` says what it is: the ``reference``, a ``test``, an ``operator``, a ``chip``, a ``device``. ``reason`` says
    why it was not measured; ``not_clean`` why measured figures are no clean pass; ``fallback`` why the CPU did what a
    delegate was asked for. ``cannot_exist``: no runtime here can create what was asked for. ``command`` and ``model``
    are what gave the row, the latter by its place in the result's models. ``flags`` give the same configuration again.

    ``runtime``, ``delegates`` and ``delegation`` are what ran, and the proof. ``counts`` are whole numbers by name,
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
    place: str = ""
    flags: list[str] = field(default_factory=list)
    num_threads: int = 1
    runtime: RuntimeUsed | None = None
    delegates: list[DelegateUsed] = field(default_factory=list)
    delegation: DelegationProof | None = None
    counts: dict[str, int] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    figures: dict[str, Figure] = field(default_factory=dict)
    series: dict[str, list[float]] = field(default_factory=dict)
    verdicts: list[Verdict] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)

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

"""What a metric with a part of the result of its own gets of a run, and what it gives."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from evaltools.engine.ledger import PassOutcome
from evaltools.engine.quiet_latency import QuietTime
from evaltools.gates.units import DEFAULT_MARGIN
from evaltools.known_tasks import task_command
from evaltools.result.figure import Figure, Part
from evaltools.result.metrics import figures_of, in_order
from evaltools.result.result import CHANGED, EXAMPLES, Result, Row
from evaltools.result.section import Section
from evaltools.result.verdict import Verdict

Pair = tuple[str, str]
"""The names of two configurations, ``(baseline, other)``."""


class RecordsOfRun(Struct, frozen=True):
    """The records of a run, for a metric that concludes a part of the result of them.

    ``examples`` are the task's; ``measured`` the configurations with figures, of which ``pairs`` are compared and
    ``reference`` may be one; ``times`` has the times of each that ran. ``margin`` is the change that counts as none,
    None where it was not stated. ``keeps_examples``: what was found in each example is wanted in the result.
    ``first_run_us`` has the time of the very first run of each configuration that was warmed up, in microseconds, None
    where it failed. ``beside`` is what the task measured after the pass. ``pictures`` is the folder of the pictures,
    empty where the task takes none.
    """

    examples: Sequence[Any]
    outcome: PassOutcome[Any]
    measured: Sequence[str] = ()
    pairs: Sequence[Pair] = ()
    times: Mapping[str, Sequence[QuietTime]] = field(default_factory=dict)
    reference: str | None = None
    margin: float | None = None
    keeps_examples: bool = False
    first_run_us: Mapping[str, float | None] = field(default_factory=dict)
    beside: Any = None
    pictures: str = ""

    @property
    def share_margin(self) -> float:
        """The change of a share that counts as none: half a point where no other is stated."""
        return DEFAULT_MARGIN if self.margin is None else self.margin


Columns = dict[str, list[Any]]
"""A table by the names of its columns, as frames have it."""


def columns(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> Columns:
    """The rows by columns.

    >>> columns(("example", "rank"), [("a.png", 0), ("b.png", 2)])
    {'example': ['a.png', 'b.png'], 'rank': [0, 2]}
    """
    found = list(rows)
    return {name: [row[place] for row in found] for place, name in enumerate(names)}


class Concluded(Struct, frozen=True):
    """What a task makes of all records; everything with a key is by configuration.

    ``blocks`` are shown beside the figures. ``given`` is what decides the figures, as texts by name. ``examples`` says
    what each configuration gave for each example, where that was asked for, ``changed`` which answers are others than
    the reference's: columns of frames, the first of which are ``example`` and ``configuration``. ``nan_outputs`` counts
    outputs, or elements of them, that are NaN or infinite. ``series`` are further numbers by name, ``texts`` further
    facts in words. ``also`` are configurations that did not run here, such as a reference whose outputs were saved by
    another run.
    """

    figures: Mapping[str, dict[str, Figure]] = field(default_factory=dict)
    parts: Mapping[str, list[Part]] = field(default_factory=dict)
    verdicts: Mapping[str, list[Verdict]] = field(default_factory=dict)
    warnings: Sequence[str] = ()
    blocks: Sequence[Section] = ()
    given: Mapping[str, str] = field(default_factory=dict)
    nan_outputs: Mapping[str, int] = field(default_factory=dict)
    series: Mapping[str, dict[str, list[float]]] = field(default_factory=dict)
    texts: Mapping[str, dict[str, str]] = field(default_factory=dict)
    examples: Columns = field(default_factory=dict)
    changed: Columns = field(default_factory=dict)
    also: Sequence[Row] = ()
    limits_broken: bool = False


def with_concluded(result: Result, found: Concluded) -> Result:
    """A result with what its task concluded, but its warnings."""
    accuracy, size_mb = task_command(result.command).accuracy, result.model.size_bytes / 2**20
    tables = {EXAMPLES: found.examples, CHANGED: found.changed}
    return replace(
        result,
        rows=[_with_own(row, found, "" if accuracy is None else accuracy.figure, size_mb) for row in result.rows],
        given=result.given | dict(found.given),
        blocks=as_in_file(found.blocks),
        tables={name: table for name, table in tables.items() if table},
        limits_broken=found.limits_broken,
    )


def _with_own(row: Row, found: Concluded, accuracy: str, size_mb: float) -> Row:
    """The row with what was concluded of it; ``accuracy`` names the figure that is the accuracy of the task."""
    own = found.figures.get(row.name, {})
    nan_outputs = found.nan_outputs.get(row.name, 0) if row.status == "measured" else None
    figures = row.figures | figures_of({"model_mb": size_mb, "nan_outputs": nan_outputs}) | own
    return replace(
        row,
        figures=in_order(figures),
        texts=row.texts | ({"accuracy": accuracy} if accuracy in own else {}) | found.texts.get(row.name, {}),
        parts=found.parts.get(row.name, []),
        series={**row.series, **found.series.get(row.name, {})},
        verdicts=found.verdicts.get(row.name, row.verdicts),
    )


def as_in_file(blocks: Sequence[Section | None]) -> list[Section]:
    """The blocks that there are, as they are in a file, where each number is plain."""
    return msgspec.convert(msgspec.to_builtins([each for each in blocks if each is not None]), list[Section])


def reference_among(configurations: Sequence[Row]) -> str | None:
    """The name of the reference; None where there is none."""
    return next((entry.name for entry in configurations if entry.role == "reference"), None)

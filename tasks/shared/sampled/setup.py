"""What a task says of drawn examples, and what comes of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic

from msgspec import Struct
from msgspec.structs import replace

from evaltools.engine.journal import TaskJournal
from evaltools.engine.run import PassOutcome
from evaltools.engine.task import Example, Observation
from evaltools.result.sampling import Sampling
from evaltools.tasks.shared.options.sampling import SamplingAsked
from evaltools.tasks.shared.sampled.figure import DrawnFigure


class SamplingSetup(Struct, Generic[Observation], frozen=True):
    """What a task says of examples that are drawn.

    ``lead`` takes an example and what was observed of the reference, and says how sure it is: the smaller, the sooner
    another configuration may answer otherwise. ``figures`` takes all examples with what was observed of the reference,
    and gives those that can be known by some of the examples, by name.
    ``beside_reference``: what is observed of a configuration depends on the reference's outputs, so that the reference
    runs beside it once more.
    """

    asked: SamplingAsked
    lead: Callable[[Example, Observation], float]
    figures: Callable[[Sequence[Example], Sequence[Observation]], Mapping[str, DrawnFigure[Observation]]]
    beside_reference: bool = False


def with_all_records(
    outcome: PassOutcome[Observation], records: TaskJournal[Observation], names: Sequence[str], examples: int
) -> PassOutcome[Observation]:
    """The outcome with all records of these configurations; a pass over drawn examples has those of its own order."""
    return replace(
        outcome,
        records={name: records.records(name, examples) for name in names},
        preprocessing_us=records.preprocessing_us(examples),
    )


class SampledPass(Struct, frozen=True):
    """The outcome of such a pass, what it says of all examples, and those that were drawn, in their own order."""

    outcome: PassOutcome[Any]
    sampling: Sampling
    drawn: Sequence[Example]

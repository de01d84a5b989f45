"""What a search found so far."""

from __future__ import annotations

from msgspec import Struct, field

from evaltools.locate.parts.part import Outcome, Part
from evaltools.locate.search.judge import FP32, Limit
from evaltools.result.locate import CulpritStatus, Evidence


class Found(Struct, frozen=True):
    """A culprit: the operators ``first`` to ``last`` are needed to show it, ``place`` made the tensor that is off."""

    place: int
    first: int
    last: int
    tensor: int
    status: CulpritStatus
    evidence: tuple[Evidence, ...]
    reaches_output: bool | None = None


class Findings(Struct):
    """What was measured and found so far.

    ``singles`` has the outcome of each operator alone, ``limits`` its tolerances by output tensor. ``stopped`` says why
    the search ended early, ``does_not_run`` why the delegate does not run the whole model.
    """

    precision: str = FP32
    whole: Outcome = field(default_factory=Outcome)
    taps: Outcome | None = None
    singles: dict[int, Outcome] = field(default_factory=dict)
    limits: dict[int, dict[int, Limit]] = field(default_factory=dict)
    culprits: list[Found] = field(default_factory=list)
    unexplained: bool = False
    neighbour: Part | None = None
    stopped: str = ""
    does_not_run: str = ""

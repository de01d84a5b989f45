"""The facts that a search finds, which ``conclude.py`` makes a result of.

Errors of quantised tensors are in steps of their scale, all others in the tensor's own unit.
"""

from __future__ import annotations

import math
from typing import Final, Literal

from msgspec import Struct

from evaltools.metrics.interval import Interval
from evaltools.result.evaluation import ConfigurationResult, Environment, Model
from evaltools.result.section import Tone

Unit = Literal["steps", "absolute"]
OperatorStatus = Literal[
    "right",
    "wrong",
    "precision",
    "crashes by itself",
    "refused by itself",
    "stays on the CPU",
    "cannot be cut out",
    "no evidence",
    "computes from constants",
    "not tried",
    "compared",
]
"""What a single operator shows.

right: within its tolerance. wrong: beyond it. precision: as far off as rounding to a lower precision explains. crashes
by itself, refused by itself: the delegate died of it, or did not open it. stays on the CPU: the delegate does not take
it. no evidence: the part differs from the model already on the CPU, so that it shows nothing. compared: compared
with the tensor of that name elsewhere, which says nothing of the single operator.
"""
SuspectStatus = Literal[
    "confirmed",
    "confirmed in context",
    "only in context",
    "only by itself",
    "not confirmed",
    "crashes by itself",
    "crashes in context",
]
"""How sure a suspect is.

confirmed: wrong by itself and in the model, by two methods. only in context: its operators are right one by one
and wrong together (fusion or memory); confirmed in context: so in the whole model and in the smallest part, and right
without one of them. only by itself: wrong by itself, right in the model. not confirmed: seen by one method.
crashes by itself, crashes in context: it ends in a crash, a hang or an error, by itself or only together with others.
"""
FLOAT_LAYER: Final = "float_layer.tflite"
"""The file of a bundle that has the model with one layer in float."""
COMPARED_BY_NAME: Final = "compared by name"
"""The answer where tensors were compared with others of the same name, so that nothing is tolerated."""


class Errors(Struct, frozen=True):
    """How far one tensor was off over all runs: the largest difference of each run's elements, worst and median.

    ``beyond`` of ``runs`` were beyond the tolerance. ``relative`` is the worst one's root mean square, divided by that
    of the reference. ``first_not_finite`` is the first run with NaN or infinity where the reference has none.
    """

    worst: float
    median: float
    relative: float
    runs: int
    beyond: int
    first_not_finite: int | None = None

    @property
    def sqnr_db(self) -> float | None:
        """Signal to noise in decibels, of the worst run; None where the noise is nothing, or no number.

        >>> Errors(worst=0.5, median=0.1, relative=0.1, runs=5, beyond=5).sqnr_db
        20.0
        """
        return decibels(self.relative)


def decibels(relative: float | None) -> float | None:
    """Signal to noise in decibels of a relative error; None where that is nothing, or no number.

    >>> decibels(0.1), decibels(0.0)
    (20.0, None)
    """
    return -20 * math.log10(relative) if relative and math.isfinite(relative) else None


class Weights(Struct, frozen=True):
    """How far the weights of a layer are from the other model's, in real numbers.

    ``relative``: the root mean square of the error, divided by that of the other's. ``is_rounding``: the error is no
    more than that of rounding to the scales with which they are stored.
    """

    relative: float
    is_rounding: bool

    @property
    def sqnr_db(self) -> float | None:
        """Signal to noise in decibels; None where both models have the same."""
        return decibels(self.relative)


class Operator(Struct, frozen=True):
    """One operator of the main graph.

    ``tensor`` is the output that was furthest off. ``local`` is its error where the operator runs by itself with the
    reference's inputs, ``accumulated`` that in the whole model, ``weights`` that of what is stored, for two models.
    ``gain`` is what the operator makes of the error of its inputs: accumulated error of the output relative to its
    values, divided by the largest of the inputs; of two models, by that of one rounding to how the output and the
    constants are stored, where that is larger. ``size`` is that error as the rule of verdicts counts it (relative
    root mean square of the worst run, 0 within one quantum), ``tolerance`` the largest size that the rule accepts,
    None where rounding moves the values too far to say.
    """

    index: int
    name: str
    tensor: str
    unit: Unit
    status: OperatorStatus
    ran_on: str = ""
    local: Errors | None = None
    accumulated: Errors | None = None
    gain: float | None = None
    size: float | None = None
    tolerance: float | None = None
    reason: str = ""
    weights: Weights | None = None

    @property
    def share(self) -> float | None:
        """The error as a share of what is tolerated, above 1 beyond it; None where it was not run by itself."""
        if self.local is not None and not math.isfinite(self.local.worst):
            return math.inf
        if self.size is None or self.tolerance is None:
            return None
        return self.size / self.tolerance if self.tolerance else math.inf if self.size else 0.0

    @property
    def weights_sqnr_db(self) -> float | None:
        """Signal to noise of the weights in decibels; None without weights, and where both models have the same."""
        return None if self.weights is None else self.weights.sqnr_db


class InFloat(Struct, frozen=True):
    """A layer that computes in float in a copy of the model: what the model has then, and how much more that is.

    ``interval`` is that of the gain, over inputs like these. There are no figures where the copy could not be run;
    ``reason`` says why.
    """

    index: int
    name: str
    tensor: str
    sqnr_db: float | None = None
    gain_db: float | None = None
    interval: Interval | None = None
    reason: str = ""


class KeepInFloat(Struct, frozen=True):
    """Which layers to keep in float: ``operators`` by number, best first; none where no layer clearly gains by itself.

    ``sqnr_db`` is that of the model as it is, over all inputs, in the tensors ``measured_in``: its outputs, or what
    scores (SOFTMAX) and choices (ARG_MAX) are made of. Several count alike: the root mean square of their relative
    errors. Of ``candidates`` quantised layers those with the largest error by themselves were tried, one at a
    time: ``layers``, the largest gain first.
    """

    operators: tuple[int, ...]
    measured_in: tuple[str, ...]
    sqnr_db: float
    candidates: int
    layers: tuple[InFloat, ...]

    @property
    def best(self) -> InFloat | None:
        """The first to keep in float, else what gains most; None where no copy could be run."""
        tried = [layer for layer in self.layers if layer.gain_db is not None]
        return next((layer for layer in tried if layer.index in self.operators), tried[0] if tried else None)


class OutputErrors(Struct, frozen=True):
    """How far one output of the whole model was off; ``explained`` by the errors of the operators, run one by one."""

    name: str
    unit: Unit
    errors: Errors
    tolerance: float | None
    explained: float | None = None


class Evidence(Struct, frozen=True):
    """What one method says of a suspect: ``beyond`` of ``runs`` runs were wrong; ``part`` is what ran."""

    method: str
    part: str
    agrees: bool
    beyond: int
    runs: int
    note: str = ""


class Cause(Struct, frozen=True):
    """A known way to be wrong that fits: what it is, what shows it, what to do, and where it is described."""

    name: str
    shown_by: str
    remedy: str
    link: str = ""


class SweptOption(Struct, frozen=True):
    """Whether the same part is still wrong with another setting of the delegate, and what that means."""

    setting: str
    wrong: bool
    meaning: str


class Suspect(Struct, frozen=True):
    """The operators ``first`` to ``last``, one for most; ``place`` made the tensor that is off.

    ``reaches_output``: its error is seen there.
    """

    place: int
    first: int
    last: int
    name: str
    tensor: str
    status: SuspectStatus
    evidence: tuple[Evidence, ...]
    causes: tuple[Cause, ...] = ()
    sweep: tuple[SweptOption, ...] = ()
    reaches_output: bool | None = None


class Answer(Struct, frozen=True):
    """What was found: a ``kind`` in a few words, and the sentence. ``operators`` are those at fault, by number."""

    kind: str
    text: str
    tone: Tone = "open"
    operators: tuple[int, ...] = ()


class Bundle(Struct, frozen=True):
    """What was written for others to reproduce it. ``printed`` is what its script printed, or why there is none."""

    folder: str
    files: tuple[str, ...]
    reproduced: bool
    printed: str


class Findings(Struct, frozen=True):
    """Everything that was found. ``stopped`` says why not everything was tried, empty where it was.

    ``precision`` is the lowest in which an operator computes, ``assumed`` says of how many operators which was taken
    from their values; it is empty where flags state it. ``inputs`` say in words where each of the ``num_inputs`` comes
    from.
    """

    model: Model
    configuration: ConfigurationResult
    precision: str
    num_inputs: int
    inputs: tuple[str, ...]
    answer: Answer
    suspects: tuple[Suspect, ...]
    operators: tuple[Operator, ...]
    outputs: tuple[OutputErrors, ...]
    compiles: int
    environment: Environment
    stopped: str = ""
    warnings: tuple[str, ...] = ()
    bundle: Bundle | None = None
    keep_in_float: KeepInFloat | None = None
    assumed: str = ""

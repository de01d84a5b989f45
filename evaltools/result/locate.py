"""What ``evaltools locate`` finds, as a typed result: which operator makes the difference, why, and how sure that is.

Errors of quantised tensors are in steps of their scale, all others in the tensor's own unit. ``docs/locate.md``
explains the verdicts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Struct

from evaltools.metrics.interval import Interval
from evaltools.result.evaluation import ConfigurationResult, Environment, Model
from evaltools.result.json_file import json_in, misfit, require_version

SCHEMA_VERSION: Final = "2"

Unit = Literal["steps", "absolute"]
Size = Annotated[float, msgspec.Meta(extra_json_schema={"type": ["number", "null"]})]
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
VerdictKind = Literal[
    "operator at fault",
    "fault in context",
    "crash",
    "refused",
    "suspected",
    "small differences add up",
    "precision",
    "no difference",
    "the reference is the odd one out",
    "compared by name",
    "not decided",
]
FLOAT_LAYER: Final = "float_layer.tflite"
"""The file of a bundle that has the model with one layer in float."""
_WHAT: Final = "result of evaltools locate"
_ERRORS: Final = (("operators", ("local", "accumulated")), ("outputs", ("errors",)))
_SIZES: Final = ("worst", "median", "relative")


class Errors(Struct, frozen=True):
    """How far one tensor was off over all runs: the largest difference of each run's elements, worst and median.

    ``beyond`` of ``runs`` were beyond the tolerance. ``relative`` is the worst one's root mean square, divided by that
    of the reference. ``first_not_finite`` is the first run with NaN or infinity where the reference has none. An
    infinite size is null in JSON.
    """

    worst: Size
    median: Size
    relative: Size
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
    """The operators ``first`` to ``last``, which are one for most; ``reaches_output``: its error is seen there."""

    first: int
    last: int
    name: str
    tensor: str
    status: SuspectStatus
    evidence: tuple[Evidence, ...]
    causes: tuple[Cause, ...] = ()
    sweep: tuple[SweptOption, ...] = ()
    reaches_output: bool | None = None


class Verdict(Struct, frozen=True):
    """The answer: ``operators`` are those at fault, by number; ``reason`` says what the verdict rests on."""

    kind: VerdictKind
    operators: tuple[int, ...] = ()
    reason: str = ""


class Inputs(Struct, frozen=True):
    """The inputs: how many different ones, their kinds, and in words where each input comes from."""

    count: int
    kinds: tuple[str, ...]
    described: tuple[str, ...]


class Bundle(Struct, frozen=True):
    """What was written for others to reproduce it. ``printed`` is what its script printed, or why there is none."""

    folder: str
    files: tuple[str, ...]
    reproduced: bool
    printed: str


class LocateResult(Struct, frozen=True):
    """Everything that was found. ``stopped`` says why not everything was tried, empty where it was.

    ``precision`` is the lowest in which an operator computes, ``assumed`` says of how many operators which was taken
    from their values; it is empty where flags state it.
    """

    schema_version: str
    model: Model
    configuration: ConfigurationResult
    precision: str
    inputs: Inputs
    verdict: Verdict
    suspects: tuple[Suspect, ...]
    operators: tuple[Operator, ...]
    outputs: tuple[OutputErrors, ...]
    compiles: int
    elapsed_s: float
    environment: Environment
    stopped: str = ""
    warnings: tuple[str, ...] = ()
    bundle: Bundle | None = None
    keep_in_float: KeepInFloat | None = None
    assumed: str = ""


def located_in(content: bytes, path: Path) -> LocateResult:
    """The result in the content of a file; JSON has no infinity, so that an infinite error stands there as null.

    Raises :class:`DataError` for content that does not fit, naming the field, or the version that is not known.
    """
    document = json_in(content, path, dict[str, Any], _WHAT)
    require_version(document.get("schema_version"), SCHEMA_VERSION, path, _WHAT)
    for errors in _errors(document):
        errors.update({name: math.inf for name in _SIZES if name in errors and errors[name] is None})
    try:
        return msgspec.convert(document, LocateResult, str_keys=True)
    except msgspec.ValidationError as error:
        raise misfit(path, _WHAT, error) from error


def _errors(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The errors of tensors, wherever a document that may be anything has some."""
    for name, fields in _ERRORS:
        entries = document.get(name)
        for entry in entries if isinstance(entries, list) else ():
            for field in fields:
                errors = entry.get(field) if isinstance(entry, dict) else None
                if isinstance(errors, dict):
                    yield errors

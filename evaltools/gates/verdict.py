"""From the difference of an output to a verdict, with yardsticks measured on the same model and inputs.

Two yardsticks are measured. The *noise floor*: how far apart CPU kernels are that nobody doubts. And for fp16, bf16
and int8: how far the outputs move when constants of the model and inputs are rounded to that precision, on the CPU.
A delegate that computes in that precision comes out at 0.2 to 1.5 times the second (measured on 14 models).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from evaltools.metrics.boxes import BoxAgreement
from evaltools.metrics.output_difference import OutputDifference, Values
from evaltools.result.verdict import Reason

Grade = Literal["equivalent", "fp16", "bf16", "int8", "diverged"]
GRADES: Final[tuple[Grade, ...]] = ("equivalent", "fp16", "bf16", "int8", "diverged")
"""From best to worst; a precision means ``within expected precision of`` it."""

UNIT_ROUNDOFF: Final[Mapping[str, float]] = {"float32": 2.0**-24, "fp16": 2.0**-11, "bf16": 2.0**-8, "int8": 2.0**-8}
_OWN_ROUNDOFF: Final = {"float16": 2.0**-11, "bfloat16": 2.0**-8, "float64": 2.0**-24}
_FLOOR_FACTOR: Final = 4.0
_YARDSTICK_FACTOR: Final = 2.0
_FEW_ROUNDINGS: Final = 16.0
_ROUNDINGS_OF_QUANTISATION: Final = 12.0
_COARSEST: Final = 0.5
_INT8_STEPS_OF_INT16: Final = 256.0
_INT8_SHARE: Final = 0.001


@dataclass(frozen=True)
class Yardsticks:
    """What one output's difference is held against.

    ``floor`` has the difference of each CPU variant by name, ``precisions`` the output's movement in fp16, bf16 and
    int8, in this order. ``node_count`` stands in for what was not measured. ``other_model`` says that the two sides run
    different models, one of which may be quantised.
    """

    floor: Mapping[str, OutputDifference]
    precisions: Mapping[str, OutputDifference]
    node_count: int
    other_model: bool = False


@dataclass(frozen=True)
class OutputVerdict:
    """The grade of one output and why; ``tolerances`` has the largest value accepted for each grade, in ``unit``."""

    grade: Grade
    reasons: list[Reason]
    unit: str
    tolerances: dict[str, float]


def worst(grades: Sequence[Grade]) -> Grade:
    """The worst of some grades, ``equivalent`` for none."""
    return max(grades, key=GRADES.index, default="equivalent")


def judge_output(
    found: OutputDifference, yardsticks: Yardsticks, like: OutputDifference | None = None
) -> OutputVerdict:
    """Grade one output; ``like`` is its difference over the runs of the yardsticks, which the size is judged by."""
    damage = _damage(found)
    if damage is not None:
        return OutputVerdict("diverged", [damage], "", {})
    if found.identical:
        return OutputVerdict("equivalent", [Reason("identical" if found.elements else "no_elements")], "", {})
    judges = {"quantised": _judge_quanta, "real": _judge_real, "exact": _judge_share}
    verdict = judges[found.kind](like or found, yardsticks)
    if like is not None and like.runs < found.runs:
        verdict = over_some_runs(verdict, like.runs)
    frozen = _frozen(found)
    if verdict.grade == "equivalent" or frozen is None:
        return verdict
    return replace(verdict, grade="diverged", reasons=[frozen, *verdict.reasons])


def is_coarse(found: OutputDifference) -> bool:
    """Whether a CPU variant's difference is coarser than fp16, or than a quantum."""
    if found.quanta is not None:
        return found.quanta.rms > 1
    return found.kind != "exact" and (found.relative_rms or 0.0) > UNIT_ROUNDOFF["fp16"]


def over_some_runs(verdict: OutputVerdict, runs: int) -> OutputVerdict:
    """The same verdict, with a reason that says how many runs its figures are of: those of the noise floor."""
    return replace(verdict, reasons=[*verdict.reasons, Reason("sampled_runs", {"runs": runs})])


@dataclass(frozen=True)
class _BoxFigure:
    """One way in which boxes differ; ``rounding`` and ``int8`` are the least that is granted to kernels and to int8."""

    unit: str
    of: Callable[[BoxAgreement], float]
    rounding: float
    int8: float


_BOX_FIGURES: Final = (
    _BoxFigure("share of boxes without a partner of the same class", lambda boxes: 1 - boxes.share, 0.0, 0.05),
    _BoxFigure("largest shift of a score", lambda boxes: boxes.score_shift, 1e-5, 0.05),
    _BoxFigure("largest 1 - IoU of a pair", lambda boxes: boxes.moved, 1e-5, 0.2),
)


def judge_boxes(
    found: BoxAgreement, floor: Sequence[BoxAgreement], precisions: Mapping[str, BoxAgreement]
) -> OutputVerdict:
    """Grade the boxes of a detector by the worst of three figures: partners, scores, places."""
    verdicts = [_judge_box_figure(figure, found, floor, precisions) for figure in _BOX_FIGURES]
    decisive = max(verdicts, key=lambda verdict: GRADES.index(verdict.grade))
    numbers = {
        "matched": found.matched,
        "mean_iou": found.mean_iou,
        "lost": found.lost,
        "new": found.new,
        "other_class": found.class_changes,
    }
    unknown = [] if floor else [Reason("no_noise_floor")]
    return replace(decisive, reasons=[Reason("boxes", numbers), *decisive.reasons, *unknown])


def _judge_box_figure(
    figure: _BoxFigure, found: BoxAgreement, floor: Sequence[BoxAgreement], precisions: Mapping[str, BoxAgreement]
) -> OutputVerdict:
    value, noise = figure.of(found), max(map(figure.of, floor), default=0.0)
    tolerances = {"equivalent": max(figure.rounding, 2 * noise)}
    for precision, other in precisions.items():
        tolerances[precision] = max(_last(tolerances), _YARDSTICK_FACTOR * figure.of(other))
    if not precisions or "int8" in precisions:
        tolerances["int8"] = max(_last(tolerances), _FLOOR_FACTOR * noise, figure.int8)
    grade = _grade(value, tolerances)
    held = _held("box_figure", grade, tolerances, {"value": value}, {"figure": figure.unit})
    return OutputVerdict(grade, [held], figure.unit, tolerances)


def _damage(found: OutputDifference) -> Reason | None:
    """What makes figures meaningless."""
    if not found.same_shape:
        return Reason("other_shape")
    if _broken(found.test) or _broken(found.reference):
        sides = {"test": found.test, "reference": found.reference}
        counts = {f"{name}_nan": side.nan for name, side in sides.items()}
        counts |= {f"{name}_infinite": side.infinite for name, side in sides.items()}
        return Reason("not_finite", {"elements": found.elements, **counts})
    if found.kind != "exact" and found.compared < found.elements:
        return Reason("no_counterpart", {"elements": found.elements, "missing": found.elements - found.compared})
    return Reason("torn", {"elements": found.torn}) if found.torn else None


def _frozen(found: OutputDifference) -> Reason | None:
    """A sign of a delegate that computes nothing: the test stands still where the reference moves."""
    if found.test.constant and not found.reference.constant:
        return Reason("constant", {"value": found.test.low})
    if found.runs > 1 and found.test.distinct_outputs == 1 and found.reference.distinct_outputs > 1:
        return Reason("same_in_every_run")
    return None


def _broken(side: Values) -> bool:
    return side.nan > 0 or side.infinite > 0


def _judge_real(found: OutputDifference, yardsticks: Yardsticks) -> OutputVerdict:
    unit = "relative RMS of the difference"
    own = _OWN_ROUNDOFF.get(found.dtype, UNIT_ROUNDOFF["float32"])
    floor, variant = _coarsest(yardsticks, lambda other: other.relative_rms or 0.0)
    roundings = _FEW_ROUNDINGS * (1 if yardsticks.floor else math.sqrt(max(1, yardsticks.node_count)))
    tolerances = {"equivalent": max(_FLOOR_FACTOR * floor, roundings * own if own < 1e-6 else own)}
    precisions = list(yardsticks.precisions) or ["fp16", "bf16"]
    if yardsticks.other_model and "int8" not in precisions:
        precisions.append("int8")
    for precision in precisions:
        expected = _expected_relative_rms(precision, yardsticks)
        tolerances[precision] = max(_last(tolerances), min(_COARSEST, expected))
    if found.relative_rms is None:
        return OutputVerdict("diverged", [Reason("no_relative_size")], unit, tolerances)
    grade = _grade(found.relative_rms, tolerances)
    size = {"value": found.relative_rms, "snr_db": found.snr_db}
    reasons = [_held("relative_rms", grade, tolerances, size, {}), Reason("no_noise_floor")]
    if yardsticks.floor:
        reasons[1] = Reason("noise_floor", {"relative_rms": floor}, {"variant": variant})
    return OutputVerdict(grade, reasons, unit, tolerances)


def _coarsest(yardsticks: Yardsticks, figure: Callable[[OutputDifference], float]) -> tuple[float, str]:
    """The largest figure of a CPU variant, and which one that is, empty where none differs."""
    found = max(((figure(other), name) for name, other in yardsticks.floor.items()), default=(0.0, ""))
    return found[0], found[1] if found[0] else ""


def _expected_relative_rms(precision: str, yardsticks: Yardsticks) -> float:
    """Twice what was measured, at least one rounding (int8: one per node); by the nodes alone if not measured.

    A quantised model also rounds what flows between the nodes, over ranges that are wider than the values: twelve
    roundings per node, above what four models and their quantised versions show (0.03 to 0.16 for 10 to 31 nodes).
    """
    one_per_node = UNIT_ROUNDOFF[precision] * math.sqrt(max(1, yardsticks.node_count))
    least = one_per_node if precision == "int8" else UNIT_ROUNDOFF[precision]
    if precision == "int8" and yardsticks.other_model:
        least = _ROUNDINGS_OF_QUANTISATION * one_per_node
    measured = yardsticks.precisions.get(precision)
    if measured is None or measured.relative_rms is None:
        return max(least, _FLOOR_FACTOR * one_per_node)
    return max(least, _YARDSTICK_FACTOR * measured.relative_rms)


def _judge_quanta(found: OutputDifference, yardsticks: Yardsticks) -> OutputVerdict:
    assert found.quanta is not None
    noise_rms, variant = _coarsest(yardsticks, lambda other: other.quanta.rms if other.quanta else 0.0)
    noise_max = max((other.quanta.max for other in yardsticks.floor.values() if other.quanta), default=0)
    step = _INT8_STEPS_OF_INT16 if "16" in found.dtype else 1.0
    shaken = yardsticks.precisions.get("int8")
    expected = _YARDSTICK_FACTOR * shaken.quanta.rms if shaken is not None and shaken.quanta is not None else 0.0
    tolerances = {"equivalent": 2 * noise_rms, "int8": max(step, expected, _FLOOR_FACTOR * noise_rms)}
    grade: Grade = _grade(found.quanta.rms, tolerances)
    if found.quanta.max <= 1:
        grade = "equivalent"
    elif grade == "equivalent" and found.quanta.max > max(2, 2 * noise_max):
        grade = "int8"
    if grade == "diverged" and not yardsticks.floor:
        within = (found.relative_rms or 0.0) <= _expected_relative_rms("int8", yardsticks)
        grade = "int8" if within else "diverged"
    equal, one, two, more = found.quanta.shares
    size = {
        "equal": equal,
        "off_by_1": one,
        "off_by_2": two,
        "off_by_more": more,
        "largest": found.quanta.max,
        "rms": found.quanta.rms,
        "floor_rms": noise_rms if yardsticks.floor else None,
        "floor_largest": noise_max if yardsticks.floor else None,
    }
    reasons = [Reason("quanta", size, {"variant": variant})]
    return OutputVerdict(grade, reasons, "RMS of the difference in quanta", tolerances)


def _judge_share(found: OutputDifference, yardsticks: Yardsticks) -> OutputVerdict:
    """Whole numbers, truth values and texts: equal or not, with no distance that means something."""
    share = found.different / found.elements
    noise, variant = _coarsest(yardsticks, _share)
    tolerances = {"equivalent": 2 * noise}
    for precision, other in yardsticks.precisions.items():
        tolerances[precision] = max(_last(tolerances), _YARDSTICK_FACTOR * _share(other))
    if not yardsticks.precisions or "int8" in yardsticks.precisions:
        tolerances["int8"] = max(_last(tolerances), _FLOOR_FACTOR * noise, _INT8_SHARE)
    grade = _grade(share, tolerances)
    size = {"share": share, "floor_share": noise if yardsticks.floor else None}
    reasons = [Reason("different_elements", size, {"variant": variant})]
    return OutputVerdict(grade, reasons, "share of elements that differ", tolerances)


def _share(found: OutputDifference) -> float:
    return found.different / found.elements if found.elements else 0.0


def _grade(value: float, tolerances: Mapping[str, float]) -> Grade:
    for grade in GRADES:
        if value <= tolerances.get(grade, -1.0):
            return grade
    return "diverged"


def _last(tolerances: Mapping[str, float]) -> float:
    return list(tolerances.values())[-1]


def _held(
    kind: str,
    grade: Grade,
    tolerances: Mapping[str, float],
    numbers: Mapping[str, int | float | None],
    names: Mapping[str, str],
) -> Reason:
    """A size, and the tolerance that it kept or, where it kept none, that of the coarsest explanation."""
    explanation = list(tolerances)[-1] if grade == "diverged" else grade
    return Reason(kind, {**numbers, "tolerance": tolerances[explanation]}, {**names, "explanation": explanation})

"""From the difference of an output to a verdict, with yardsticks measured on the same model and inputs.

Two yardsticks are measured. The *noise floor*: how far apart CPU kernels are that nobody doubts. And for fp16, bf16
and int8: how far the outputs move when constants of the model and inputs are rounded to that precision, on the CPU.
A delegate that computes in that precision comes out at 0.2 to 1.5 times the second (measured on 14 models).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, Literal

from msgspec import Struct, field
from msgspec.structs import replace

from evaltools.gates.paired_runs import ByRun, YardsticksByRun, blank_block, blank_runs
from evaltools.metrics.boxes import BoxAgreement
from evaltools.metrics.output_difference import JudgedFigure, OutputDifference
from evaltools.metrics.patterns import Farthest, Systematic
from evaltools.result.verdict import Reason
from evaltools.stats.proportions import share_bound

Grade = Literal["equivalent", "fp16", "bf16", "int8", "not decided", "diverged"]
GRADES: Final[tuple[Grade, ...]] = ("equivalent", "fp16", "bf16", "int8", "not decided", "diverged")
"""From best to worst; a precision means ``within expected precision of`` it."""

UNIT_ROUNDOFF: Final[Mapping[str, float]] = {"float32": 2.0**-24, "fp16": 2.0**-11, "bf16": 2.0**-8, "int8": 2.0**-8}
AMPLIFIED: Final = 0.1
"""Where rounding itself is beyond this relative size, a difference that it explains decides nothing."""
_SMALL: Final = 0.1
"""A difference up to this share of the rounding's own size shows all the same that the sides are alike."""
_MOST_ANSWERS: Final = 0.5
"""Where rounding explains that more than this share of the answers are others, it decides nothing either."""
_OWN_ROUNDOFF: Final = {"float16": 2.0**-11, "bfloat16": 2.0**-8, "float64": 2.0**-24}
_FLOOR_FACTOR: Final = 4.0
_YARDSTICK_FACTOR: Final = 2.0
_TRUNCATED: Final = 2.0
"""Some delegates convert to bf16 by cutting bits off, which is off by up to twice as much as rounding."""
_FEW_ROUNDINGS: Final = 16.0
_ROUNDINGS_OF_QUANTISATION: Final = 12.0
_COARSEST: Final = 0.5
_TIMES_THE_LEAST: Final = 10.0
_COARSEST_FLOOR: Final = 0.95
_STEPS: Final = 255.0
_INT8_SHARE: Final = 0.001
_CONFIDENCE: Final = 0.95
_CUT_OFF: Final = 0.05
_SEVERAL: Final = 3
_MOST_BY_CHANCE: Final = 0.5
"""Of the runs of an output that takes few values, a larger share does not look like earlier ones by chance."""
_FEW_QUANTA: Final = 4
_ALWAYS_LATE: Final = 8
"""An output that is a run late in so many moves of the other side, and in all of them, is so by no chance."""
_MANY_ELEMENTS: Final = 8
"""Two different outputs with so many whole numbers between their ends are not rounded to the same by chance."""
_NO_RUNS: Final[ByRun] = MappingProxyType({})


class Yardsticks(Struct, frozen=True):
    """What one output's difference is held against.

    ``floor`` has the difference of each CPU variant by name, ``precisions`` the output's movement in fp16, bf16 and
    int8, in this order. ``node_count`` stands in for what was not measured. ``other_model`` says that the two sides run
    different models, one of which may be quantised. ``runs`` has the runs of the same yardsticks one by one.
    """

    floor: Mapping[str, OutputDifference]
    precisions: Mapping[str, OutputDifference]
    node_count: int
    other_model: bool = False
    runs: YardsticksByRun = field(default_factory=lambda: YardsticksByRun({}, {}))


class OutputVerdict(Struct, frozen=True):
    """The grade of one output and why; ``tolerances`` has the largest value accepted for each grade, in ``unit``."""

    grade: Grade
    reasons: list[Reason]
    unit: str
    tolerances: dict[str, float]


def worst(grades: Sequence[Grade]) -> Grade:
    """The worst of some grades, ``equivalent`` for none."""
    return max(grades, key=GRADES.index, default="equivalent")


def judge_output(
    found: OutputDifference, yardsticks: Yardsticks, like: OutputDifference | None = None, by_run: ByRun = _NO_RUNS
) -> OutputVerdict:
    """Grade one output; ``like`` is its difference over the runs of the yardsticks, which sizes are judged by.

    ``by_run`` has the runs of ``like``, or of ``found`` where there is no other, one by one.

    The size over all runs and elements decides, and so do those of the run, the channel and the block that differ
    most, the largest difference, and the figures that tell what the output is for, such as the share of other best
    classes: the worst grade of these. Of keypoints, sizes say little: there the figures alone decide.
    """
    damage = _damage(found)
    if damage is not None:
        return damage
    if found.identical:
        return OutputVerdict("equivalent", [_identical(found)], "", {})
    still = _stands_still(found, yardsticks, by_run)
    if still is not None:
        return OutputVerdict("diverged", [still], "", {})
    judged = like or found
    decisive = _judge_size(judged, yardsticks)
    parts = _judge_parts(judged, yardsticks, by_run, decisive.tolerances)
    part = max(parts, key=_by_grade_and_excess, default=decisive)
    if _figures_decide(judged) or GRADES.index(part.grade) > GRADES.index(decisive.grade):
        decisive = replace(part, reasons=[*part.reasons, *decisive.reasons])
    displaced_runs = found.displaced if decisive.grade != "equivalent" else found.displaced_exactly
    if displaced_runs > _MOST_BY_CHANCE * found.runs and not _within_one_quantum(found):
        displaced = Reason("displaced", {"displaced": displaced_runs, "runs": found.runs})
        decisive = replace(decisive, grade="diverged", reasons=[displaced, *decisive.reasons])
    elif GRADES.index(decisive.grade) < GRADES.index("not decided") and _may_stand_still(found, yardsticks):
        still = Reason("may_stand_still", {"distinct": found.reference.distinct_outputs, "runs": found.runs})
        decisive = replace(decisive, grade="not decided", reasons=[still, *decisive.reasons])
    return over_some_runs(decisive, like.runs) if like is not None and like.runs < found.runs else decisive


def _judge_size(found: OutputDifference, yardsticks: Yardsticks) -> OutputVerdict:
    judges = {"quantised": _judge_quanta, "real": _judge_real, "exact": _judge_share}
    return judges[found.kind](found, yardsticks)


def _identical(found: OutputDifference) -> Reason:
    """With the largest share of such inputs that may differ all the same: the exact bound of none of so many runs."""
    if not found.elements:
        return Reason("no_elements")
    bound = share_bound(0, found.runs, _CONFIDENCE, upper=True)
    return Reason("identical", {"runs": found.runs, "at_most": bound})


def is_coarse(found: OutputDifference) -> bool:
    """Whether a CPU variant's difference is coarser than fp16, or than a quantum."""
    if found.quanta is not None:
        return found.quanta.rms > 1
    return found.kind != "exact" and (found.relative_rms or 0.0) > UNIT_ROUNDOFF["fp16"]


def over_some_runs(verdict: OutputVerdict, runs: int) -> OutputVerdict:
    """The same verdict, with a reason that says how many runs its figures are of: those of the noise floor."""
    return replace(verdict, reasons=[*verdict.reasons, Reason("sampled_runs", {"runs": runs})])


def broken_variants(floor: Mapping[str, OutputDifference], precisions: Mapping[str, OutputDifference]) -> list[str]:
    """CPU variants that are no yardstick: without the right numbers, standing still, or alone far from the others.

    Far is a relative size above 0.1 that is more than three times what rounding the model moves its output by.
    """
    rounding = max((size_of(other) for other in precisions.values()), default=0.0)
    broken = []
    for name, found in floor.items():
        others = [size_of(other) for other_name, other in floor.items() if other_name != name]
        is_alone = all(size <= AMPLIFIED for size in others) and size_of(found) > max(AMPLIFIED, 3 * rounding)
        unlike = found.compared + found.same_not_finite < found.elements and found.kind != "exact"
        if unlike or not found.same_shape or _frozen(found) is not None or is_alone:
            broken.append(name)
    return broken


def size_of(found: OutputDifference) -> float:
    """The relative root mean square of the difference; of whole numbers and texts, the share that differs."""
    if found.kind == "exact":
        return _share(found)
    return math.inf if found.relative_rms is None and not found.identical else found.relative_rms or 0.0


class _BoxFigure(Struct, frozen=True):
    """One way in which boxes differ.

    ``rounding`` and ``int8`` are the least that is granted to kernels and to int8, ``most`` what is granted at most.
    """

    unit: str
    of: Callable[[BoxAgreement], float]
    rounding: float
    int8: float
    most: float = math.inf


_BOX_FIGURES: Final = (
    _BoxFigure("share of boxes without a partner of the same class", lambda boxes: 1 - boxes.share, 0.0, 0.05),
    _BoxFigure("share of boxes without a partner in one run", lambda boxes: boxes.worst_example, 0.0, 0.6, 0.95),
    _BoxFigure("largest shift of a score", lambda boxes: boxes.score_shift, 1e-5, 0.05),
    _BoxFigure("largest 1 - IoU of a pair", lambda boxes: boxes.moved, 1e-5, 0.2),
)


def judge_boxes(
    found: BoxAgreement, floor: Sequence[BoxAgreement], precisions: Mapping[str, BoxAgreement]
) -> OutputVerdict:
    """Grade the boxes of a detector by the worst of four figures: partners, those of one run, scores, places."""
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
    tolerances = {"equivalent": max(figure.rounding, min(figure.most, 2 * noise))}
    for precision, other in precisions.items():
        tolerances[precision] = max(_last(tolerances), min(figure.most, _YARDSTICK_FACTOR * figure.of(other)))
    if not precisions or "int8" in precisions:
        granted = max(_FLOOR_FACTOR * noise, figure.int8)
        tolerances["int8"] = max(_last(tolerances), min(figure.most, granted))
    grade = _grade(value, tolerances)
    held = _held("box_figure", grade, tolerances, {"value": value}, {"figure": figure.unit})
    return OutputVerdict(grade, [held], figure.unit, tolerances)


def _damage(found: OutputDifference) -> OutputVerdict | None:
    """What makes figures meaningless."""
    if not found.same_shape:
        return OutputVerdict("diverged", [Reason("other_shape")], "", {})
    missing = found.elements - found.compared - found.same_not_finite
    sides = {"test": found.test, "reference": found.reference}
    counts = {f"{name}_nan": side.nan for name, side in sides.items()}
    counts |= {f"{name}_infinite": side.infinite for name, side in sides.items()}
    if any(counts.values()) and missing:
        return OutputVerdict("diverged", [Reason("not_finite", {"elements": found.elements, **counts})], "", {})
    if found.reference.nan:
        return OutputVerdict("not decided", [Reason("not_finite", {"elements": found.elements, **counts})], "", {})
    if found.kind != "exact" and missing:
        numbers = {"elements": found.elements, "missing": missing}
        return OutputVerdict("diverged", [Reason("no_counterpart", numbers)], "", {})
    if found.never_written:
        return OutputVerdict("diverged", [Reason("never_written", {"elements": found.never_written})], "", {})
    return None


def _within_one_quantum(found: OutputDifference) -> bool:
    return found.quanta is not None and found.quanta.max <= 1


def _stands_still(found: OutputDifference, yardsticks: Yardsticks, by_run: ByRun) -> Reason | None:
    """A sign of a delegate that computes nothing, or gives what it gave before, where the reference moves.

    Where the difference is that of a few roundings, or one quantum at most, the reference stands as still.
    """
    of_rounding = found.relative_rms is not None and found.relative_rms <= _rounding(found, yardsticks)
    if of_rounding or _within_one_quantum(found):
        return None
    reason = _frozen(found) or _blank(found, yardsticks, by_run)
    hardly_moves = _hardly_moves(found)
    if reason is not None or (found.kind == "exact" and hardly_moves):
        return reason
    reason = None if found.kind == "exact" or hardly_moves or yardsticks.other_model else _saturated(found)
    if reason is not None:
        return reason
    others = [*yardsticks.floor.values(), *yardsticks.precisions.values()]
    by_others = found.runs * max((other.blank / other.runs for other in others), default=0.0)
    if found.blank > by_others and not hardly_moves and not yardsticks.other_model:
        return Reason("blank", {"blank": found.blank, "runs": found.runs})
    if found.late >= _ALWAYS_LATE:
        return Reason("repeated", {"repeated": found.late, "runs": found.runs})
    if found.late_part >= _ALWAYS_LATE:
        return Reason("late_part", {"late": found.late_part, "runs": found.runs})
    by_rounding = max((other.repeated / other.runs for other in others), default=0.0)
    distinct = max(found.reference.distinct_outputs, found.test.distinct_outputs)
    at_ends = max(side.at_low + side.at_high for side in (found.test, found.reference))
    between_ends = (found.elements - at_ends) / found.runs
    is_no_chance = distinct == found.runs and between_ends >= (1 if found.kind == "real" else _MANY_ELEMENTS)
    by_chance = min(_MOST_BY_CHANCE, 2 * (1 - distinct / found.runs))
    usual = found.runs * (max(by_chance, 2 * by_rounding) + (0 if is_no_chance else 0.1))
    repeated = found.repeated if is_no_chance or found.kind != "quantised" else _far_repeats(found)
    return Reason("repeated", {"repeated": repeated, "runs": found.runs}) if repeated > usual else None


def _blank(found: OutputDifference, yardsticks: Yardsticks, by_run: ByRun) -> Reason | None:
    """One side has the same number everywhere, in a run or always in a block, where no yardstick has.

    So it may be of outputs of a quantised model that hardly move.
    """
    if yardsticks.other_model or (found.kind == "quantised" and _hardly_moves(found)):
        return None
    runs = blank_runs(by_run, yardsticks.runs)
    if runs:
        return Reason("blank", {"blank": len(runs), "runs": len(by_run)})
    block = blank_block(by_run, yardsticks.runs)
    return None if block is None else Reason("blank_block", {"block": block[0], "blank": block[1], "runs": len(by_run)})


def _far_repeats(found: OutputDifference) -> int:
    """Of a few whole numbers: outputs that are near each other anyway become equal by rounding."""
    is_near = found.quanta is not None and found.quanta.max <= _FEW_QUANTA
    return 0 if is_near else found.repeated_far


def _frozen(found: OutputDifference) -> Reason | None:
    """One side has the same numbers everywhere, or in every run, and the other, which moves, has not."""
    if _hardly_moves(found):
        return None
    for side, other, name in ((found.test, found.reference, "test"), (found.reference, found.test, "reference")):
        if side.constant and not other.constant:
            return Reason("constant", {"value": side.low}, {"side": name})
        if found.runs > 1 and side.distinct_outputs == 1 and other.distinct_outputs > 1:
            return Reason("same_in_every_run", names={"side": name})
    return None


def _may_stand_still(found: OutputDifference, yardsticks: Yardsticks) -> bool:
    """The test has the same quanta in every run, the reference and all CPU variants have not.

    So it may be of outputs that :func:`_hardly_moves` excuses; those within a quantum are rounded, no more.
    """
    moving = [found.reference, *(other.test for other in yardsticks.floor.values())]
    return (
        found.kind == "quantised"
        and not _within_one_quantum(found)
        and found.test.distinct_outputs == 1
        and all(side.distinct_outputs > 1 for side in moving)
    )


def _hardly_moves(found: OutputDifference) -> bool:
    """Whole numbers that differ in few elements, or by few quanta in few runs: rounding may make them stand still."""
    distinct = max(found.test.distinct_outputs, found.reference.distinct_outputs)
    if found.kind == "quantised":
        return found.quanta is not None and found.quanta.max <= _FEW_QUANTA and distinct <= max(2, found.runs / 4)
    return found.kind == "exact" and _share(found) <= _INT8_SHARE


def _saturated(found: OutputDifference) -> Reason | None:
    """One side is cut off: several elements are just its largest (or smallest) value, and the other side goes on.

    So is what a quantised model gives, by its range: beside another model, that says nothing.
    """
    for side, other, name in ((found.test, found.reference, "test"), (found.reference, found.test, "reference")):
        if None in (side.low, side.high, other.low, other.high):
            continue
        span = (other.high or 0.0) - (other.low or 0.0)
        ends = (
            ("largest", side.high, (other.high or 0.0) - (side.high or 0.0), side.at_high, other.at_high),
            ("smallest", side.low, (side.low or 0.0) - (other.low or 0.0), side.at_low, other.at_low),
        )
        for end, value, beyond, count, usual in ends:
            if beyond > _CUT_OFF * span and count >= _SEVERAL * max(1, usual):
                return Reason("saturated", {"elements": count, "value": value}, {"side": name, "end": end})
    return None


class _Part(Struct, frozen=True):
    """One way in which a difference that is small in the sum may be large.

    ``slack`` is how many times what rounding makes of the whole is granted to it.
    """

    name: str
    of: Callable[[OutputDifference], Farthest | None]
    slack: float


def _largest(found: OutputDifference) -> Farthest | None:
    ends = [abs(end) for end in (found.reference.low, found.reference.high) if end is not None]
    if found.max is None or not any(ends):
        return None
    return Farthest(0, found.max / max(ends))


_RUN: Final = _Part("run", lambda found: found.farthest_run, 4.0)
_PARTS: Final = (
    _RUN,
    _Part("channel", lambda found: found.farthest_channel, 8.0),
    _Part("block", lambda found: found.farthest_block, 8.0),
    _Part("element", _largest, 8.0),
)
_PART_FACTOR: Final = 3.0
_SYSTEMATIC: Final[Mapping[str, Callable[[OutputDifference], Systematic | None]]] = {
    "gain": lambda found: found.gain,
    "offset": lambda found: found.offset,
}
_LEAST_ALIKE: Final = 0.4
"""So much of the difference that is granted may be alike in all elements, even where the yardstick has less of that."""


def _judge_parts(
    found: OutputDifference, yardsticks: Yardsticks, by_run: ByRun, of_all: Mapping[str, float]
) -> list[OutputVerdict]:
    """Those of single runs, channels, blocks and elements, of what is alike in all, and of other figures.

    ``of_all`` has the tolerances of the size over all elements. None is judged within one quantum.
    """
    if _within_one_quantum(found) and not _figures_decide(found):
        return []
    figures = [_judge_figure(figure, found, yardsticks) for figure in found.judged_figures.values()]
    if _figures_decide(found):
        return figures
    parts = _PARTS if found.kind != "exact" else _PARTS[:-1]
    verdicts = [_judge_part(part, found, yardsticks) for part in parts]
    verdicts += _judge_runs(found, yardsticks, by_run)
    verdicts += [_judge_systematic(name, found, yardsticks, of_all) for name in _SYSTEMATIC]
    return [*(verdict for verdict in verdicts if verdict is not None), *figures]


def _figures_decide(found: OutputDifference) -> bool:
    return found.of_kind is not None and found.of_kind.decides


def _by_grade_and_excess(verdict: OutputVerdict) -> tuple[int, float]:
    numbers = verdict.reasons[0].numbers
    value, tolerance = numbers["value"] or 0.0, numbers["tolerance"] or 0.0
    return GRADES.index(verdict.grade), value / tolerance if tolerance else value


def _judge_part(part: _Part, found: OutputDifference, yardsticks: Yardsticks) -> OutputVerdict | None:
    farthest = part.of(found)
    if farthest is None:
        return None

    def size(other: OutputDifference) -> float:
        place = part.of(other)
        return 0.0 if place is None else place.size

    floor, _ = _coarsest(yardsticks, size)
    return _held_part(part, found, yardsticks, farthest, floor, {n: size(o) for n, o in yardsticks.precisions.items()})


def _judge_runs(found: OutputDifference, yardsticks: Yardsticks, by_run: ByRun) -> list[OutputVerdict]:
    """Each run by itself: granted is what the yardsticks show in this run, or in all runs together if that is more."""
    verdicts = []
    floor, _ = _coarsest(yardsticks, size_of)
    for place, (run, difference) in enumerate(by_run.items()):
        same = [others[run].size for others in yardsticks.runs.floor.values() if run in others]
        if same:
            moved = {
                name: max(yardsticks.runs.precisions[name][run].size, size_of(other))
                for name, other in yardsticks.precisions.items()
            }
            farthest = Farthest(place, difference.size)
            verdicts.append(_held_part(_RUN, found, yardsticks, farthest, max(floor, *same), moved))
    return verdicts


def _held_part(
    part: _Part,
    found: OutputDifference,
    yardsticks: Yardsticks,
    farthest: Farthest,
    floor: float,
    moved: Mapping[str, float],
) -> OutputVerdict:
    """The verdict on a part, with what the CPU variants and each precision move there."""
    least = _least(found, yardsticks)
    tolerances = {"equivalent": max(_FLOOR_FACTOR * floor, part.slack * least["equivalent"])}
    for precision in list(least)[1:]:
        by_precision = moved.get(precision, 0.0)
        is_least = precision not in moved or found.kind == "exact"
        rounding = least[precision] if is_least else _one_rounding(precision, yardsticks)
        granted = max(_PART_FACTOR * by_precision, part.slack * rounding)
        tolerances[precision] = max(_last(tolerances), by_precision, min(_COARSEST, granted))
    grade = _grade(farthest.size, tolerances)
    numbers = {"value": farthest.size, "index": farthest.index}
    reason = _held("farthest", grade, tolerances, numbers, {"part": part.name, "kind": found.kind})
    return OutputVerdict(grade, [reason], f"relative size of the difference in one {part.name}", tolerances)


def _judge_systematic(
    name: str, found: OutputDifference, yardsticks: Yardsticks, of_all: Mapping[str, float]
) -> OutputVerdict | None:
    """Of a factor or an offset: it may be the share of the whole tolerance that it is of the yardsticks' difference.

    Not beside another model, as quantising a model brings about both.
    """
    value = _SYSTEMATIC[name](found)
    if value is None or found.kind == "exact" or not found.relative_rms or yardsticks.other_model:
        return None

    def alike(other: OutputDifference) -> float:
        same = _SYSTEMATIC[name](other)
        return same.of_runs / other.relative_rms if same is not None and other.relative_rms else 0.0

    relative = found.relative_rms / found.quanta.rms if found.quanta is not None else 1.0
    tolerances: dict[str, float] = {}
    for grade, tolerance in of_all.items():
        measured = [yardsticks.precisions[grade]] if grade in yardsticks.precisions else yardsticks.floor.values()
        share = max([_LEAST_ALIKE, *map(alike, measured)])
        tolerances[grade] = max([*tolerances.values(), share * tolerance * relative])
    numbers = {"value": abs(value.value), "signed": value.value}
    reason = _held("systematic", _grade(abs(value.value), tolerances), tolerances, numbers, {"figure": name})
    return OutputVerdict(_grade(abs(value.value), tolerances), [reason], f"{name} of the difference", tolerances)


def _least(found: OutputDifference, yardsticks: Yardsticks) -> dict[str, float]:
    """What is granted at least to each grade, relative to the output."""
    if found.kind == "exact":
        return {"equivalent": 0.0, **dict.fromkeys(yardsticks.precisions, _INT8_SHARE), "int8": _INT8_SHARE}
    precisions = list(yardsticks.precisions) or (["int8"] if found.kind == "quantised" else ["fp16", "bf16"])
    if (yardsticks.other_model or found.kind == "quantised") and "int8" not in precisions:
        precisions.append("int8")
    expected = {precision: _expected_relative_rms(precision, yardsticks) for precision in precisions}
    return {"equivalent": _rounding(found, yardsticks), **expected}


def _rounding(found: OutputDifference, yardsticks: Yardsticks) -> float:
    """What kernels that are right may differ by: sixteen roundings per node that add up like noise."""
    if found.kind == "quantised":
        return 0.0
    own = _OWN_ROUNDOFF.get(found.dtype, UNIT_ROUNDOFF["float32"])
    return _FEW_ROUNDINGS * own * math.sqrt(max(1, yardsticks.node_count)) if own < 1e-6 else own


def _judge_figure(figure: JudgedFigure, found: OutputDifference, yardsticks: Yardsticks) -> OutputVerdict:
    def of(other: OutputDifference) -> float:
        same = other.judged_figures.get(figure.name)
        return 0.0 if same is None else same.value

    floor, _ = _coarsest(yardsticks, of)
    tolerances = {"equivalent": _granted(figure, 2 * floor)}
    for precision in list(_least(found, yardsticks))[1:]:
        measured = yardsticks.precisions.get(precision)
        usual = _unmeasured(figure) if measured is None else _YARDSTICK_FACTOR * of(measured)
        tolerances[precision] = max(_last(tolerances), _granted(figure, usual))
    grade = _grade(figure.value, tolerances)
    numbers, unit = {"value": figure.value, "of": figure.of}, figure.name.replace("_", " ")
    reasons = [_held("figure", grade, tolerances, numbers, {"figure": figure.name})]
    amplified = AMPLIFIED if _figures_decide(found) else _MOST_ANSWERS
    if grade != "diverged" and min(figure.value, tolerances[grade]) > amplified:
        return OutputVerdict("not decided", [*reasons, Reason("amplifies_rounding")], unit, tolerances)
    return OutputVerdict(grade, reasons, unit, tolerances)


def _unmeasured(figure: JudgedFigure) -> float:
    """What a precision is granted that was not measured."""
    return _COARSEST if figure.of is not None else _TIMES_THE_LEAST * figure.at_least


def _granted(figure: JudgedFigure, usual: float) -> float:
    """Of a share, three standard deviations and one more than is usual."""
    if figure.of is None:
        return max(figure.at_least, usual)
    usual = min(1.0, usual)
    return min(1.0, usual + 3 * math.sqrt(usual * (1 - usual) / figure.of) + 1 / figure.of)


def _judge_real(found: OutputDifference, yardsticks: Yardsticks) -> OutputVerdict:
    unit = "relative RMS of the difference"
    floor, variant = _coarsest(yardsticks, lambda other: other.relative_rms or 0.0)
    least = _least(found, yardsticks)
    tolerances = {"equivalent": max(min(_COARSEST_FLOOR, _FLOOR_FACTOR * floor), least["equivalent"])}
    for precision in list(least)[1:]:
        tolerances[precision] = max(_last(tolerances), min(_COARSEST, least[precision]))
    if found.relative_rms is None:
        return OutputVerdict("diverged", [Reason("no_relative_size")], unit, tolerances)
    grade = _decided(_grade(found.relative_rms, tolerances), found, yardsticks)
    size = {"value": found.relative_rms, "snr_db": found.snr_db}
    reasons = [_held("relative_rms", grade, tolerances, size, {}), Reason("no_noise_floor")]
    if yardsticks.floor:
        times = tolerances["equivalent"] / floor if floor else None
        reasons[1] = Reason("noise_floor", {"relative_rms": floor, "times": times}, {"variant": variant})
    return OutputVerdict(grade, _with_amplified(grade, reasons), unit, tolerances)


def _decided(grade: Grade, found: OutputDifference, yardsticks: Yardsticks) -> Grade:
    """``not decided`` where the model makes rounding itself large, unless the difference is small beside that."""
    if grade == "diverged":
        return grade
    by_rounding = _coarsest(yardsticks, size_of)[0]
    if grade in yardsticks.precisions:
        by_rounding = max(by_rounding, size_of(yardsticks.precisions[grade]))
    is_small = size_of(found) <= max(_SMALL * by_rounding, _rounding(found, yardsticks))
    return "not decided" if by_rounding > AMPLIFIED and not is_small else grade


def _with_amplified(grade: Grade, reasons: list[Reason]) -> list[Reason]:
    return [Reason("amplifies_rounding"), *reasons] if grade == "not decided" else reasons


def _coarsest(yardsticks: Yardsticks, figure: Callable[[OutputDifference], float]) -> tuple[float, str]:
    """The largest figure of a CPU variant, and which one that is, empty where none differs."""
    found = max(((figure(other), name) for name, other in yardsticks.floor.items()), default=(0.0, ""))
    return found[0], found[1] if found[0] else ""


def _expected_relative_rms(precision: str, yardsticks: Yardsticks) -> float:
    """Twice what was measured, at least one rounding (int8: one per node); by the nodes alone if not measured."""
    measured = yardsticks.precisions.get(precision)
    least = _one_rounding(precision, yardsticks)
    if measured is None or measured.relative_rms is None:
        return max(least, _FLOOR_FACTOR * UNIT_ROUNDOFF[precision] * math.sqrt(max(1, yardsticks.node_count)))
    return max(least, _YARDSTICK_FACTOR * measured.relative_rms)


def _one_rounding(precision: str, yardsticks: Yardsticks) -> float:
    """What a precision is granted even if the output does not move by it.

    A quantised model also rounds what flows between the nodes, over ranges that are wider than the values: twelve
    roundings per node, above what four models and their quantised versions show (0.03 to 0.16 for 10 to 31 nodes).
    """
    if precision == "bf16":
        return _TRUNCATED * UNIT_ROUNDOFF[precision]
    if precision != "int8":
        return UNIT_ROUNDOFF[precision]
    one_per_node = UNIT_ROUNDOFF[precision] * math.sqrt(max(1, yardsticks.node_count))
    return (_ROUNDINGS_OF_QUANTISATION if yardsticks.other_model else 1.0) * one_per_node


def _judge_quanta(found: OutputDifference, yardsticks: Yardsticks) -> OutputVerdict:
    assert found.quanta is not None
    noise_rms, variant = _coarsest(yardsticks, lambda other: other.quanta.rms if other.quanta else 0.0)
    noise_max = max((other.quanta.max for other in yardsticks.floor.values() if other.quanta), default=0)
    shaken = yardsticks.precisions.get("int8")
    expected = _YARDSTICK_FACTOR * shaken.quanta.rms if shaken is not None and shaken.quanta is not None else 0.0
    least = _by_chance(found) * max(_steps_used(found) / _STEPS, expected, _FLOOR_FACTOR * noise_rms)
    tolerances = {"equivalent": 2 * noise_rms, "int8": max(2 * noise_rms, _coarsest_quanta(found, least))}
    grade: Grade = _grade(found.quanta.rms, tolerances)
    if found.quanta.max <= 1:
        grade = "equivalent"
    elif grade == "equivalent" and found.quanta.max > max(2, 2 * noise_max):
        grade = "int8"
    if grade == "diverged" and not yardsticks.floor:
        within = (found.relative_rms or 0.0) <= _expected_relative_rms("int8", yardsticks)
        grade = "int8" if within else "diverged"
    if found.quanta.max > 1:
        grade = _decided(grade, found, yardsticks)
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
    return OutputVerdict(grade, _with_amplified(grade, reasons), "RMS of the difference in quanta", tolerances)


def _by_chance(found: OutputDifference) -> float:
    """By how much a root mean square of so few elements may be larger by chance: two standard deviations of its square.

    Where one element is off by several quanta and the others by none, as roundings of a whole model make it, squares
    have a standard deviation of about twice their mean.
    """
    return math.sqrt(1 + 4 / math.sqrt(max(1, found.elements)))


def _steps_used(found: OutputDifference) -> float:
    """How many steps the reference's values span."""
    assert found.quanta is not None
    low, high, largest = found.reference.low, found.reference.high, found.max
    if low is None or high is None or not largest or not found.quanta.max:
        return _STEPS
    return max(1.0, (high - low) / (largest / found.quanta.max))


def _coarsest_quanta(found: OutputDifference, tolerance: float) -> float:
    """At most what a relative difference of 0.5 is in quanta."""
    assert found.quanta is not None
    if not found.relative_rms:
        return tolerance
    return min(tolerance, found.quanta.rms * _COARSEST / found.relative_rms)


def _judge_share(found: OutputDifference, yardsticks: Yardsticks) -> OutputVerdict:
    """Whole numbers, truth values and texts: equal or not, with no distance that means something."""
    share = found.different / found.elements
    noise, variant = _coarsest(yardsticks, _share)
    tolerances = {"equivalent": min(_COARSEST_FLOOR, 2 * noise)}
    for precision, other in yardsticks.precisions.items():
        tolerances[precision] = max(_last(tolerances), min(_COARSEST, _YARDSTICK_FACTOR * _share(other)))
    if not yardsticks.precisions or "int8" in yardsticks.precisions:
        coarsest = min(_COARSEST_FLOOR, max(_FLOOR_FACTOR * noise, _INT8_SHARE))
        tolerances["int8"] = max(_last(tolerances), coarsest)
    grade = _decided(_grade(share, tolerances), found, yardsticks)
    size = {"share": share, "floor_share": noise if yardsticks.floor else None}
    reasons = [Reason("different_elements", size, {"variant": variant})]
    return OutputVerdict(grade, _with_amplified(grade, reasons), "share of elements that differ", tolerances)


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
    explanation = grade if grade in tolerances else list(tolerances)[-1]
    return Reason(kind, {**numbers, "tolerance": tolerances[explanation]}, {**names, "explanation": explanation})

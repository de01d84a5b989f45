"""From the difference of an output to a verdict, by one rule, which docs/compare.md has word for word.

A test is compared with the reference. So are, on the same inputs, the **noise floor**: CPU variants of the reference
(other kernels, other threads, all tensors kept, constants and inputs moved by a few float32 roundings; none with the
test's own kernels, in whatever runtime), and the **precisions**: copies of the model with constants and inputs in fp16
and bf16, and in int8 where it has constants of 8 bits or stands beside another model. A model that is int8 already has
three **int8 copies** instead of the one in int8: every bias moves at random by up to half a step of what its operator
gives, which is one more rounding.

1. **Broken**: NaN or infinity on one side; another shape; memory that was never written; where no variant does so and
   the size is above 0.0015, one number everywhere (one run is enough) or an earlier output again; keypoints on fewer
   than 64 numbers and a quarter of the other side's; outputs that differ by more than a few float32 roundings when the
   same input comes a second time, or in the first inference after loading: `diverged`. Where the reference does not
   repeat itself: `not decided`.
2. **Identical** in every element of every run: `identical`.
3. **Size** of the worst run: root mean square of the difference over that of the reference; of whole numbers the share
   that differs; of keypoints and boxes how far they move. Up to twice the worst run of the noise floor, or one quantum:
   `equivalent`. Up to twice the worst run of a precision, or 1.5 times the worst of the int8 copies: it explains the
   size, which is `within` it. A limit is never narrower than that of a finer grade. Of floats that of `equivalent` is
   at least 16 * 2^-24 * sqrt(nodes); that of fp16 is at least 0.0015, of bf16 0.0078, of int8 and its copies 2^-8 *
   sqrt(nodes), of int8 beside another model 12 times as much. In two cases what is explained is `not decided` all the
   same: where only int8 or its copies explain it, and both sides run one model; and where the size is above 0.02 and
   the limit that explains it is above 0.1 by what was measured, not as the least. On each axis of at most 1024 indices
   the worst channel, relative to its own size (of keypoints how far all runs move it to one side, from 1/256 of the
   picture on), must keep limits as well: twice the worst channel of that axis of the same variants, and of quantised
   outputs (of 8 elements and more) a quantum; but none is asked for beside another model. A reference near 0 counts as
   a tenth of all runs, in a channel as 0.001 or a hundredth of all, if less; as four quanta at least. A channel of
   floats changes no grade where its difference keeps the limit of `equivalent` relative to all channels, and is up to
   0.012 relative to itself.
4. **Answers** that changed, ties apart: best classes, pixels, keypoints, boxes from a score of 0.3 on. Slots behind a
   detector's last box do not exist; where all are filled, a box that scores as the lowest may be another. What
   explains the size must explain them as well, on the runs of the noise floor: a larger share that changed needs the
   next precision. Beyond the last precision it is `not decided` up to this share: twice the largest of any precision,
   plus a twentieth or one answer. Beside another model: up to half of all.
5. **Beyond all of these**: `diverged`. But `not decided` where all differences lie within one rounding of the largest
   value inside of the model; where both sides have NaN; where both give fewer than 4 different outputs, of two numbers
   at most or all 0; where the run was interrupted, or its time was over and no limit is kept of what was measured, or
   of what a precision is granted at least; and where nothing could be measured to compare with. So is what is
   `equivalent` only because CPU variants move an output of floats by half of its own root mean square.
6. **The reference is the odd one out** where a CPU variant is far from it (above 0.1, and above three times what the
   precisions move), and the test, which does not pass by 3 to 5, passes when it is compared with that instead: kernels
   with all tensors kept, or others, if no other kernels are near the reference. What is far is no noise floor; of a
   detector so is a variant with other boxes, a tenth of them or more and three times as many as with a precision.
7. **Operators** decide what 3 to 5 leave `not decided` for its size or its answers, where both sides run one model
   without a state here: each one by itself on exact inputs, as in `evaltools locate`, where all of them take at most
   20 s. If all keep their own limits by this rule, and one after the other give what the whole model gives:
   `equivalent`, or `within` the precision that they show. If one is wrong by itself and in the model: `diverged`.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Final, Literal

from msgspec import Struct, field
from msgspec.structs import replace

from evaltools.metrics.boxes import BoxAgreement
from evaltools.metrics.output_difference import KindFigures, OutputDifference, RunDifference
from evaltools.metrics.patterns import LEAST_QUANTA, Farthest
from evaltools.metrics.words import at_most_changing, two_digits

Grade = Literal[
    "identical", "equivalent", "fp16", "bf16", "int8", "not decided", "the reference is the odd one out", "diverged"
]
IDENTICAL: Final = "identical"
EQUIVALENT: Final = "equivalent"
NOT_DECIDED: Final = "not decided"
ODD_REFERENCE: Final = "the reference is the odd one out"
DIVERGED: Final = "diverged"
GRADES: Final[tuple[Grade, ...]] = (
    IDENTICAL, EQUIVALENT, "fp16", "bf16", "int8", NOT_DECIDED, ODD_REFERENCE, DIVERGED,
)  # fmt: skip
"""From best to worst; a precision means ``within expected precision of`` it."""
_PRECISIONS: Final[tuple[Grade, ...]] = ("fp16", "bf16", "int8")
PASSES: Final = GRADES[: GRADES.index(NOT_DECIDED)]
"""Those in which the difference is explained."""

TIMES: Final = 2.0
"""Of the worst run of a variant or precision; delegates that compute in one come out at 0.2 to 2 times it.

With 1.5 a MobileNet in bf16, which is right, is ``diverged``.
"""
TIMES_ONCE_MORE: Final = 1.5
"""Of the worst of the copies of a quantised model that round once more; XNNPACK comes out at 0.1 to 0.8 times it."""
AMPLIFIED: Final = 0.1
"""Where more is granted, a difference decides nothing."""
DROWNED: Final = 1.0
"""Where CPU kernels explain more, an output of floats is rounding, whatever its operators give one by one."""
SMALL: Final = 0.02
"""A smaller difference shows all the same that the sides are alike."""
FAR: Final = 3.0
"""Of what the precisions move: a variant that is farther away, and more than :data:`AMPLIFIED`, does not count."""
FEW_ANSWERS: Final = 0.05
"""Of the answers so many more, or one, may change before it is sure that rounding does not explain them."""
MATTERS: Final = 0.3
"""From this score on a box is judged: below, those of a quantised detector on noise come and go with any rounding."""
FEW_OUTPUTS: Final = 4
"""So many different outputs of the reference are the fewest that show something."""
FEW_LEVELS: Final = 64
"""Places with fewer different numbers, and a quarter of the other side's, are not computed as there."""
OF_LEVELS: Final = 4
FEW_ROUNDINGS: Final = 16.0
"""Of float32, granted per square root of nodes: sums in another order, where the variants happen to be equal."""
ROUNDOFF: Final[Mapping[str, float]] = {"fp16": 3 * 2.0**-11, "bf16": 2.0**-7, "int8": 2.0**-8}
"""Three roundings of fp16, two of bf16, of int8 one per square root of nodes, granted to a precision at least."""
ROUNDINGS_OF_QUANTISATION: Final = 12.0
"""Of int8 per square root of nodes, against a quantised model: above what four models show (0.03 to 0.16)."""
QUANTUM: Final = 1 / LEAST_QUANTA
"""A channel may be off by one quantum, in a reference that is near 0 and counts as four."""
CHANNEL_ROUNDINGS: Final = 8.0
"""As many of these are granted to a channel, of which one may be next to 0."""
NEXT_TO_ZERO: Final = CHANNEL_ROUNDINGS * ROUNDOFF["fp16"]
"""Of its own size a channel may be off by so much, where that is a few float32 roundings of all."""
ANSWERS_OF_QUANTISATION: Final = 0.5
"""Beside a model that is quantised so many may change: an autoencoder's largest element does in 6 of 20 runs."""
_OWN_ROUNDOFF: Final = {"float16": 2.0**-11, "bfloat16": 2.0**-8, "float64": 2.0**-24}
_FLOAT32: Final = 2.0**-24
_EXPLAINS: Final = 0.8
"""A factor that makes so much of the difference is named."""
OTHER_INPUTS: Final = "try others (--input_images, --input_files)"
NO_MORE_THAN: Final = ", no more than "
"""What stands before the limit that accepts a size."""
_REAL_DATA: Final = "accuracy on real data decides (imagenet, coco, a task of your own)"
_NO_NOISE_FLOOR: Final = "no noise floor was measured (--noise_floor_runs)"

ByRun = Mapping[int, RunDifference]


class Seen(Struct, frozen=True):
    """What the rule sees of one output, or of the boxes of a detector: each run by number, and the sum of all.

    ``difference`` is None of boxes.
    """

    runs: ByRun
    difference: OutputDifference | None = None

    @property
    def size(self) -> float:
        """The difference of the worst run; none within one quantum."""
        if self.difference is not None and self.difference.quanta is not None and self.difference.quanta.max <= 1:
            return 0.0
        return max((run.size for run in self.runs.values()), default=0.0)

    @property
    def channels(self) -> Mapping[int, Farthest]:
        """The worst channel of each axis; none within one quantum."""
        found = self.difference
        if found is None or (found.quanta is not None and found.quanta.max <= 1):
            return {}
        return found.farthest_channels

    @property
    def levels(self) -> tuple[int, int] | None:
        """How many numbers places have on both sides, None where they are none."""
        return self._of_kind.levels if self._of_kind else None

    def channel(self, axis: int) -> float:
        """The difference of the worst channel of an axis."""
        channels = self.channels
        return channels[axis].size if axis in channels else 0.0

    @property
    def aside(self) -> bool:
        """Whether channels say by how much all runs are off to one side."""
        return bool(self._of_kind and self._of_kind.aside)

    @property
    def _of_kind(self) -> KindFigures | None:
        return None if self.difference is None else self.difference.of_kind

    def share(self, runs: Collection[int]) -> float:
        """The share of answers that are others in some runs."""
        total = sum(self.runs[run].answers for run in runs)
        return sum(self.runs[run].changed for run in runs) / total if total else 0.0


class NoiseFloor(Struct, frozen=True):
    """What an output, or boxes, are compared with.

    ``variants`` has the CPU variants by name, ``precisions`` the copies in fp16, bf16 and int8, of which there may be
    several (``int8, ...``).
    ``other_model``: the two sides run different models, one of which may be quantised. ``missing`` says why not
    all of these were measured, empty where they were. ``largest`` is the largest value inside of the model, 0 where it
    is not known. ``interrupted``: somebody ended the run, and may want to go on. ``has_floats``: the model takes real
    numbers, so that fp16 and bf16 are precisions of it.
    """

    variants: Mapping[str, Seen]
    precisions: Mapping[str, Seen]
    node_count: int
    other_model: bool = False
    missing: str = ""
    largest: float = 0.0
    interrupted: bool = False
    has_floats: bool = False

    def runs_of(self, found: Seen) -> set[int]:
        """The runs that all of these have, of those that were found; all of these where nothing was measured."""
        measured = [set(other.runs) for other in (*self.variants.values(), *self.precisions.values()) if other.runs]
        return set.intersection(set(found.runs), *measured) or set(found.runs)


class OutputVerdict(Struct, frozen=True):
    """The grade of one output and why; ``tolerances`` has the largest size accepted for each grade.

    ``operators_may_decide``: its size decides nothing, and nothing else says why.
    """

    grade: Grade
    reasons: list[str]
    tolerances: dict[str, float] = field(default_factory=dict)
    operators_may_decide: bool = False


def worst(grades: Sequence[Grade]) -> Grade:
    """The worst of some grades, ``identical`` for none."""
    return max(grades, key=GRADES.index, default=IDENTICAL)


def far_variants(floor: Mapping[str, Seen], precisions: Mapping[str, Seen]) -> list[str]:
    """CPU variants that do not count: without the right numbers, standing still, or far from the reference."""
    rounding = max((other.size for other in precisions.values()), default=0.0)
    changed = max((other.share(other.runs) for other in precisions.values()), default=0.0)
    return [name for name, found in floor.items() if _is_unusable(found, rounding, changed)]


def _is_unusable(found: Seen, rounding: float, changed: float) -> bool:
    """Precisions move it by ``rounding``, and this share of its boxes is ``changed`` with them."""
    difference = found.difference
    if difference is not None and (_damage(difference) or _stands_still(difference)):
        return True
    has_other_boxes = difference is None and found.share(found.runs) > max(AMPLIFIED, FAR * changed)
    return has_other_boxes or found.size > max(AMPLIFIED, FAR * rounding)


def judge_output(found: Seen, noise_floor: NoiseFloor) -> OutputVerdict:
    """Grade one output by the rule."""
    difference = found.difference
    assert difference is not None
    damage = _damage(difference)
    if damage:
        return OutputVerdict(DIVERGED, [damage])
    if difference.reference.nan:
        return OutputVerdict(NOT_DECIDED, [_not_finite(difference)])
    if difference.identical:
        return OutputVerdict(IDENTICAL, [_identical(difference)])
    verdict = judge_runs(found, noise_floor)
    broken = _stands_still(difference) or _not_computed(found, noise_floor) or _on_few_levels(found, noise_floor)
    if broken and found.size > ROUNDOFF["fp16"]:
        return replace(verdict, grade=DIVERGED, reasons=[broken, *verdict.reasons], operators_may_decide=False)
    distinct = max(difference.test.distinct_outputs, difference.reference.distinct_outputs)
    if distinct < min(FEW_OUTPUTS, difference.runs) and not difference.reference.between:
        few = f"there are {distinct} different outputs in {difference.runs} runs, which show little; {OTHER_INPUTS}"
        return replace(verdict, grade=NOT_DECIDED, reasons=[few, *verdict.reasons], operators_may_decide=False)
    return verdict


class _Granted(Struct, frozen=True):
    """What one grade accepts: a size, of which so much was measured, channels by axis, and a share of other answers.

    Channels that keep their limits by the size of all may be off by ``small_channels`` of their own.
    """

    grade: Grade
    size: float
    measured: float
    channels: Mapping[int, float]
    share: float
    small_channels: float = 0.0

    def accepts(self, size: float, channels: Mapping[int, Farthest], share: float) -> bool:
        """Whether nothing of this is more than it accepts."""
        return size <= self.size and not self.beyond(channels) and share <= self.share

    def beyond(self, channels: Mapping[int, Farthest]) -> list[int]:
        """The axes on which a channel is farther off than is accepted."""
        return [
            axis
            for axis, found in channels.items()
            if found.size > self.channels[axis]
            and (found.size > self.small_channels or found.beside_all > self.channels[axis])
        ]

    def decides(self, size: float, share: float) -> bool:
        """Whether what it accepts is so little, or the difference so small, that it shows that the sides are alike."""
        return (self.measured <= AMPLIFIED or size <= SMALL) and (self.share <= AMPLIFIED or share <= SMALL)


def judge_runs(found: Seen, noise_floor: NoiseFloor) -> OutputVerdict:
    """Grade runs by size, channel and answers."""
    size, channels, share = found.size, found.channels, found.share(noise_floor.runs_of(found))
    granted = _granted(found, noise_floor)
    accepting = next((each for each in granted if each.accepts(size, channels, share)), None)
    coarsest = [entry for entry in granted if entry.grade != NOT_DECIDED][-1]
    why = _why_not_decided(accepting, share, coarsest.share, noise_floor)
    cancelled = ""
    if not why and (accepting is None or not accepting.decides(size, share)):
        amplified = f"this model amplifies rounding on these inputs; {_REAL_DATA}" if accepting else ""
        cancelled = _cancelled(found.difference, noise_floor) or _drowned(found.difference, accepting)
        why = cancelled or amplified
    explaining = coarsest if accepting is None or accepting.grade == NOT_DECIDED else accepting
    grade = NOT_DECIDED if why else DIVERGED if accepting is None else accepting.grade
    reasons = [*([why] if why else []), *_said(found, explaining, granted[0], noise_floor)]
    tolerances: dict[str, float] = {entry.grade: entry.size for entry in granted}
    return OutputVerdict(grade, reasons, tolerances, operators_may_decide=bool(why and not cancelled))


def _why_not_decided(accepting: _Granted | None, share: float, explained: float, noise_floor: NoiseFloor) -> str:
    """Why neither a pass nor ``diverged`` is shown, empty where one is.

    ``share`` is that of the answers which are others, ``explained`` the one that rounding explains.
    """
    grade = None if accepting is None else accepting.grade
    if grade == EQUIVALENT or (grade in PASSES and not noise_floor.interrupted):
        return ""  # whatever else is measured makes limits wider
    if noise_floor.missing:
        return noise_floor.missing
    if accepting is None:
        return "" if noise_floor.variants or noise_floor.precisions else _NO_NOISE_FLOOR
    if share <= explained:
        return f"rounding in another way explains it, but so may a fault; {_REAL_DATA}"
    if share == 1:
        return f"all answers changed, more than rounding explains; {_REAL_DATA}"
    return f"more answers changed than rounding explains, but few; {_REAL_DATA}"


def _granted(found: Seen, noise_floor: NoiseFloor) -> list[_Granted]:
    """What each grade accepts, from the finest to the coarsest, ``not decided`` last."""
    runs, floor = noise_floor.runs_of(found), noise_floor.variants.values()
    measured = TIMES * max((other.size for other in floor), default=0.0)
    least = _rounding(found.difference, noise_floor.node_count)
    size = max(measured, least)
    is_quantised = found.difference is not None and found.difference.quanta is not None
    least_of_channel = math.inf if noise_floor.other_model else QUANTUM if is_quantised and not found.aside else 0.0
    channels = dict.fromkeys(found.channels, least_of_channel)
    channels = _wider(channels, CHANNEL_ROUNDINGS * least, floor)
    share = max((other.share(runs) for other in floor), default=0.0)
    is_float = found.difference is not None and found.difference.kind == "real"
    granted = [_Granted(EQUIVALENT, size, measured, channels, share, NEXT_TO_ZERO if is_float else 0.0)]
    for grade in _PRECISIONS:
        named = {
            name: seen for name, seen in noise_floor.precisions.items() if name.partition(",")[0] == grade and seen.runs
        }
        others, times = named.values(), TIMES if grade in named else TIMES_ONCE_MORE
        is_late = bool(noise_floor.missing) and noise_floor.has_floats and grade != "int8"
        if not others and not is_late and (grade != "int8" or not noise_floor.other_model):
            continue
        measured = max([measured, *(times * other.size for other in others)])
        least = _one_rounding(grade, noise_floor, found.difference)
        size = max(size, measured, least)
        channels = _wider(channels, CHANNEL_ROUNDINGS * least, others, times)
        share = max([share, *(other.share(runs & set(other.runs)) for other in others)])
        if grade != "int8" or noise_floor.other_model:
            granted.append(_Granted(grade, size, measured, channels, share))
    answers = sum(found.runs[run].answers for run in runs)
    share = TIMES * share + (max(FEW_ANSWERS, 1 / answers) if answers else 0.0)
    open_share = max(share, ANSWERS_OF_QUANTISATION) if noise_floor.other_model else share
    return [*granted, _Granted(NOT_DECIDED, size, measured, channels, open_share)]


def _wider(
    channels: Mapping[int, float], least: float, others: Collection[Seen], times: float = TIMES
) -> dict[int, float]:
    """The limits of channels, so wide that they accept the least and what these others explain."""
    return {
        axis: max([limit, least, *(times * other.channel(axis) for other in others)])
        for axis, limit in channels.items()
    }


def _rounding(difference: OutputDifference | None, node_count: int) -> float:
    """What kernels that are right may differ by, whatever the variants show."""
    if difference is not None and difference.kind != "real":
        return 0.0
    own = _OWN_ROUNDOFF.get(difference.dtype, _FLOAT32) if difference is not None else _FLOAT32
    return own if own > 1e-6 else FEW_ROUNDINGS * own * math.sqrt(max(1, node_count))


def _one_rounding(precision: str, noise_floor: NoiseFloor, difference: OutputDifference | None) -> float:
    """What a precision is granted even if the output does not move by it."""
    if difference is not None and difference.kind == "exact":
        return 0.0
    if precision != "int8":
        return ROUNDOFF[precision]
    roundings = ROUNDINGS_OF_QUANTISATION if noise_floor.other_model else 1.0
    return roundings * ROUNDOFF[precision] * math.sqrt(max(1, noise_floor.node_count))


def repeats_itself(found: Seen, node_count: int) -> bool:
    """Whether an output came again as it was, but for a few roundings of floats."""
    difference = found.difference
    assert difference is not None
    if difference.identical:
        return True
    is_close = found.size <= _rounding(difference, node_count) and not _damage(difference)
    return is_close and difference.kind == "real" and difference.quanta is None


def _drowned(difference: OutputDifference | None, accepting: _Granted | None) -> str:
    """Where the kernels of the CPU alone move an output of floats by half of its size."""
    if difference is None or difference.kind != "real" or accepting is None or accepting.grade != EQUIVALENT:
        return ""
    if accepting.measured <= DROWNED:
        return ""
    return (
        f"CPU kernels alone move this output by {two_digits(accepting.measured / TIMES)} of its size, as where large "
        f"values cancel each other; {_REAL_DATA}"
    )


def _cancelled(difference: OutputDifference | None, noise_floor: NoiseFloor) -> str:
    """Where every difference lies within one rounding of the largest value inside of the model."""
    if difference is None or difference.kind != "real" or (difference.max or 0.0) > 2 * _FLOAT32 * noise_floor.largest:
        return ""
    return (
        "no difference is larger than one rounding of the largest value inside of the model "
        f"({noise_floor.largest:.3g}), compared with which the output is small; {_REAL_DATA}"
    )


def _damage(found: OutputDifference) -> str:
    """What makes figures meaningless."""
    if not found.same_shape:
        return "the shapes of the outputs differ"
    missing = found.elements - found.compared - found.same_not_finite
    sides = (found.test, found.reference)
    if any(side.nan or side.infinite for side in sides) and missing:
        return _not_finite(found)
    if found.kind != "exact" and missing:
        return f"{missing} of {found.elements} elements have no counterpart of their type"
    if not found.never_written:
        return ""
    return (
        f"{found.never_written} denormal numbers (below 1e-37) stand where the other side has ordinary values: memory "
        "that was never written looks like this"
    )


def _not_finite(found: OutputDifference) -> str:
    counts = []
    for name, side in (("test", found.test), ("reference", found.reference)):
        words = [f"{count} {word}" for count, word in ((side.nan, "NaN"), (side.infinite, "infinite")) if count]
        counts += [f"the {name} has {' and '.join(words)}"] if words else []
    return f"{' and '.join(counts)} of {found.elements} values"


def _identical(found: OutputDifference) -> str:
    """With the largest share of such inputs that may differ all the same: the exact bound of none of so many runs."""
    if not found.elements:
        return "it has no elements, so nothing was compared"
    sure = f"95 % confident: fewer than {at_most_changing(found.runs)} of such inputs differ"
    return f"identical in every element of {found.runs} runs; {sure}"


def _stands_still(found: OutputDifference) -> str:
    """One side is the same in every run, or one number everywhere, and the other is not."""
    for side, other, name in ((found.test, found.reference, "test"), (found.reference, found.test, "reference")):
        if side.constant and not other.constant:
            return f"the {name}'s output is {side.low or 0.0:g} everywhere, in every run"
        moves = other.distinct_outputs >= min(FEW_OUTPUTS, found.runs) > 1
        if moves and side.distinct_outputs == 1:
            return f"the {name}'s output is the same in every run, whatever the input"
    return ""


def _not_computed(found: Seen, noise_floor: NoiseFloor) -> str:
    """Runs that give an earlier output, or one number everywhere, where no variant does so as often."""
    others = [other.runs.values() for other in (*noise_floor.variants.values(), *noise_floor.precisions.values())]
    runs = found.runs.values()
    repeated, level = sum(run.repeats for run in runs), sum(run.is_level for run in runs)
    if repeated > max((sum(run.repeats for run in other) for other in others), default=0):
        return f"the outputs of {repeated} of {len(runs)} runs are earlier ones, where the other side gives others"
    if level > max((sum(run.is_level for run in other) for other in others), default=0):
        return f"in {level} of {len(runs)} runs one side has the same number everywhere, and the other has not"
    return ""


def _on_few_levels(found: Seen, noise_floor: NoiseFloor) -> str:
    """Places that have few different numbers on one side, where no variant has so few."""
    levels = found.levels
    if levels is None or noise_floor.other_model:
        return ""
    fewest, most = min(levels), max(levels)
    others = [other.levels for other in (*noise_floor.variants.values(), *noise_floor.precisions.values())]
    if fewest >= FEW_LEVELS or OF_LEVELS * fewest > most or any(other and other[0] <= fewest for other in others):
        return ""
    side = "test" if levels[0] == fewest else "reference"
    return f"the places of the {side} have {fewest} different numbers, those of the other side {most}"


def seen_boxes(boxes: Mapping[int, BoxAgreement]) -> Seen:
    """The runs of a detector."""
    return Seen({run: run_of_boxes(agreement) for run, agreement in boxes.items()})


def run_of_boxes(found: BoxAgreement) -> RunDifference:
    """How far boxes move and scores change on average, and how many have no partner of their class."""
    moved = float(bool(found.lost)) if found.mean_iou is None else 1 - found.mean_iou
    total = 2 * found.matched + found.lost + found.new
    unmatched = found.lost + found.new + 2 * found.class_changes
    return RunDifference(max(moved, found.mean_score_shift or 0.0), unmatched, total)


def judge_boxes(boxes: Mapping[int, BoxAgreement], noise_floor: NoiseFloor) -> OutputVerdict:
    """Grade the boxes of a detector by the rule; those that score too little to matter are not among them."""
    found = seen_boxes(boxes)
    total = sum(boxes.values(), start=BoxAgreement.nothing())
    if not any(run.answers for run in found.runs.values()):
        return OutputVerdict(NOT_DECIDED, [f"no box scores enough to matter on these inputs; {OTHER_INPUTS}"])
    verdict = judge_runs(found, noise_floor)
    if verdict.grade == EQUIVALENT and not any(run.size or run.changed for run in found.runs.values()):
        verdict = replace(verdict, grade=IDENTICAL)
    iou = "" if total.mean_iou is None else f" (mean IoU {total.mean_iou:.3f})"
    others = f"{total.lost} lost, {total.new} new, {total.class_changes} of another class"
    return replace(verdict, reasons=[*verdict.reasons, f"{total.matched} boxes matched{iou}, {others}"])


def _said(found: Seen, granted: _Granted, equivalent: _Granted, noise_floor: NoiseFloor) -> list[str]:
    """The worst run and channel compared with what is granted, the noise floor, the answers, and what it looks like.

    Where the size alone is ``equivalent``, what is not comes first.
    """
    difference, reasons = found.difference, []
    quanta = None if difference is None else difference.quanta
    if quanta is not None:
        equal, one, two, more = (f"{100 * (share or 0):.3g} %" for share in quanta.shares)
        sizes = f"RMS {two_digits(quanta.rms)}, max {quanta.max} {'quantum' if quanta.max == 1 else 'quanta'}"
        reasons.append(
            f"{equal} of the elements are equal, {one} off by 1 quantum, {two} by 2, {more} by more; {sizes}"
        )
    if quanta is None or quanta.max > 1:
        reasons.append(_worst_run(found, granted))
    if beyond := granted.beyond(found.channels):
        reasons.append(_worst_channel(found, beyond, granted))
    if noise_floor.variants:
        variant = max(noise_floor.variants, key=lambda name: noise_floor.variants[name].size)
        floor = noise_floor.variants[variant].size
        of_variant = f" ({variant})" if floor else ""
        reasons.append(f"worst run of the CPU variants: {two_digits(floor)}{of_variant}")
    elif not noise_floor.missing:
        reasons.append(_NO_NOISE_FLOOR)
    total = sum(run.answers for run in found.runs.values())
    if total:
        reasons.append(f"answers changed: {sum(run.changed for run in found.runs.values())} of {total}")
    reasons += _explanations(difference)
    if granted.grade == EQUIVALENT or found.size > equivalent.size or granted.beyond(found.channels):
        return reasons
    if beyond := equivalent.beyond(found.channels):
        return [f"{_worst_channel(found, beyond, equivalent)} by CPU kernels", *reasons]
    return [_more_answers(found, noise_floor), *reasons]


def _worst_channel(found: Seen, beyond: Sequence[int], granted: _Granted) -> str:
    axis = max(beyond, key=found.channel)
    side = "to one side " if found.aside else ""
    off = f"channel {found.channels[axis].index} of axis {axis} is off {side}by {two_digits(found.channel(axis))}"
    return f"{off}, where {two_digits(granted.channels[axis])} is explained"


def _more_answers(found: Seen, noise_floor: NoiseFloor) -> str:
    """How many answers are others than CPU kernels change, in the runs of the noise floor."""
    runs = noise_floor.runs_of(found)
    changed = max((sum(other.runs[run].changed for run in runs) for other in noise_floor.variants.values()), default=0)
    of_test, total = (sum(getattr(found.runs[run], name) for run in runs) for name in ("changed", "answers"))
    return f"{of_test} of {total} answers changed in {len(runs)} runs, where CPU kernels change {changed}"


def _worst_run(found: Seen, granted: _Granted) -> str:
    """The run that decides, with the limit that its size is compared with."""
    index = max(found.runs, key=lambda run: found.runs[run].size)
    kind = "boxes" if found.difference is None else found.difference.kind
    what = {
        "exact": "of the less frequent elements differ",
        "boxes": "is how far boxes move or scores change on average",
    }.get(kind, "relative RMS")
    name = "CPU kernels explain" if granted.grade == EQUIVALENT else f"rounding to {granted.grade} explains"
    more = NO_MORE_THAN if found.size <= granted.size else ", more than "
    return f"run {index} is worst, {two_digits(found.size)} {what}{more}{name} ({two_digits(granted.size)})"


def _explanations(found: OutputDifference | None) -> list[str]:
    """What makes most of the difference, where one thing does; it decides nothing."""
    if found is None or not found.relative_rms or found.gain is None:
        return []
    if abs(found.gain) <= _EXPLAINS * found.relative_rms:
        return []
    return [f"all values together are {100 * abs(found.gain):.2g} % {'larger' if found.gain > 0 else 'smaller'}"]

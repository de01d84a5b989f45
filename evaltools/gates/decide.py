"""Decides limits: from a limit and what was measured to a verdict."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from evaltools.gates.accuracy_verdict import RESTS_ON_TWO, what_is_unseen
from evaltools.gates.bounds import change_of, is_a_share, mean_of, share_of
from evaltools.gates.criteria import Criterion
from evaltools.gates.evidence import Evidence
from evaltools.gates.units import without_unit
from evaltools.metrics.between_runs import IndependentMeans, IndependentShares
from evaltools.metrics.interval import Interval, confidence_of_each
from evaltools.metrics.latency import LatencyRatio, at_confidence, rounds_to_decide
from evaltools.metrics.means import FEWEST_DIFFERING, FEWEST_UNEQUAL, MeanChange, MeanOfScores
from evaltools.metrics.power import POWER, examples_to_place
from evaltools.metrics.proportions import share_bound
from evaltools.metrics.words import ends
from evaltools.parameter import did_you_mean
from evaltools.report.words.numbers import in_unit, number_in
from evaltools.result.figure import Figure, Part
from evaltools.result.verdict import GateVerdict

_NO_OLD: Final = (
    "there is no earlier evaluation to compare with; give --against=OLD.json, or against in the run (of benchmarks "
    "--against compares the times by itself)"
)
_NO_NUMBER: Final = "no number: a side has NaN or infinite values or another shape, or the reference is 0 everywhere"
_AT_THE_LIMIT: Final = "what was found is so close to the limit that no number of examples would decide; move the limit"
IN_ONE_RUN: Final = (
    "for a smaller one measure both in one command, in turns: evaltools benchmark OLD.tflite NEW.tflite --rounds=10, "
    "and limit latency_ratio of the new one"
)
_JUMPED: Final = (
    "the times jumped or drifted while they were measured, so the ratio has no interval; measure where nothing else "
    "runs and the clock is steady"
)
_MEDIANS_ONLY: Final = (
    "only the medians of both are known, no single times on the same examples, so there is no interval; leave 'at ...' "
    "out"
)
_STATE_BOUNDS: Final = "state its bounds=(LOWEST, HIGHEST)"
_FEW_UNEQUAL: Final = (
    f"fewer than {FEWEST_UNEQUAL} examples are unequal and no bounds of single ones are known, so nothing says how "
    f"others would be; measure more, or {_STATE_BOUNDS} where it is a mean"
)
_NO_GUARANTEE: Final = (
    f"no bounds of single examples are known, so nothing is guaranteed; {_STATE_BOUNDS}, or leave 'guaranteed' out"
)
_TOO_FEW: Final = "too few examples to decide"
_ONE_EXAMPLE: Final = "one example says nothing of others; measure more"
_TOP_K: Final = re.compile(r"top(\d+)")
_LEAST_ABOVE_CHANCE: Final = 0.1
"""The share of what guessing leaves wrong that a classifier has to get right for its losses to say something."""
_LEAST_OF_OTHERS: Final = 0.01
"""The same of figures that are 0 where answers are guessed, such as COCO's."""
_OF_OLD_TIMES: Final = 0.95
"""The confidence of a limit on times vs old that states none."""


class Found(Struct, frozen=True):
    """What a limit was compared with: ``figure`` in the words of limits, such as ``top1 drop``, and its ``value``.

    ``value`` is None, or NaN, where there is no number. ``low`` and ``high`` are the one-sided bounds at the confidence
    of a limit that has one. ``output`` names the output that decides, ``processes`` counts those behind a latency ratio
    with bounds. ``unit`` is that of the limit, or else of the figure: a share, 0..1, is given in ``%`` or ``points``.
    ``of_medians``: a latency ratio of two medians, not of times on the same examples.

    >>> Found("top1 drop", 0.005, 0.001, 0.009).high
    0.009
    """

    figure: str
    value: float | None
    low: float | None = None
    high: float | None = None
    output: str | None = None
    processes: int | None = None
    unit: str = ""
    of_medians: bool = False

    @property
    def number(self) -> str:
        """What was found without the name of the figure, for a cell beside the limit, which names it.

        >>> Found("top1 drop", 0.0, -0.0123, 0.0123, unit="points").number
        '0 points (-1.23 to 1.23)'
        >>> Found("latency_ratio", 0.5, 0.45, 0.6, processes=1).number
        '0.5 (0.45 to 0.6) of these processes while this was measured'
        """
        low, high = (number_in(each, self.unit) for each in (self.low, self.high))
        span = "" if self.low is None else f" {ends(low, high)}"
        where = "" if self.output is None else f" in {self.output}"
        basis = {None: "", 1: " of these processes while this was measured"}.get(
            self.processes, f" of such ({self.processes}) processes"
        )
        return f"{in_unit(self.value, self.unit)}{span}{where}{' of medians' if self.of_medians else basis}"

    @property
    def text(self) -> str:
        """The figure with what was found.

        >>> Found("max_error", None, output="boxes").text
        'max_error no number in boxes'
        """
        return f"{self.figure} {self.number}"


class Decision(Struct, frozen=True):
    """The verdict on one limit for one configuration.

    ``found`` is what the limit was compared with, None where there is nothing; ``reason`` why it did not pass, with the
    next step, empty where ``found`` says it all. ``examples`` counts those that the figures are of. ``examples_needed``
    would decide an inconclusive one in 80 % of cases, None where no number would, or none is known.
    """

    configuration: str
    limit: str
    verdict: GateVerdict
    found: Found | None = None
    reason: str = ""
    examples_needed: int | None = None
    examples: int = 0

    @property
    def text(self) -> str:
        """The decision in one line.

        >>> Decision("xnnpack", "top1 >= 70 %", "pass", Found("top1", 0.75)).text
        'xnnpack: top1 >= 70 %: pass: top1 0.75'
        """
        found = "" if self.found is None else self.found.text
        return ": ".join(
            filter(None, (self.configuration, self.limit, self.verdict, "; ".join(filter(None, (found, self.reason)))))
        )


class _NothingShown(Exception):
    """Why a limit is ``not measured``."""


class _Known(Struct, frozen=True):
    """What a limit is compared with; ``bounds`` has its one-sided bounds by their confidence, where there are some.

    What is of one output is judged as it was found. ``open`` says why there are none, or why they decide nothing.
    ``how_many`` is the number of examples that would decide beside so many limits, where that can be known, and
    ``how_many_rounds`` that of rounds. ``unseen`` says what a bound that keeps a limit cannot see.
    """

    found: Found
    bounds: Callable[[float], Interval] | None = None
    open: str = ""
    how_many: Callable[[int], int | None] | None = None
    how_many_rounds: Callable[[int], int | None] | None = None
    unseen: str = ""


def decide(criterion: Criterion, evidence: Evidence, limits_together: int = 1) -> Decision:
    """Compare one limit with one configuration.

    A configuration that was not measured, or measured on something else than it asked for, keeps no limit. With a
    confidence a limit is kept where the one-sided bound is on its right side, broken where the other bound is on its
    wrong side, else inconclusive. Of ``limits_together`` each is broken only at the stricter confidence that so many
    need.

    >>> from evaltools.gates.criteria import parse_criterion
    >>> from evaltools.result.figure import Figure
    >>> decide(parse_criterion("top1 >= 70 %"), Evidence("xnnpack", figures={"top1": Figure(0.75)})).verdict
    'pass'
    """
    try:
        used = _compared_with(criterion, evidence)
        decision = _decided(criterion, used, limits_together)
        if decision.verdict == "pass":
            _require_sound_reference(criterion, used)
    except _NothingShown as why:
        is_skipped = evidence.cannot_exist and evidence.allowed.missing
        verdict: GateVerdict = "skipped" if is_skipped else "not measured"
        hint = "; allow_missing = true in the gate skips what cannot exist here" if evidence.cannot_exist else ""
        decision = Decision(
            evidence.configuration, criterion.text, verdict, reason=f"{why}{'' if is_skipped else hint}"
        )
    if evidence.examples == 1 and decision.verdict in ("pass", "fail") and _is_of_examples(criterion, evidence):
        decision = replace(decision, verdict="inconclusive", reason=_ONE_EXAMPLE)
    return replace(decision, examples=evidence.examples)


def _is_of_examples(criterion: Criterion, evidence: Evidence) -> bool:
    """Whether a limit is on how well examples are answered, which one of them says nothing of."""
    metric = criterion.metric
    is_answered = bool(metric.bounds) or metric.is_of_own_task or (metric.is_share and metric.of_reference)
    return is_answered and criterion.figure in evidence.figures and not metric.is_per_output


def _require_sound_reference(criterion: Criterion, evidence: Evidence) -> None:
    """Raise where a drop within its limit shows nothing, as the reference itself is not much better than guessing.

    Where the figure has a limit of its own beside, that says how good the configuration has to be; an earlier result
    that users have says so, too.
    """
    base = evidence.base.get(criterion.figure)
    if criterion.kind != "drop" or base is None or base.value is None or not criterion.metric.is_share:
        return
    against = "the earlier result" if criterion.of_old else "the reference"
    has = f"{against} itself has {criterion.figure} {in_unit(base.value, '%')}"
    if base.value <= criterion.value:
        raise _NothingShown(
            f"{has}, so nothing drops by more than {number_in(criterion.value, 'points')} points, and no model could "
            f"break this limit; set a smaller one, or one on the figure: {criterion.figure} >= ... %"
        )
    is_stated = criterion.of_old or criterion.figure in evidence.limited
    if not is_stated and base.value <= _hardly_more_than(criterion, evidence.classes):
        raise _NothingShown(
            f"{has}, hardly more than guessing, and a ruined model loses nothing against a ruined one; check model, "
            f"labels and preprocessing, or say in the same gate how good it has to be: {criterion.figure} >= ... %"
        )


def _hardly_more_than(criterion: Criterion, classes: int) -> float:
    """The share up to which a figure is hardly more than what guessing gives."""
    top = _TOP_K.fullmatch(criterion.figure)
    if top is None:
        return _LEAST_OF_OTHERS
    chance = min(1.0, int(top[1]) / classes) if classes else 0.0
    return chance + _LEAST_ABOVE_CHANCE * (1 - chance)


def _compared_with(criterion: Criterion, evidence: Evidence) -> Evidence:
    """The evidence with what the limit is about in the place of the reference; raises where it shows nothing."""
    used = evidence.old if criterion.of_old and not evidence.not_measured else evidence
    if used is None:
        raise _NothingShown(_NO_OLD)
    is_of_time = criterion.figure.startswith("latency")
    obstacles = (
        used.not_measured,
        used.reference_not_measured if criterion.is_relative else "",
        "emulated: no latency; measure it on the device" if is_of_time and used.is_emulated else "",
        used.busy if is_of_time else "",
    )
    for obstacle in filter(None, obstacles):
        raise _NothingShown(obstacle)
    return used


def _decided(criterion: Criterion, evidence: Evidence, limits_together: int) -> Decision:
    known = _known(criterion, evidence)
    found, confidence = known.found, criterion.confidence
    if criterion.kind == "ratio" and criterion.of_old:
        confidence = confidence or _OF_OLD_TIMES
    if confidence is None or found.output is not None:
        is_number = found.value is not None and not math.isnan(found.value)
        verdict: GateVerdict = "pass" if is_number and _keeps(criterion, found.value or 0.0) else "fail"
        return Decision(evidence.configuration, criterion.text, verdict, found, "" if is_number else _NO_NUMBER)
    if known.open and known.bounds is None:
        return Decision(evidence.configuration, criterion.text, "inconclusive", found, known.open)
    interval = None if known.bounds is None else known.bounds(confidence)
    if known.bounds is None or interval is None or math.isnan(interval.low) or math.isnan(interval.high):
        raise _NothingShown(f"{criterion.figure} has no interval in this result")
    found = replace(found, low=interval.low, high=interval.high)
    verdict = verdict_of(criterion, interval, known.bounds(confidence_of_each(confidence, limits_together)))
    decision = Decision(evidence.configuration, criterion.text, verdict, found)
    if known.open:
        return replace(decision, verdict="inconclusive", reason=known.open)
    if verdict != "inconclusive":
        return replace(decision, reason=known.unseen) if verdict == "pass" else decision
    if criterion.kind == "ratio" and criterion.of_old:
        decides = interval.high / (found.value or 1.0)
        reason = f"two runs are two moments of the machine, and decide limits from {decides:.2f} on if both are as fast"
        return replace(decision, reason=f"{reason}; {IN_ONE_RUN}")
    needed = None if known.how_many is None else known.how_many(limits_together)
    if known.how_many is not None and needed is None:
        return replace(decision, reason=_AT_THE_LIMIT)
    if known.how_many_rounds is not None:
        return replace(decision, reason=_more_rounds(known.how_many_rounds(limits_together)))
    more = f"measure more{', or where nothing else runs' if found.figure.startswith('latency') else ''}"
    if needed is not None:
        more = f"about {needed} would do in {100 * POWER:g} % of cases if they are like these"
    is_beyond = verdict_of(criterion, interval, interval) == "fail"
    why = f"beyond it, but not clearly enough for one of {limits_together} limits" if is_beyond else _TOO_FEW
    return replace(decision, reason=f"{why}; {more}", examples_needed=needed)


def _more_rounds(needed: int | None) -> str:
    if needed is None:
        return _AT_THE_LIMIT.replace("examples", "rounds")
    return (
        f"too few rounds to decide; about {needed} (--rounds={needed}) would do in {100 * POWER:g} % of cases if they "
        "are like these"
    )


def _known(criterion: Criterion, evidence: Evidence) -> _Known:
    if criterion.kind in ("drop", "rise"):
        return _change(criterion, evidence)
    if criterion.kind == "ratio":
        return _ratio(criterion, evidence)
    if criterion.output is not None or any(criterion.figure in output.figures for output in evidence.outputs):
        return _worst_output(criterion, evidence)
    if criterion.figure not in evidence.figures:
        raise _NothingShown(_no_such_figure(criterion, evidence))
    figure = evidence.figures[criterion.figure]
    if figure.value is None:
        raise _NothingShown(
            f"{criterion.figure} has no value: there is nothing in the data that it could be measured on"
        )
    found = Found(criterion.figure, figure.value, unit=criterion.unit or criterion.metric.unit)
    _require_unit(criterion, figure)
    mean, share = mean_of(figure), share_of(figure)
    if mean is not None:
        if why := _why_without_bounds(mean, criterion):
            return _Known(found, open=why)
        bound = mean.guaranteed if criterion.is_guaranteed else mean.bound
        return _Known(found, partial(_bounds, bound), _why_open(mean, criterion))
    if share is None or share.count == 0:
        return _Known(found)
    counts = (share.successes, share.count)

    def how_many(limits_together: int) -> int | None:
        of_each_side = (1, limits_together) if criterion.at_most else (limits_together, 1)
        return examples_to_place(*counts, criterion.value, criterion.confidence or 0.0, of_each_side)

    return _Known(found, partial(_bounds, partial(share_bound, *counts)), how_many=how_many)


AnyMean = MeanOfScores | MeanChange | IndependentMeans


def _why_without_bounds(found: AnyMean, criterion: Criterion) -> str:
    """Why a mean, or its change, has no bound; empty where it has one."""
    if criterion.is_guaranteed:
        return _NO_GUARANTEE if math.isnan(found.guaranteed(0.95, upper=True)) else ""
    return "" if found.says_enough else _FEW_UNEQUAL


def _why_open(found: AnyMean, criterion: Criterion) -> str:
    """Why a bound of a mean, or of its change, decides nothing; empty where it does."""
    return RESTS_ON_TWO if found.rests_on_two and not criterion.is_guaranteed else ""


def _require_unit(criterion: Criterion, figure: Figure) -> None:
    """Raise for a number without a unit on a share: of a task of one's own only the result says that it is one."""
    if is_a_share(figure) and criterion.value and not criterion.unit:
        unit = "%" if criterion.kind == "value" else "points"
        raise _NothingShown(f"{criterion.figure} is a share, and the limit{without_unit(f'{criterion.value:g}', unit)}")


def _bounds(bound: Callable[[float, bool], float], confidence: float) -> Interval:
    return Interval(bound(confidence, False), bound(confidence, True))


def _no_such_figure(criterion: Criterion, evidence: Evidence) -> str:
    if not criterion.metric.is_of_own_task:
        return f"this result has no {criterion.figure} ({criterion.metric.meaning})"
    hint = did_you_mean(criterion.figure, evidence.figures)
    return f"this result has no figure {criterion.figure!r}.{hint} It has {', '.join(evidence.figures)}"


def _change(criterion: Criterion, evidence: Evidence) -> _Known:
    """The drop of a figure, or the rise of a mean that is better when lower."""
    if criterion.metric.is_of_own_task and criterion.figure not in evidence.figures:
        raise _NothingShown(_no_such_figure(criterion, evidence))
    figure = evidence.figures.get(criterion.figure)
    if figure is not None:
        _require_unit(criterion, figure)
    is_lower_better = figure is not None and figure.spread is not None and figure.better == "lower"
    wanted = "rise" if is_lower_better else "drop"
    if criterion.kind != wanted:
        better = "lower" if is_lower_better else "higher"
        raise _NothingShown(f"{better} is better for {criterion.figure}: write '{criterion.figure} {wanted} <= ...'")
    change = None if figure is None else change_of(figure, evidence.base.get(criterion.figure), criterion.of_old)
    if change is None:
        raise _NothingShown(
            f"there is no change of {criterion.figure} against a reference; run with a reference on the same examples"
        )
    found = Found(
        f"{criterion.figure} {wanted}{' vs old' if criterion.of_old else ''}", 0.0 - change.change, unit=criterion.unit
    )
    bound, is_open, unseen = change.bound, "", ""
    is_planned = not isinstance(change, IndependentShares | IndependentMeans)
    if isinstance(change, MeanChange | IndependentMeans):
        if why := _why_without_bounds(change, criterion):
            return _Known(found, open=why)
        is_open = _why_open(change, criterion)
        bound = change.guaranteed if criterion.is_guaranteed else change.bound
    if isinstance(change, MeanChange):
        is_planned = change.differing >= FEWEST_DIFFERING and not criterion.is_guaranteed
        unseen = "" if criterion.is_guaranteed else what_is_unseen(change)
        is_open = "" if change.furthest <= criterion.value else is_open
    return _Known(
        found,
        lambda confidence: Interval(0.0 - bound(confidence, True), 0.0 - bound(confidence, False)),
        is_open,
        partial(change.examples_to_decide, criterion.value, criterion.confidence or 0.0) if is_planned else None,
        unseen=unseen,
    )


def _ratio(criterion: Criterion, evidence: Evidence) -> _Known:
    """A latency ratio; one to an earlier run is never decided by only the ratio."""
    found = evidence.ratio
    if found is None and criterion.of_old:
        raise _NothingShown("one of the two results has no times")
    if found is None:
        raise _NothingShown("there is no reference whose times belong to the same examples")
    figure = f"latency_ratio{' vs old' if criterion.of_old else ''}"
    if criterion.confidence is None and not criterion.of_old:
        return _Known(Found(figure, found.ratio, unit=criterion.unit, of_medians=not found.pairs))
    if found.interval is None:
        few = _JUMPED if found.withheld == "jumped" else "so few pairs of times give no interval; measure more"
        raise _NothingShown(few if found.pairs else _MEDIANS_ONLY)
    processes = None if criterion.of_old else found.processes
    return _Known(
        Found(figure, found.ratio, processes=processes, unit=criterion.unit),
        partial(at_confidence, found.ratio, found.interval),
        how_many_rounds=partial(_rounds_needed, criterion, found) if processes == found.pairs > 1 else None,
    )


def _rounds_needed(criterion: Criterion, found: LatencyRatio, limits_together: int) -> int | None:
    confidence = criterion.confidence or 0.0
    is_kept = _keeps(criterion, found.ratio)
    one_sided = confidence if is_kept else confidence_of_each(confidence, limits_together)
    return rounds_to_decide(found, criterion.value, one_sided, POWER)


def _worst_output(criterion: Criterion, evidence: Evidence) -> _Known:
    """The worst of the outputs that the limit names and that have the figure."""
    named = [
        Found(criterion.figure, found.number, output=output.name, unit=criterion.unit or criterion.metric.unit)
        for output in evidence.outputs
        if (found := output.figures.get(criterion.figure)) and criterion.output in (None, *output.names)
    ]
    if not named:
        there_are = ", ".join(output.name for output in evidence.outputs) or "none"
        raise _NothingShown(
            f"no output {str(criterion.output)!r} has {criterion.figure}; outputs of this result: {there_are}"
        )
    return _Known(max(named, key=lambda found: _badness(criterion, found.value)))


def _badness(criterion: Criterion, value: float | None) -> float:
    if value is None or math.isnan(value):
        return math.inf
    return value if criterion.at_most else -value


def verdict_of(criterion: Criterion, interval: Interval, stricter: Interval) -> GateVerdict:
    """The verdict on a limit by nothing but bounds; every decision with an interval is made here.

    ``pass`` where the whole interval keeps the limit, ``fail`` where the whole ``stricter`` one breaks it, which has
    the confidence that several limits together need; else an interval decides nothing.

    >>> from evaltools.gates.criteria import parse_criterion
    >>> limit = parse_criterion("top1 drop <= 0.5 points at 95 %")
    >>> [verdict_of(limit, each, each) for each in (Interval(-0.01, 0.004), Interval(-0.1, 0.1), Interval(0.006, 0.02))]
    ['pass', 'inconclusive', 'fail']
    """
    broken_from = criterion.value if criterion.broken_from is None else criterion.broken_from
    if stricter.low > broken_from if criterion.at_most else stricter.high < broken_from:
        return "fail"
    return "pass" if _keeps(criterion, interval.high if criterion.at_most else interval.low) else "inconclusive"


def _keeps(criterion: Criterion, value: float) -> bool:
    return value <= criterion.value if criterion.at_most else value >= criterion.value


class LimitCheck(Struct, frozen=True):
    """A limit compared with a figure of an output; ``found`` is null where the figure is not a number."""

    limit: str
    output: str
    found: float | None
    kept: bool


def check_limits(limits: Sequence[Criterion], outputs: Sequence[Part]) -> list[LimitCheck]:
    """Compare limits with the figures of each output.

    A limit for all outputs skips those without such a figure (quanta of an output that is not quantised); where none
    has it, the limit is broken.
    """
    checks = []
    for limit in limits:
        named = [output for output in outputs if limit.output is None or limit.output in output.names]
        having = [output for output in named if limit.output is not None or limit.figure in output.figures]
        checks += [_check(limit, output) for output in having or named]
    return checks


def _check(limit: Criterion, output: Part) -> LimitCheck:
    figure = output.figures.get(limit.figure)
    found = None if figure is None else figure.number
    verdict = decide(limit, Evidence("", outputs=[output])).verdict
    return LimitCheck(
        limit.text, output.name, found if found is not None and math.isfinite(found) else None, verdict == "pass"
    )

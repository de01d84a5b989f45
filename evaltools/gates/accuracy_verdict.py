"""Whether accuracy changed, and whether the mean of a score did."""

from __future__ import annotations

from typing import Final, Literal

from msgspec.structs import replace

from evaltools.gates.units import DEFAULT_MARGIN
from evaltools.metrics.interval import Interval
from evaltools.metrics.means import FEWEST_DIFFERING, MeanChange, seen_share
from evaltools.metrics.metric import SHARE
from evaltools.metrics.power import POWER, examples_to_judge
from evaltools.metrics.proportions import PairedCounts, change_interval, mcnemar_p
from evaltools.metrics.words import at_most_changing, ends
from evaltools.metrics.words import change as change_in_words
from evaltools.result.verdict import Verdict, VerdictKind

RELATIVE_MARGIN: Final = 0.01
"""Of the reference's value, of other means whose margin nobody states."""
RESTS_ON_TWO: Final = "two examples make too much of what varies, so others like them decide; measure more"
LEVEL: Final = 0.05
_ONE_SIDE: Final = 0.975
"""Confidence of each end of the 95 % interval that a verdict rests on."""


def accuracy_verdict(
    metric: str,
    counts: PairedCounts,
    margin: float = DEFAULT_MARGIN,
    p_value: float | None = None,
    tests: int = 1,
    identical: int = 0,
) -> Verdict:
    """A verdict on a share of examples, with the 95 % interval of its change (Tango's score).

    A change is ``worse`` or ``better`` only where McNemar's exact test agrees: ``p_value``, that of the counts
    themselves where it is not corrected for so many ``tests``. Where nothing is decided, ``examples_needed`` is the
    number of examples that would decide at the same rates in 80 % of cases. ``identical`` examples have the same
    answer bit for bit.

    >>> accuracy_verdict("top1", PairedCounts(5000, 41, 32)).examples_needed
    7172
    >>> accuracy_verdict("top1", PairedCounts(5000, 178, 42)).texts
    ['WORSE by 2.72 points (-3.32 to -2.16)']
    """
    p_value = mcnemar_p(counts) if p_value is None else p_value
    found = change_verdict(metric, counts.change, change_interval(counts), margin, p_value <= LEVEL)
    needed = examples_to_judge(counts, margin, _ONE_SIDE, LEVEL / tests) if found.kind == "not decided" else None
    is_unchanged = found.kind == "not decided" and counts.lost == counts.gained == 0
    found = in_words(replace(found, p_value=p_value, examples_needed=needed), counts.count, identical, is_unchanged)
    if found.kind != "not decided" or -margin <= counts.change <= margin or not _excludes_0(found):
        return found
    corrected = f", corrected for {tests} comparisons" if tests > 1 else ""
    return replace(found, texts=[*found.texts, f"McNemar's test finds no change (p {p_value:.2g}{corrected})"])


def _excludes_0(found: Verdict) -> bool:
    return found.low is not None and found.high is not None and (found.low > 0 or found.high < 0)


def in_words(
    verdict: Verdict,
    examples: int,
    identical: int = 0,
    is_unchanged: bool = False,
    is_share: bool = True,
    why: str = "",
) -> Verdict:
    """The verdict with its sentence; ``why`` says why nothing is decided, or how sure it is.

    Where nothing was seen to change, that comes first, with how many examples like these can, at most: by the exact
    one-sided bound of 0 of ``examples`` (95 %). ``identical`` of them have the same answer bit for bit;
    ``is_unchanged``: the figure is the same whichever of them are taken.

    >>> in_words(Verdict("not decided", "top1", change=0.0), 60, 60).kind
    'identical'
    >>> in_words(Verdict("worse", "iou", change=-0.027, low=-0.033, high=-0.021), 60, is_share=False).texts
    ['WORSE: -0.027 (-0.033 to -0.021)']
    """
    if examples and (is_unchanged or identical == examples):
        sure = f"95 % confident: fewer than {at_most_changing(examples)} of such examples"
        if identical == examples:
            text = f"identical: all {examples} answers are bit for bit the reference's; {sure} differ"
            return replace(verdict, kind="identical", texts=[text])
        text = f"unchanged: no answer of {examples} changed it; {sure} do"
        return replace(verdict, kind="unchanged", texts=[text])
    return replace(verdict, texts=[_sentence(verdict, is_share, why)])


def _sentence(verdict: Verdict, is_share: bool, why: str) -> str:
    change = "" if verdict.change is None else change_in_words(verdict.change, verdict.low, verdict.high, is_share)
    within = f" within {100 * (verdict.margin or 0.0):g} points" if is_share else f" within {verdict.margin or 0.0:.3g}"
    if verdict.kind == "equivalent":
        return f"equivalent{within}: {change}"
    if verdict.kind in ("worse", "better"):
        word = "WORSE" if verdict.kind == "worse" else "better"
        return f"{word} by {change.lstrip('+-')}" if is_share else f"{word}: {change}"
    if verdict.examples_needed is not None:
        cases = f"{100 * POWER:g} % of cases"
        why = f"about {verdict.examples_needed} examples would decide in {cases} whether it is{within}"
    return f"{verdict.kind}: {'; '.join(filter(None, (change, why)))}"


def change_verdict(
    metric: str, change: float, interval: Interval, margin: float = DEFAULT_MARGIN, is_tested: bool = True
) -> Verdict:
    """A verdict on any share, 0..1, that changed by ``change``; the interval is that of the change.

    ``equivalent`` where the whole interval lies within ``margin`` (0..1) of no change, ``worse`` or ``better`` where it
    lies on one side of no change and another test, if there is one, agrees (``is_tested``), else ``not decided``.

    >>> change_verdict("ap", 0.001, Interval(-0.002, 0.004)).kind
    'equivalent'
    """
    low, high = interval.low, interval.high
    kind: VerdictKind = "not decided"
    if -margin <= low and high <= margin:
        kind = "equivalent"
    elif is_tested and (high < 0 or low > 0):
        kind = "worse" if high < 0 else "better"
    return Verdict(kind, metric, change=change, low=low, high=high, margin=margin)


Better = Literal["higher", "lower"]


def margin_of_mean(value: float, bounds: tuple[float, float] | None) -> float:
    """The change of a mean that counts as none where nobody states one, 0 where nothing says how much that is.

    Half a point of a share, whose stated bounds are 0 and 1; else 1 % of the reference's ``value``.

    >>> margin_of_mean(0.8, (0, 1)), margin_of_mean(-250.0, None)
    (0.005, 2.5)
    """
    return DEFAULT_MARGIN if bounds == SHARE else RELATIVE_MARGIN * abs(value)


def mean_verdict(metric: str, change: MeanChange, better: Better, margin: float, against: str = "") -> Verdict:
    """A verdict on a mean over the same examples, by the 95 % interval of its change.

    ``equivalent`` where the whole interval lies within ``margin`` of no change, ``worse`` or ``better`` where it lies
    on one side of no change, else ``not decided``, with the number of examples that would decide in 80 % of cases where
    ten or more differ. Without an interval, where two examples make too much of the spread and one of them changed by
    more than ``margin``, and where that is 0, it is not decided either, and the sentence says why. It also says what
    the interval cannot see.

    >>> mean_verdict("error", MeanChange(40, 0.3, 0.1, 40), "lower", 0.005).kind
    'worse'
    """
    interval = change.interval()
    if interval is None:
        verdict = Verdict("not decided", metric, change=change.change, margin=margin)
    else:
        verdict = change_verdict(metric, change.change, interval, margin, change.is_significant)
    why = "" if verdict.kind == "equivalent" and change.furthest <= margin > 0 else _why_open(change, margin)
    if why:
        verdict = replace(verdict, kind="not decided")
    if better == "lower" and verdict.kind in ("worse", "better"):
        verdict = replace(verdict, kind="worse" if verdict.kind == "better" else "better")
    if verdict.kind == "not decided" and not why:
        verdict = replace(verdict, examples_needed=change.examples_to_judge(margin))
        if change.differing < FEWEST_DIFFERING:
            why = f"only {change.differing} examples differ, so nothing says how many would decide"
    verdict = replace(verdict, against=against, differing=change.differing)
    verdict = in_words(verdict, change.count, is_unchanged=change.differing == 0, is_share=False, why=why)
    unseen = what_is_unseen(change)
    if not unseen or verdict.kind not in ("equivalent", "better"):
        return verdict
    return replace(verdict, texts=["; ".join([*verdict.texts, unseen])])


def _why_open(change: MeanChange, margin: float) -> str:
    """Why a change of a mean is not decided whatever its interval is; empty where that decides."""
    if not change.says_enough:
        return f"only {change.differing} examples differ and none has known bounds, so others may decide"
    if change.rests_on_two:
        return RESTS_ON_TWO
    return "" if margin else "the reference's value is 0, of which nothing is a share; state margin= or --margin"


def what_is_unseen(change: MeanChange) -> str:
    """What an interval by the spread of the examples cannot see, and the interval that allows for it; else empty.

    >>> what_is_unseen(MeanChange(50, 0.0, 0.1, 50))
    'losses that hit fewer than 1 in 17 examples may be unseen'
    """
    if not change.is_by_spread:
        return ""
    text = f"losses that hit fewer than 1 in {seen_share(change.count)} examples may be unseen"
    known = change.guaranteed_interval()
    if known is None:
        return text
    return f"{text}, with them {ends(f'{known.low:+.3g}', f'{known.high:+.3g}')} by the stated bounds"

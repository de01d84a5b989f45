"""What the bounds of figures and of their changes follow from: counts, spreads, draws."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from evaltools.metrics.between_runs import IndependentMeans, IndependentShares, PlainChange
from evaltools.metrics.means import MeanChange, MeanOfScores, mean_change
from evaltools.metrics.metric import SHARE
from evaltools.metrics.power import Change as ChangeWithBounds
from evaltools.metrics.power import CountedChange, Share
from evaltools.metrics.proportions import PairedCounts
from evaltools.metrics.resampled import resampled_change
from evaltools.result.figure import Change, Figure, Spread


def is_a_share(figure: Figure) -> bool:
    """Whether a figure is a share of examples, or the mean of scores that are 0 to 1."""
    spread = figure.spread
    return figure.is_share or (spread is not None and spread.bounds == SHARE)


def share_of(figure: Figure) -> Share | None:
    """The counts behind a share of examples; None for another figure."""
    if not figure.is_share or figure.count is None or figure.value is None:
        return None
    return Share(round(figure.value * figure.count), figure.count)


def mean_of(figure: Figure) -> MeanOfScores | None:
    """The mean of scores with what its bounds follow from; None for another figure."""
    spread = figure.spread
    if spread is None or figure.value is None:
        return None
    return MeanOfScores(
        figure.value,
        spread.deviation,
        figure.count or 0,
        spread.unequal,
        spread.skewness,
        spread.by_two,
        spread.bounds,
    )


def change_of(figure: Figure, base: Figure | None, of_old: bool = False) -> ChangeWithBounds | None:
    """The change of a figure with its bounds, a loss negative; ``base`` is the figure of what it is compared with.

    None where no change is known. ``of_old``: ``base`` is that of an earlier result, and where the examples were not
    compared one by one, the two are of different samples.
    """
    found = None if figure.change is None else _of_same_examples(figure, figure.change, base)
    if found is not None or not of_old or base is None or figure.value is None or base.value is None:
        return found
    means, shares = (mean_of(base), mean_of(figure)), (share_of(base), share_of(figure))
    if means[0] is not None and means[1] is not None:
        independent = IndependentMeans(means[0], means[1])
        return independent.reversed() if figure.better == "lower" else independent
    if shares[0] is not None and shares[1] is not None:
        return IndependentShares(shares[0], shares[1])
    return PlainChange(figure.value - base.value)


def _of_same_examples(figure: Figure, change: Change, base: Figure | None) -> ChangeWithBounds | None:
    flips = None
    if change.lost is not None and change.gained is not None:
        flips = PairedCounts(change.count, change.lost, change.gained)
    if change.spread is not None:
        spread = change.spread
        found = MeanChange(
            change.count,
            change.value,
            spread.deviation,
            spread.unequal,
            spread.skewness,
            spread.by_two,
            None if spread.bounds is None else spread.bounds[1],
            flips,
        )
        return found.reversed() if figure.better == "lower" else found
    if flips is not None:
        return CountedChange(flips)
    return None if base is None else resampled_change(base.draws, figure.draws, change.value, change.count)


def compared(figure: Figure, old: Figure | None, against: str, examples: int | None) -> Figure:
    """The figure with its change since an earlier one, as far as both recorded their scores or draws.

    ``examples`` is how many examples both are of, None where these are not the same.
    """
    if old is None or examples is None or figure.value is None or old.value is None:
        return replace(figure, change=None)
    then, now = (_recorded(each) for each in (old, figure))
    if then and len(then) == len(now):
        return replace(figure, change=_change_of_scores(then, now, figure, old, against))
    has_draws = bool(old.draws and figure.draws)
    return replace(figure, change=Change(against, figure.value - old.value, count=examples) if has_draws else None)


def _recorded(figure: Figure) -> list[float]:
    """The numbers of all examples; none unless every one has one."""
    numbers = [number for number in figure.of_examples if number is not None]
    return numbers if len(numbers) == len(figure.of_examples) else []


def _change_of_scores(
    then: Sequence[float], now: Sequence[float], figure: Figure, old: Figure, against: str
) -> Change | None:
    if figure.spread is None or old.spread is None:
        right = list(zip(then, now, strict=True))
        counts = PairedCounts(len(right), right.count((1.0, 0.0)), right.count((0.0, 1.0)))
        return Change(against, counts.change, count=counts.count, lost=counts.lost, gained=counts.gained)
    bounds = figure.spread.bounds if figure.spread.bounds == old.spread.bounds else None
    return change_of_means(mean_change(then, now, bounds), against)


def change_of_means(found: MeanChange, against: str) -> Change:
    """The change of a mean, as a figure states it."""
    bounds = None if found.span is None else (-found.span, found.span)
    spread = Spread(found.deviation, found.differing, found.skewness, found.by_two, bounds)
    return Change(
        against,
        found.change,
        found.interval(),
        found.count,
        None if found.flips is None else found.flips.lost,
        None if found.flips is None else found.flips.gained,
        spread=spread,
        guaranteed=found.guaranteed_interval(),
    )

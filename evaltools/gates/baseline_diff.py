"""A result held against a baseline."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from evaltools.gates.accuracy_verdict import accuracy_verdict, change_verdict
from evaltools.gates.baseline import Baseline, BaselineConfiguration, resampled_values
from evaltools.gates.criteria import LARGER_IS_BETTER, TOP_K, WITH_DROP
from evaltools.result.verdict import Reason, Verdict, VerdictKind
from evaltools.stats.interval import Interval
from evaltools.stats.proportions import PairedCounts
from evaltools.stats.resampled import drawn_bound, paired_differences

_UNTESTED_SHARES: Final = frozenset({*WITH_DROP, "matched_boxes"})
_BETTER_WHEN_SMALLER: Final = frozenset({"avg_error", "max_error", "max_quanta", "relative_rms", "failed_examples"})
_TOLERANCE_OF_ERRORS: Final = 0.1
"""Errors of outputs may grow by this share; on the same machine they are the same numbers again."""
_LEVEL: Final = 0.05
_NO_RANK: Final = "-"
_ONE_SIDE: Final = 0.975
NO_NUMBER: Final = "no_number"
"""The reason where a figure is no number any more."""
UNTESTED: Final = "untested"
"""The reason where a share fell by more than the margin, and nothing tests that."""
FISHER: Final = "fisher"
"""The reason where two shares are of other examples, so that Fisher's exact test compares them."""


@dataclass(frozen=True)
class FigureChange:
    """One figure of one configuration, in the baseline and now.

    ``output`` names the output that it is of, if any. ``verdict`` is None where nothing judges the change by itself.
    ``regressed``: it became worse, beyond what chance explains where a statistic tells; or it is no number any more
    (``now`` is null).
    """

    configuration: str
    figure: str
    output: str
    before: float
    now: float | None
    verdict: Verdict | None
    regressed: bool


@dataclass(frozen=True)
class BaselineComparison:
    """Everything that differs between a baseline and now.

    ``paired``: both are of the same examples. ``setup`` says in words what was set up in another way, ``missing`` names
    configurations of the baseline that were not measured now.
    """

    paired: bool
    setup: list[str]
    changes: list[FigureChange]
    missing: list[str]

    @property
    def regressions(self) -> list[FigureChange]:
        """The figures that became worse."""
        return [change for change in self.changes if change.regressed]


def compare_with_baseline(before: Baseline, now: Baseline, margin: float) -> BaselineComparison:
    """Figures of the configurations that both have; ``margin`` is the change of accuracy, 0..1, that counts as none."""
    paired = before.task == now.task and before.examples_sha256 == now.examples_sha256
    current = {entry.name: entry for entry in now.configurations}
    pairs = [(entry, current[entry.name]) for entry in before.configurations if entry.name in current]
    conditions = _Conditions(paired, now.example_count, margin)
    return BaselineComparison(
        paired=paired,
        setup=_setup(before, now, pairs),
        changes=[change for pair in pairs for change in _changes(*pair, conditions)],
        missing=[entry.name for entry in before.configurations if entry.name not in current],
    )


@dataclass(frozen=True)
class _Conditions:
    """How two baselines may be compared; ``examples`` is the number of those that both have."""

    paired: bool
    examples: int
    margin: float


def _setup(
    before: Baseline, now: Baseline, pairs: Sequence[tuple[BaselineConfiguration, BaselineConfiguration]]
) -> list[str]:
    found = []
    if before.model_sha256 != now.model_sha256:
        found.append(f"another model file: {before.model} then, {now.model} now, with other content")
    if before.example_count != now.example_count:
        found.append(f"{before.example_count} examples then, {now.example_count} now")
    elif before.examples_sha256 != now.examples_sha256:
        found.append("other examples, or only one of the two was made with --record_examples")
    for old, new in pairs:
        if old.runtime != new.runtime:
            found.append(f"{old.name}: {old.runtime} then, {new.runtime} now")
        if old.flags != new.flags:
            found.append(f"{old.name}: {' '.join(old.flags) or 'no flags'} then, {' '.join(new.flags) or 'none'} now")
    return found


def _changes(old: BaselineConfiguration, new: BaselineConfiguration, conditions: _Conditions) -> list[FigureChange]:
    found = []
    for figure, before in old.figures.items():
        if before is not None:
            now = new.figures.get(figure)
            verdict = None if now is None else _verdict(figure, before, now, old, new, conditions)
            found.append(_judged(old.name, figure, "", before, now, verdict, conditions.margin))
    for output, figures in old.outputs.items():
        for figure, before in figures.items():
            if before is not None:
                now = new.outputs.get(output, {}).get(figure)
                found.append(_judged(old.name, figure, output, before, now, None, conditions.margin))
    return found


def _judged(
    name: str, figure: str, output: str, before: float, now: float | None, verdict: Verdict | None, margin: float
) -> FigureChange:
    if now is None:
        verdict, regressed = Verdict("worse", figure, reasons=[Reason(NO_NUMBER)]), True
    elif verdict is not None:
        regressed = verdict.kind == "worse"
    elif figure in _UNTESTED_SHARES:
        regressed = now < before - margin
        verdict = Verdict("worse", figure, reasons=[Reason(UNTESTED)]) if regressed else None
    elif figure in LARGER_IS_BETTER:
        regressed = now < before * (1 - _tolerance(output))
    else:
        regressed = figure in _BETTER_WHEN_SMALLER and now > before * (1 + _tolerance(output))
    return FigureChange(name, figure, output, before, now, verdict, regressed)


def _tolerance(output: str) -> float:
    return _TOLERANCE_OF_ERRORS if output else 0.0


def _verdict(
    figure: str,
    before: float,
    now: float,
    old: BaselineConfiguration,
    new: BaselineConfiguration,
    conditions: _Conditions,
) -> Verdict | None:
    """The verdict on a figure that differs, None where it does not or nothing tells."""
    if figure in TOP_K:
        if conditions.paired and old.ranks and len(old.ranks) == len(new.ranks):
            flips = flips_of(old.ranks, new.ranks, TOP_K[figure])
            return accuracy_verdict(figure, flips, conditions.margin) if flips.lost + flips.gained else None
        return _unpaired(figure, before, now, (old.answered, new.answered))
    if conditions.paired and before != now:
        draws = (resampled_values(entry.resampled.get(figure, [])) for entry in (old, new))
        differences = paired_differences(*draws)
        low, high = (drawn_bound(differences, conditions.examples, _ONE_SIDE, upper) for upper in (False, True))
        if not math.isnan(low):
            return change_verdict(figure, now - before, Interval(low, high), conditions.margin)
    return None


def _unpaired(figure: str, before: float, now: float, answered: tuple[int, int]) -> Verdict | None:
    """Fisher's exact test of two shares of the examples that each answered."""
    if before == now or not all(answered) or not all(0 <= share <= 1 for share in (before, now)):
        return None
    from scipy import stats

    hits = [round(share * count) for share, count in zip((before, now), answered, strict=True)]
    table = [[hit, count - hit] for hit, count in zip(hits, answered, strict=True)]
    p_value = float(stats.fisher_exact(table).pvalue)
    kind: VerdictKind = "not decided" if p_value > _LEVEL else "worse" if now < before else "better"
    return Verdict(kind, figure, change=now - before, p_value=p_value, reasons=[Reason(FISHER)])


def flips_of(before: str, now: str, k: int) -> PairedCounts:
    """Lost and gained examples of Top-``k``, from the ranks of a baseline.

    >>> flips_of("0-10", "01-0", 1), flips_of("0-10", "01-0", 2)
    (PairedCounts(count=4, lost=0, gained=0), PairedCounts(count=4, lost=1, gained=1))
    """
    right = [tuple(rank != _NO_RANK and int(rank) < k for rank in pair) for pair in zip(before, now, strict=True)]
    return PairedCounts(len(right), right.count((True, False)), right.count((False, True)))

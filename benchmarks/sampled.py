"""How many examples an informed run takes until a limit is decided, and how often its answers and bounds are right.

``python -m benchmarks sampled [--trials=100] [--examples=10000] [--points=0.5]``

Each row draws so many sets of examples with a fixed seed, whose drop is 0: as many are lost as gained. They lie as the
leads of three quantised classifiers had them on 800 photos (67, 92 and 100 % in the tenth with the smallest leads),
independently of the leads, or only among the fifth with the largest ones. Two rows more have a drop of 4 points.
``fixed``: the number of examples planned beforehand, without a look meanwhile. ``even``: drawn with equal chances,
``informed``: by leads; the means of those until the limit is decided. ``wrong``: answers that the whole set refutes;
``outside``: runs in which the true drop left either bound, each of which may err in 5 %, at any look.

The last rows are of scores that are any numbers from 0 to 1, of which a third change: a limit a little above and below
the mean of the losses, whose size falls with the lead (``tell``) or rises with it (``mislead``). Of ``unequal`` weights
are the examples of a share over all of them, such as the objects in pictures.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from evaltools.parameter import Parameter
from evaltools.request.flags import parse_flags
from evaltools.stats.power import examples_to_decide
from evaltools.stats.proportions import PairedCounts
from evaltools.stats.sampled.course import CONFIDENCE, Course
from evaltools.stats.sampled.evidence import Wealth
from evaltools.stats.sampled.plan import Drawn, Expected, draw_examples
from evaltools.stats.sampled.strata import Numbers, Strata, strata_of

PARAMETERS: Final = (
    Parameter("trials", "Sets of examples per row.", default=100),
    Parameter("examples", "Examples of each set.", default=10000),
    Parameter("points", "The limit of the drop, in points.", default=0.5),
)
FLIPS: Final = (0.0, 0.005, 0.01, 0.02, 0.05)
LEADS: Final = {"100 %": 1.0, "92 %": 0.92, "67 %": 0.67, "tell nothing": 0.1, "mislead": 0.1}
MISLEAD: Final = "mislead"
UNEQUAL: Final = "unequal"
_SURE: Final = 0.8
_CHANGED: Final = 1 / 3


class Row(Struct, frozen=True):
    """Means over the sets; ``wrong`` and ``outside`` are shares of the informed runs, 0..1."""

    leads: str
    flips: float
    drop: float
    fixed: int | None
    even: float
    informed: float
    wrong: float
    outside: float


def main(arguments: list[str]) -> int:
    """Simulate and print a table."""
    flags = parse_flags("sampled", "", "", {"flags": PARAMETERS}, arguments)
    print("| leads | flips | drop | fixed | even | informed | informed / even | of all | wrong | outside |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    population = flags.number("examples")
    for row in rows(flags.number("trials"), population, flags.real("points") / 100):
        cells = [row.leads, f"{100 * row.flips:g} %", f"{100 * row.drop:g}", "-" if row.fixed is None else row.fixed]
        cells += [f"{row.even:.0f}", f"{row.informed:.0f}", f"{row.informed / row.even:.2f}"]
        cells += [_percent(share) for share in (row.informed / population, row.wrong, row.outside)]
        print(f"| {' | '.join(map(str, cells))} |", flush=True)
    return 0


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def rows(trials: int, population: int, limit: float) -> Iterator[Row]:
    """All leads with all rates of flips, and two with a drop."""
    yield row_of("any", Expected(population, 0.0, 0.0), trials, limit)
    for leads, share in LEADS.items():
        for flips in FLIPS[1:]:
            yield row_of(leads, Expected(population, flips / 2, flips / 2, share), trials, limit)
    for leads in ("92 %", MISLEAD):
        yield row_of(leads, Expected(population, 0.045, 0.005, LEADS[leads]), trials, limit)
    for leads in ("tell", MISLEAD, UNEQUAL):
        for away in (limit, -limit):
            yield row_of_scores(leads, population, trials, away)


def row_of(leads: str, expected: Expected, trials: int, limit: float, beside_even: bool = True) -> Row:
    """Simulate the sets of one row; without even draws beside the informed ones, their mean is NaN."""
    used: dict[bool, list[int]] = {True: [], False: []}
    wrong = outside = lost = gained = 0
    for trial in range(trials):
        drawn = draw_examples(expected, trial)
        drawn = _misled(drawn, trial) if leads == MISLEAD else drawn
        lost, gained = int((drawn.values > 0).sum()), int((drawn.values < 0).sum())
        for even in (True, False) if beside_even else (False,):
            strata = strata_of(drawn.leads, drawn.right - 1, drawn.right)
            course, left_bounds = _run(strata, drawn.values, limit, trial, even)
            used[even].append(course.decided_after)
            if not even:
                wrong += (course.answer == "kept") != (drawn.values.mean() <= limit + 1e-9)
                outside += left_bounds
    common = math.gcd(expected.population, lost, gained)
    counts = PairedCounts(expected.population // common, lost // common, gained // common)
    return Row(
        leads,
        expected.lost + expected.gained,
        expected.lost - expected.gained,
        examples_to_decide(counts, limit),
        _mean(used[True]),
        _mean(used[False]),
        wrong / trials,
        outside / trials,
    )


def row_of_scores(leads: str, population: int, trials: int, away: float, beside_even: bool = True) -> Row:
    """Simulate sets of scores that are any numbers, with a limit so far above the mean of the losses.

    Without even draws beside the informed ones, their mean is NaN.
    """
    used: dict[bool, list[int]] = {True: [], False: []}
    wrong = outside = 0
    drops = []
    for trial in range(trials):
        chance = np.random.default_rng((trial, 2))
        leads_of_all, own = chance.random(population), chance.beta(8, 2, population)
        size = chance.exponential(np.exp(-4 * (leads_of_all if leads != MISLEAD else 1 - leads_of_all)) / 2, population)
        losses = np.where(chance.random(population) < _CHANGED, size * chance.choice([1, 1, 1, -1], population), 0.0)
        weights = chance.exponential(1.0, population) ** 2 if leads == UNEQUAL else np.ones(population)
        weights /= weights.mean()
        losses = weights * np.clip(losses, own - 1, own)
        strata = strata_of(leads_of_all, weights * (own - 1), weights * own)
        drops.append(float(losses.mean()))
        for even in (True, False) if beside_even else (False,):
            course, left_bounds = _run(strata, losses, drops[-1] + away, trial, even, whole=False)
            used[even].append(course.decided_after)
            if not even:
                wrong += course.answer != ("kept" if away > 0 else "broken")
                outside += left_bounds
    return Row(
        f"scores: {leads}",
        _CHANGED,
        float(np.mean(drops)),
        None,
        _mean(used[True]),
        _mean(used[False]),
        wrong / trials,
        outside / trials,
    )


def _mean(examples: list[int]) -> float:
    return float(np.mean(examples)) if examples else math.nan


def _misled(drawn: Drawn, seed: int) -> Drawn:
    """The same flips, all of them among the fifth of the examples with the largest leads."""
    chance = np.random.default_rng((seed, 1))
    values = np.zeros(len(drawn.values))
    for sign, members in ((1.0, drawn.right == 1), (-1.0, drawn.right == 0)):
        sure = np.flatnonzero(members & (drawn.leads >= _SURE))
        flips = min(len(sure), int((drawn.values == sign).sum()))
        values[chance.choice(sure, flips, replace=False)] = sign
    return replace(drawn, values=values)


def _run(
    strata: Strata, values: Numbers, limit: float, seed: int, even: bool, whole: bool = True
) -> tuple[Course, bool]:
    """A course to its end, and whether the true drop left its bounds at any look."""
    course, total = Course(strata, limit, seed, even, whole), float(values.sum())
    above, below = Wealth(strata, [total]), Wealth(strata.mirrored(), [-total])
    while course.answer == "open":
        block = course.next_block()
        course.add(block, values[block.examples])
        above.add(course.looks[-1])
        below.add(course.looks[-1].mirrored())
    needed = -np.log(1 - CONFIDENCE)
    return course, bool(above.most[0] >= needed or below.most[0] >= needed)

"""Several limits together, over every outcome there can be: which are broken, and how probably any is by chance."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from itertools import combinations, product

import pytest

from evaltools.gates.check import decide_together
from evaltools.gates.criteria import Criterion, parse_criterion
from evaltools.gates.decide import Decision
from evaltools.gates.evidence import Evidence
from evaltools.metrics.interval import confidence_of_each, holm
from evaltools.result.figure import Figure

COUNTS = (10, 12, 16)
LIMIT = 0.8
"""The true share of each, so that a limit that is broken is so by chance."""
_CLEAR = 0.001
_OPEN = 0.15
PLAIN = parse_criterion("top1 >= 99 %")
"""A limit without a confidence, which is no test; it is broken."""


@cache
def chance_of(successes: int, count: int) -> float:
    return math.comb(count, successes) * LIMIT**successes * (1 - LIMIT) ** (count - successes)


def p_of(successes: int, count: int) -> float:
    """How probable so few successes are, or fewer, where the limit is the truth."""
    return sum(chance_of(each, count) for each in range(successes + 1))


def share(successes: int, count: int, why_not: str = "") -> Evidence:
    figure = Figure(successes / count, count=count, is_share=True)
    return Evidence(f"{successes} of {count}", why_not, figures={"top1": figure})


@cache
def classes_of(count: int) -> dict[int, float]:
    """Numbers of successes that decide otherwise, each with the probability of all that decide as it does.

    Such as are clearly too few decide alike, and so do such as speak against nothing.
    """
    found: dict[int, float] = {}
    clear = max(each for each in range(count) if p_of(each, count) <= _CLEAR)
    for successes in range(count + 1):
        name = clear if successes <= clear else successes if p_of(successes, count) <= _OPEN else count
        found[name] = found.get(name, 0.0) + chance_of(successes, count)
    return found


def outcomes() -> list[tuple[int, ...]]:
    return list(product(*map(classes_of, COUNTS)))


def closed(p_values: Sequence[float], errors: Sequence[float]) -> list[bool]:
    """Which hypotheses are rejected: each that is in no intersection of which every p is above its share of the error.

    The closed test of R. Marcus, E. Peritz and K. R. Gabriel (1976) with Bonferroni's test of each intersection.
    """
    places = range(len(p_values))
    subsets = [subset for size in places for subset in combinations(places, size + 1)]
    kept = [subset for subset in subsets if all(p_values[each] > errors[each] / len(subset) for each in subset)]
    return [not any(place in subset for subset in kept) for place in places]


@cache
def decided(outcome: tuple[int, ...], limits: tuple[str, ...], others: int = 0) -> list[Decision]:
    """The decisions on an outcome, beside a limit that is no test, and one on what was not measured."""
    criteria: list[Criterion] = [parse_criterion(limit) for limit in limits]
    evidence = [share(successes, count) for successes, count in zip(outcome, COUNTS, strict=True)]
    beside = [(PLAIN, evidence[0]), (criteria[0], share(0, 10, "it did not run"))]
    found = decide_together([*beside, *zip(criteria, evidence, strict=True)], others)
    assert [each.verdict for each in found[:2]] == ["pass" if outcome[0] == COUNTS[0] else "fail", "not measured"]
    return found[2:]


AT_95 = (f"top1 >= {100 * LIMIT:g} % at 95 %",) * 3
MIXED = (
    f"top1 >= {100 * LIMIT:g} % at 90 %",
    f"top1 >= {100 * LIMIT:g} % at 95 %",
    f"top1 >= {100 * LIMIT:g} % at 97 %",
)


@pytest.mark.parametrize(
    ("limits", "errors", "others"),
    [(AT_95, (0.05,) * 3, 0), (AT_95, (0.05,) * 3, 2), (MIXED, (0.1, 0.05, 0.03), 0)],
    ids=["one", "beside others", "mixed"],
)
def test_those_are_broken_that_the_closed_test_rejects(
    limits: tuple[str, ...], errors: tuple[float, ...], others: int
) -> None:
    """``others`` are limits elsewhere that nothing speaks against. Of one confidence that is Holm's method exactly."""
    for outcome in outcomes():
        p_values = [p_of(*each) for each in zip(outcome, COUNTS, strict=True)]
        wanted = stepped_down(p_values, errors, others)
        if len(set(errors)) == 1:
            assert wanted == closed([*p_values, *[1.0] * others], [*errors, *[0.05] * others])[:3]
        assert [each.verdict == "fail" for each in decided(outcome, limits, others)] == wanted, outcome


def stepped_down(p_values: Sequence[float], errors: Sequence[float], others: int) -> list[bool]:
    """Each is rejected at its error by the number of those that are not yet, as often as that rejects another one."""
    rejected = [False] * len(p_values)
    while True:
        left = len(p_values) + others - sum(rejected)
        now = [old or p <= error / max(1, left) for old, p, error in zip(rejected, p_values, errors, strict=True)]
        if now == rejected:
            return rejected
        rejected = now


@pytest.mark.parametrize("others", [0, 2])
def test_any_of_several_true_limits_is_broken_in_at_most_5_of_100_cases(others: int) -> None:
    """Summed up over all outcomes; without a correction it would be more."""
    probability = {
        outcome: math.prod(classes_of(count)[each] for each, count in zip(outcome, COUNTS, strict=True))
        for outcome in outcomes()
    }
    assert sum(probability.values()) == pytest.approx(1)
    broken = [o for o in outcomes() if any(each.verdict == "fail" for each in decided(o, AT_95, others))]
    alone = [o for o in outcomes() if any(p_of(*each) <= 0.05 for each in zip(o, COUNTS, strict=True))]
    assert 0 < sum(map(probability.__getitem__, broken)) <= 0.05 < sum(map(probability.__getitem__, alone))


def test_a_limit_is_kept_whatever_the_others_are() -> None:
    for outcome in outcomes():
        for (successes, count), found in zip(zip(outcome, COUNTS, strict=True), decided(outcome, AT_95), strict=True):
            as_many = sum(chance_of(each, count) for each in range(successes, count + 1))
            assert (found.verdict == "pass") == (as_many <= 0.05)


def test_what_would_be_broken_alone_says_beside_how_many() -> None:
    """5 of 10 and 6 of 12 are each beyond the limit alone, and so is 9 of 16 beside one that is broken."""
    numbers = ((5, 10), (6, 12), (10, 16), (4, 10), (7, 12), (9, 16))
    assert [round(p_of(*each), 4) for each in numbers] == [0.0328, 0.0194, 0.0817, 0.0064, 0.0726, 0.0267]
    texts = [each.reason for each in decided((5, 6, 10), AT_95)]
    assert ["for one of 3 limits" in text for text in texts] == [True, True, False]
    texts = [each.reason for each in decided((4, 7, 9), AT_95)]
    assert ["for one of 2 limits" in text for text in texts] == [False, False, True]


def test_corrected_p_values_are_those_of_the_closed_test() -> None:
    """Of all families of four from these: the largest of what the intersections with each of them have."""
    for p_values in product([0.0, 0.004, 0.01, 0.03, 0.2, 0.6, 1.0], repeat=4):
        places = range(4)
        expected = [
            max(
                min(1.0, len(subset) * min(p_values[each] for each in subset))
                for size in places
                for subset in combinations(places, size + 1)
                if place in subset
            )
            for place in places
        ]
        assert holm(p_values) == pytest.approx(expected), p_values


@pytest.mark.parametrize("tests", [1, 2, 3, 12])
def test_the_errors_of_several_tests_add_up_to_that_of_one(tests: int) -> None:
    """Whatever they have to do with each other: a product of confidences would need independent ones."""
    assert tests * (1 - confidence_of_each(0.95, tests)) == pytest.approx(0.05, rel=1e-9)

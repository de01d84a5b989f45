"""Changes of COCO figures over resampled pictures."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace
from scipy import stats

from evaltools.metrics.boxes import BoxAgreement
from evaltools.metrics.coco_stats import DetectedObject, EvaluatedSet, TrueObject, evaluate_with_matches
from evaltools.metrics.interval import Interval
from evaltools.result.verdict import Verdict
from evaltools.tasks.coco.changes import (
    CategoryDraws,
    changes_of_categories,
    changes_of_figures,
    corrected,
    resampled,
    verdicts_on_map,
)
from evaltools.tasks.coco.result import BoxComparison, DetectionFigures, StatChange

PICTURES = 60
BOX = (10.0, 10.0, 50.0, 50.0)
SHIFTED = (10.0, 10.0, 50.0, 38.0)


def figures(name: str, worse: int) -> DetectionFigures:
    """One object in each picture, all found, in ``worse`` pictures with an IoU of 0.76."""
    truths = [TrueObject(number, 1, BOX, 2500.0, False) for number in range(PICTURES)]
    found = [DetectedObject(number, 1, SHIFTED if number < worse else BOX, 0.9) for number in range(PICTURES)]
    evaluation, matches = evaluate_with_matches(EvaluatedSet(range(PICTURES), [(1, "cup")], truths), found)
    return DetectionFigures(name, PICTURES, PICTURES, 0, evaluation, None, [], resampled(matches, 500)[0])


def verdict(changes: list[StatChange]) -> Verdict:
    (found,) = verdicts_on_map([BoxComparison("a", "b", PICTURES, BoxAgreement.nothing(), changes)], [], 0.005)["b"]
    return found


def test_a_change_and_its_interval_are_those_of_the_same_draws() -> None:
    baseline, other = figures("a", 0), figures("b", 18)
    changes = {change.stat: change for change in changes_of_figures(baseline, other)}
    found = changes["ap"]
    assert other.evaluation is not None
    assert found.change == pytest.approx((other.evaluation.stats.ap or 0) - 1)
    share_of_worse = 1 - np.array(other.resampled["ar_100"])
    assert found.interval.high < 0 < found.interval.high - found.interval.low
    assert np.std(share_of_worse) == pytest.approx(0.4 * np.sqrt(0.3 * 0.7 / PICTURES), rel=0.15), "4 of 10 thresholds"
    assert "ap_small" not in changes, "there is no small object"
    assert changes["ap50"].change == 0
    assert changes["ap50"].p_value == 1.0
    assert found.p_value < 0.002


def test_the_same_configuration_does_not_change() -> None:
    changes = changes_of_figures(figures("a", 7), figures("b", 7))
    assert {change.change for change in changes} == {0.0}
    unseen = 1 - 0.025 ** (1 / PICTURES)
    assert changes[0].interval.high == pytest.approx(unseen, rel=1e-4), "others may change, as far as so few show"
    said = "unchanged: no answer of 60 changed it; 95 % confident: fewer than 4.9 % of such examples do"
    assert verdict(changes).why == said
    (found,) = verdicts_on_map(
        [BoxComparison("a", "b", PICTURES, BoxAgreement.nothing(), changes, identical=PICTURES)], [], 0.005
    )["b"]
    said = "identical: all 60 answers are bit for bit the reference's; 95 % confident: fewer than 4.9 % of such"
    assert found.why == f"{said} examples differ"
    assert pytest.approx(0.05, rel=0.03) == 0.951**PICTURES, "the exact bound of none of 60"


def with_categories(lost: int, of: int) -> tuple[DetectionFigures, CategoryDraws | None]:
    """A cup in each picture, and a cow in the first ``of``, of which those of the first ``lost`` are not found."""
    truths = [TrueObject(number, 1, BOX, 2500.0, False) for number in range(PICTURES)]
    truths += [TrueObject(number, 2, SHIFTED, 2500.0, False) for number in range(of)]
    found = [DetectedObject(truth.image_id, truth.category_id, truth.bbox, 0.9) for truth in truths]
    found = [entry for entry in found if entry.category_id == 1 or entry.image_id >= lost]
    evaluation, matches = evaluate_with_matches(EvaluatedSet(range(PICTURES), [(1, "cup"), (2, "cow")], truths), found)
    drawn, categories = resampled(matches, 500)
    return DetectionFigures("a", PICTURES, 0, 0, evaluation, None, [], drawn), categories


@pytest.mark.parametrize(("lost", "of", "is_clear"), [(1, 1, False), (3, 3, False), (3, 30, False), (20, 30, True)])
def test_a_category_has_changed_where_chance_does_not_explain_it(lost: int, of: int, is_clear: bool) -> None:
    (baseline, before), (other, after) = with_categories(0, of), with_categories(lost, of)
    (found,) = changes_of_categories(baseline, other, (before, after))
    assert (found.name, found.objects, found.pictures) == ("cow", of, of)
    assert found.before == pytest.approx(1)
    assert found.after == pytest.approx(1 - lost / of, abs=0.01)
    assert (found.p_value <= 0.05) == is_clear


@pytest.mark.parametrize("of", [2, 4, 7])
def test_a_category_in_few_pictures_is_no_surer_than_their_signs(of: int) -> None:
    """Worse in each of its pictures: of all 2^n signs two are as extreme."""
    (baseline, before), (other, after) = with_categories(0, of), with_categories(of, of)
    (found,) = changes_of_categories(baseline, other, (before, after))
    assert found.p_value == stats.binomtest(of, of).pvalue


def test_beside_other_comparisons_more_pictures_decide() -> None:
    """So many that the corrected test, or equivalence, has a power of 80 %: of normal means, drawn."""
    change = StatChange("ap", -0.02, Interval(-0.05, 0.01), 0.2, 0.2, 20.0)
    compared = [BoxComparison("a", name, PICTURES, BoxAgreement.nothing(), [change]) for name in "bcdef"]
    (alone,) = verdicts_on_map(compared[:1], [], 0.005)["b"]
    beside = [found.examples_needed for (found,) in verdicts_on_map(compared, [], 0.005).values()]
    deviation = 0.03 / stats.norm.ppf(0.975)
    for needed, level in ((alone.examples_needed, 0.05), (beside[0], 0.05 / 5)):
        assert needed is not None
        spread = deviation * np.sqrt(PICTURES / needed)
        means = np.random.default_rng(3).normal(-0.02, spread, 20_000)
        clear = np.abs(means) > stats.norm.isf(level / 2) * spread
        equivalent = np.abs(means) + stats.norm.isf(0.025) * spread <= 0.005
        assert np.mean(clear | equivalent) == pytest.approx(0.8, abs=0.01)
    assert len({*beside}) == 1


def test_worse_needs_the_p_that_is_corrected() -> None:
    changes = changes_of_figures(figures("a", 0), figures("b", 12))
    assert verdict([replace(change, p_value_holm=0.2) for change in changes]).kind == "not decided"


def test_the_verdict_is_on_map() -> None:
    found = verdict(changes_of_figures(figures("a", 0), figures("b", 12)))
    assert (found.kind, found.metric, found.against) == ("worse", "ap", "a")


@pytest.mark.parametrize(
    ("pictures", "changed", "said"),
    [
        (20, {}, "-7.56 points; 20 pictures, 50 are the fewest"),
        (PICTURES, {"evaluation": None}, "without a ground truth"),
        (PICTURES, {"pictures": 59}, "-7.56 points; the two did not finish the same pictures"),
        (PICTURES, {"resampled": {}}, "-7.56 points; --bootstrap_resamples=0"),
    ],
)
def test_a_comparison_without_an_interval_is_not_decided_and_says_why(
    pictures: int, changed: dict[str, Any], said: str
) -> None:
    baseline, other = (replace(figures(name, worse), pictures=pictures) for name, worse in (("a", 0), ("b", 6)))
    both = [baseline, replace(other, **changed)]
    (found,) = verdicts_on_map([BoxComparison("a", "b", pictures, BoxAgreement.nothing())], both, 0.005)["b"]
    assert (found.kind, found.metric, found.against) == ("not decided", "ap", "a")
    assert found.why.startswith(f"not decided: {said}")


@pytest.mark.parametrize(("matched", "kind"), [(0, "diverged"), (49, "diverged"), (50, "not decided")])
def test_without_half_of_the_boxes_it_diverged_though_too_few_pictures_decide_on_map(matched: int, kind: str) -> None:
    both = [replace(figures(name, worse), pictures=20) for name, worse in (("a", 0), ("b", 6))]
    boxes = BoxAgreement(matched, 100 - matched, 0, 0, float(matched), 0.0, 0.0)
    (found,) = verdicts_on_map([BoxComparison("a", "b", 20, boxes)], both, 0.005)["b"]
    assert found.kind == kind
    if kind == "diverged":
        assert found.why == f"diverged: {matched} % of the boxes match, -7.56 points"
        assert not found.is_open


def test_draws_that_are_not_the_same_are_not_paired() -> None:
    baseline = figures("a", 0)
    assert changes_of_figures(baseline, replace(baseline, resampled={})) == []
    assert changes_of_figures(baseline, replace(baseline, evaluation=None)) == []


def test_without_resamples_or_pictures_there_is_nothing() -> None:
    _, matches = evaluate_with_matches(EvaluatedSet([], [(1, "cup")], []), [])
    assert resampled(matches, 100) == ({}, None)
    evaluated = EvaluatedSet([1], [(1, "cup")], [TrueObject(1, 1, BOX, 2500.0, False)])
    assert resampled(evaluate_with_matches(evaluated, [])[1], 0) == ({}, None)


def test_holm_corrects_each_figure_over_all_that_are_compared_with_one_baseline() -> None:
    def compared(baseline: str, other: str, **p_values: float) -> BoxComparison:
        """Without categories."""
        changes = [StatChange(stat, 0.0, Interval(0.0, 0.0), p, p) for stat, p in p_values.items()]
        return BoxComparison(baseline, other, 4, BoxAgreement.nothing(), changes)

    found = corrected([compared("r", "a", ap=0.01, ap50=0.5), compared("r", "b", ap=0.04), compared("a", "b", ap=0.04)])
    holm = [{change.stat: change.p_value_holm for change in comparison.changes} for comparison in found]
    assert holm == [{"ap": 0.02, "ap50": 0.5}, {"ap": 0.04}, {"ap": 0.04}]

"""Baselines, and what differs from them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec.structs import replace
from scipy import stats

from evaltools.errors import DataError
from evaltools.gates.baseline import Baseline, BaselineConfiguration, make_baseline, read_baseline
from evaltools.gates.baseline_diff import BaselineComparison, compare_with_baseline
from evaltools.report.words.baseline import baseline_change_in_words, baseline_decisions
from evaltools.result.evaluation import ExecutionUsed
from evaltools.result.json_file import encode_json
from evaltools.tasks.imagenet.result import ExampleAnswer, ExampleRecord
from tests.results import configuration, result, with_part


def baseline(examples: str = "same", count: int = 200, **configurations: BaselineConfiguration) -> Baseline:
    return Baseline("1", "imagenet", "m.tflite", "00", "0", "then", count, examples, list(configurations.values()))


def measured(name: str = "test", **facts: object) -> BaselineConfiguration:
    return replace(BaselineConfiguration(name, [], "litert", {}), **facts)


def compared(before: BaselineConfiguration, now: BaselineConfiguration, examples: str = "same") -> BaselineComparison:
    return compare_with_baseline(baseline(a=before), baseline(examples, a=now), 0.005)


def test_a_baseline_comes_back_as_it_was_written(tmp_path: Path) -> None:
    answers = {name: ExampleAnswer([1], [0.5], rank, 10) for name, rank in (("reference", 0), ("test", None))}
    evaluated = with_part(
        result(configuration("reference", "reference"), configuration("test")),
        examples=[ExampleRecord("one.jpg", "cat", answers), ExampleRecord("two.jpg", "dog", answers)],
    )
    made = make_baseline(evaluated)
    assert [entry.ranks for entry in made.configurations] == ["00", "--"]
    assert made.configurations[0].figures["top1"] == 0.5
    (tmp_path / "b.json").write_bytes(encode_json(made))
    assert read_baseline(tmp_path / "b.json") == made


def test_what_is_no_baseline(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"ended early \(interrupted\)"):
        make_baseline(replace(result(configuration("x")), complete=False, stopped="interrupted"))
    with pytest.raises(DataError, match="no configuration was measured"):
        make_baseline(result(replace(configuration("x"), status="not measured")))
    fallen = make_baseline(result(configuration("x"), replace(configuration("y"), fallback="no GPU")))
    assert [entry.name for entry in fallen.configurations] == ["x"], "numbers of the CPU are not those of y"
    (tmp_path / "b.json").write_text('{"baseline_version": "1", "task": 3}')
    with pytest.raises(DataError, match=r"no evaltools baseline: .*\$\.task"):
        read_baseline(tmp_path / "b.json")
    with pytest.raises(DataError, match="evaltools baseline save makes it"):
        read_baseline(tmp_path / "none.json")


def test_accuracy_on_the_same_examples_is_judged_by_its_flips() -> None:
    before = measured(figures={"top1": 1.0, "top2": 1.0}, ranks="0" * 200)
    now = measured(figures={"top1": 0.9, "top2": 1.0}, ranks="1" * 20 + "0" * 180)
    found = compared(before, now)
    assert found.paired
    top1, top2 = found.changes
    assert baseline_change_in_words(top1).startswith("WORSE by 10.00 points [-")
    assert baseline_change_in_words(top1).endswith(f"McNemar p {stats.binomtest(0, 20).pvalue:.2g}")
    assert (baseline_change_in_words(top2), top2.regressed) == ("", False)
    assert found.regressions == [top1]


def test_a_change_that_chance_explains_is_no_regression() -> None:
    before = measured(figures={"top1": 0.99}, ranks="1100" * 50)
    now = measured(figures={"top1": 0.985}, ranks="11-0" + "1100" * 49)
    (change,) = compared(before, now).changes
    assert baseline_change_in_words(change).startswith("not decided: -0.50 points")
    assert not change.regressed


def test_accuracy_on_other_examples_is_judged_by_fishers_test() -> None:
    before = measured(figures={"top1": 0.9}, ranks="0" * 200, answered=200)
    now = measured(figures={"top1": 0.5}, ranks="0" * 200, answered=100)
    found = compared(before, now, examples="others")
    assert not found.paired
    p_value = stats.fisher_exact([[180, 20], [50, 50]]).pvalue
    assert f"WORSE: -40.00 points, p {p_value:.2g} (Fisher" in baseline_change_in_words(found.changes[0])
    assert found.changes[0].regressed
    assert len(found.setup) == 1


def test_resampled_figures_are_paired() -> None:
    draws = [40_000 + place for place in range(0, 2000, 10)]
    before = measured(figures={"ap": 0.41}, resampled={"ap": draws})
    worse = measured(figures={"ap": 0.40}, resampled={"ap": [value - 1000 - value % 7 for value in draws]})
    (change,) = compared(before, worse).changes
    assert baseline_change_in_words(change).startswith("WORSE by 1.00 points [-1.01, -0.99]")
    noisy = measured(
        figures={"ap": 0.40}, resampled={"ap": [value + (-1) ** place * 2000 for place, value in enumerate(draws)]}
    )
    (change,) = compared(before, noisy).changes
    assert baseline_change_in_words(change).startswith("not decided")
    assert compared(before, before).changes[0].verdict is None


@pytest.mark.parametrize(
    ("figure", "before", "now", "worse"),
    [
        ("avg_error", 1.0, 1.05, False),
        ("avg_error", 1.0, 1.2, True),
        ("snr_db", 40.0, 39.0, False),
        ("snr_db", 40.0, 30.0, True),
        ("max_quanta", 2.0, 3.0, True),
    ],
)
def test_errors_of_outputs_may_grow_by_a_tenth(figure: str, before: float, now: float, worse: bool) -> None:
    changes = compared(
        measured(outputs={"scores": {figure: before}}), measured(outputs={"scores": {figure: now}})
    ).changes
    assert [(change.output, change.regressed) for change in changes] == [("scores", worse)]


@pytest.mark.parametrize(
    ("figure", "before", "now", "worse"),
    [
        ("delegated_nodes", 0.98, 0.97, True),
        ("delegated_nodes", 0.98, 1.0, False),
        ("failed_examples", 0.0, 1.0, True),
        ("latency_ms", 5.0, 9.0, False),
    ],
)
def test_other_figures(figure: str, before: float, now: float, worse: bool) -> None:
    (change,) = compared(measured(figures={figure: before}), measured(figures={figure: now})).changes
    assert change.regressed == worse


@pytest.mark.parametrize("now", [{"snr_db": None}, {}])
def test_a_figure_that_is_no_number_any_more_is_worse(now: dict[str, float | None]) -> None:
    (change,) = compared(measured(outputs={"scores": {"snr_db": 40.0}}), measured(outputs={"scores": now})).changes
    assert (change.now, change.regressed) == (None, True)
    assert compared(measured(outputs={"scores": {"snr_db": None}}), measured(outputs={"scores": now})).changes == []


@pytest.mark.parametrize("figure", ["ap", "matched_boxes"])
def test_a_drop_that_nothing_tests_is_worse_beyond_the_margin(figure: str) -> None:
    for now, worse in ((0.299, True), (0.418, False), (0.5, False)):
        (change,) = compared(measured(figures={figure: 0.422}), measured(figures={figure: now})).changes
        assert change.regressed == worse
        assert baseline_change_in_words(change).startswith("WORSE: a drop beyond --margin") == worse


def test_other_pictures_or_another_shard_are_other_examples() -> None:
    one = result(configuration("x"))
    digests = {
        make_baseline(replace(one, pictures_digest=pictures, execution=execution)).examples_sha256
        for pictures in ("a", "b")
        for execution in (None, ExecutionUsed(1, 4, "0/2", 0, None, {}, {}, None))
    }
    assert len(digests) == 4


@pytest.mark.parametrize(
    ("field", "value", "place"),
    [
        ("example_count", 0, "$.example_count"),
        ("example_count", 10**18, "$.example_count"),
        ("configurations", [], "$.configurations"),
        ("ranks", "0²", "$.configurations[0].ranks"),
        ("resampled", {"ap": [10**400]}, ""),
    ],
)
def test_a_damaged_baseline_is_refused(tmp_path: Path, field: str, value: object, place: str) -> None:
    document = json.loads(encode_json(baseline(a=measured())))
    owner = document if field in document else document["configurations"][0]
    owner[field] = value
    (tmp_path / "b.json").write_text(json.dumps(document))
    with pytest.raises(DataError) as caught:
        read_baseline(tmp_path / "b.json")
    assert place in str(caught.value)


def test_what_was_set_up_in_another_way_is_said() -> None:
    before = baseline(count=100, a=measured(), b=measured("gone"))
    now = replace(baseline(a=measured(runtime="tflite", flags=["--use_gpu=true"])), model_sha256="01")
    found = compare_with_baseline(before, now, 0.005)
    assert found.missing == ["gone"]
    assert found.setup == [
        "another model file: m.tflite then, m.tflite now, with other content",
        "100 examples then, 200 now",
        "test: litert then, tflite now",
        "test: no flags then, --use_gpu=true now",
    ]


def test_every_verdict_says_what_the_figure_was_held_to() -> None:
    before = measured(
        figures={"latency_ms": 5.0, "peak_memory_mb": 50.0, "top1": 0.99, "ap": 0.42, "failed_examples": 0.0},
        outputs={"scores": {"max_error": 1.0, "snr_db": 40.0}},
        ranks="1100" * 50,
    )
    now = measured(
        figures={"latency_ms": 9.0, "peak_memory_mb": 51.0, "top1": 0.985, "ap": 0.418, "failed_examples": 1.0},
        outputs={"scores": {"max_error": 1.05, "snr_db": None}},
        ranks="11-0" + "1100" * 49,
    )
    assert [(decision.limit, decision.verdict) for decision in baseline_decisions(compared(before, now))] == [
        ("top1 no worse than 99 %, beyond chance", "pass"),
        ("ap no worse than 42 % by more than 0.5 points", "pass"),
        ("failed_examples no worse than 0", "fail"),
        ("max_error[scores] no worse than 1 by more than 10 %", "pass"),
        ("snr_db[scores] no worse than 40 dB", "fail"),
    ]
    same = measured(figures={"top1": 0.5}, ranks="0-" * 100)
    assert [decision.verdict for decision in baseline_decisions(compared(same, same))] == ["pass"]

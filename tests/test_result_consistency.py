"""Results that were edited: a figure that the counts, answers or times beside it deny is refused, naming both."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from evaltools import exit_codes
from evaltools.errors import DataError
from evaltools.metrics.classification import Agreement, ClassificationMetrics
from evaltools.metrics.interval import Interval
from evaltools.metrics.latency import summarise_latency
from evaltools.result.evaluation import EvaluationResult, ExecutionUsed
from evaltools.result.json_file import encode_json
from evaltools.result_consistency import missing_records
from evaltools.result_file import result_in
from evaltools.tasks.framework.topk_result import Classified, Comparison, ExampleAnswer, ExampleRecord, TopKChange
from tests.command import evaltools_here
from tests.results import configuration, result, topk_of, with_part

RANKS = {"reference": [0] * 56 + [1, 2, 5, None], "test": [0] * 55 + [1, 1, 2, 5, None]}
TIMES_US = [1000.0 + number for number in range(60)]


def classifier() -> EvaluationResult:
    """Of 60 recorded pictures; one is lost in ``test``."""
    entries = [
        replace(
            configuration(name, role), finished_examples=60, inference_latency=summarise_latency(TIMES_US), load_ms=2.0
        )
        for name, role in (("reference", "reference"), ("test", "test"))
    ]
    answered = {name: Classified(ClassificationMetrics(topk_of(ranks, 3), 0, 2), []) for name, ranks in RANKS.items()}
    made = replace(result(*entries, answered=answered), examples_done=60, failed=[])
    execution = ExecutionUsed(1, 60, None, 0, None, {}, {}, None)
    compared = Comparison("reference", "test", Agreement(60, 59, 1, 0))
    change = TopKChange(1, 1, 0, -1 / 60, Interval(-0.1, 0.1), 1.0, 1.0)
    examples = [
        ExampleRecord(
            str(number),
            "cat",
            {name: ExampleAnswer([0], [0.5], ranks[number], TIMES_US[number]) for name, ranks in RANKS.items()},
        )
        for number in range(60)
    ]
    made = replace(made, execution=execution)
    return with_part(made, examples=examples, comparisons=[replace(compared, topk=[change])])


TEST = ("configurations", 1)
TOPK = ("part", "topk", "classified", "test", "metrics", "topk", "accuracies")
Edit = dict[tuple[str | int, ...], object]


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        ({(*TEST, "figures", "top1"): 0.99}, "'test': top1 is 0.99, and 55 of 60 are 0.9166"),
        ({(*TEST, "finished_examples"): 30}, "'test' has records of 30 of 60 examples"),
        ({("examples_done",): 120}, "'reference' has records of 60 of 120 examples"),
        (
            {(*TEST, "finished_examples"): 30, ("configurations", 0, "finished_examples"): 30, ("examples_done",): 30},
            "top1 is of 60 examples, and 30 were finished",
        ),
        (
            {(*TEST, "figures", "top1"): 56 / 60, (*TOPK, 0): 56 / 60},
            "top1 counts 56 of 60, and 55 of 60 recorded answers are right",
        ),
        (
            {(*TEST, "figures", "top3"): 0.5, (*TOPK, 2): 0.5, ("part", "topk", "examples"): None},
            "top3 has 30 right, and top2 has 57",
        ),
        (
            {("part", "topk", "examples", 3, "answers", "test", "rank"): 4},
            "55 of 60, and 54 of 60 recorded answers are right",
        ),
        ({("part", "topk", "comparisons", 0, "topk", 0, "lost"): 0}, "top1 changed by 0.0, and it is 0.9166"),
        ({("part", "topk", "examples", 3, "answers", "test", "invoke_us"): -5.0}, "a time is -5.0 us"),
        (
            {(*TEST, "inference_latency", "p50_us"): 1000.5},
            "p50_us is 1000.5, and that of the recorded times is 1029.5",
        ),
        ({(*TEST, "inference_latency", "p50_us"): 1.0}, "p50_us is 1.0, and its times lie from 1000 to 1059"),
        ({(*TEST, "inference_latency", "min_us"): -1}, "its shortest time is -1 us"),
        ({(*TEST, "load_ms"): -2.0}, "load_ms is -2.0"),
        ({(*TEST, "nan_outputs"): 7}, "nan_outputs is 7, and there are 0"),
    ],
)
def test_figures_that_their_records_deny_are_refused(edit: Edit, said: str) -> None:
    sound = encode_json(classifier())
    assert result_in(sound, Path("r.json")) == classifier()
    document = json.loads(sound)
    for place, value in edit.items():
        parent: Any = document
        for key in place[:-1]:
            parent = parent[key]
        parent[place[-1]] = value
    with pytest.raises(DataError, match="its figures contradict each other") as error:
        result_in(json.dumps(document).encode(), Path("r.json"))
    assert said in str(error.value)


def test_a_gate_judges_no_figure_that_the_records_deny(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    made = classifier()
    path.write_bytes(encode_json(made))
    judged = evaltools_here("gate", str(path), "--limit=top1 >= 95 %")
    assert judged.code == exit_codes.LIMIT_BROKEN, judged.err
    reference, test = made.configurations
    better = replace(test, figures={**test.figures, "top1": 0.99})
    path.write_bytes(encode_json(replace(made, configurations=[reference, better])))
    judged = evaltools_here("gate", str(path), "--limit=top1 >= 95 %")
    assert judged.code == exit_codes.USAGE, judged.out
    assert "top1 is 0.99, and 55 of 60 are 0.916" in judged.err


def test_a_result_is_whole_only_with_a_record_of_each_configuration_for_each_example() -> None:
    made = classifier()
    reference, test = made.configurations
    assert not missing_records(made)
    assert not missing_records(
        replace(made, configurations=[reference, replace(test, finished_examples=58, failed_examples=2)])
    )
    few = replace(made, configurations=[replace(reference, finished_examples=33), test])
    assert missing_records(few) == "'reference' has records of 33 of 60 examples"

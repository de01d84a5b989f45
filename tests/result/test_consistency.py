"""Results that were edited: a figure that the counts, answers or times beside it deny is refused, naming both."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from evaltools import exit_codes
from evaltools.metrics.latency import summarise_latency
from evaltools.result.json_file import encode_json
from evaltools.result.result import INVOKE_US, Result, missing_records
from evaltools.result_file import result_in
from tests.command import evaltools_here
from tests.results import assert_contradicts_itself, compared, configuration, of_ranks, result, row_with

RANKS: dict[str, list[int | None]] = {
    "reference": [*[0] * 56, 1, 2, 5, None],
    "test": [*[0] * 55, 1, 1, 2, 5, None],
}
TIMES_US = [1000.0 + number for number in range(60)]


def classifier() -> Result:
    """Of 60 recorded pictures; one is lost in ``test``."""
    entries = [
        row_with(
            configuration(name, role),
            examples=60,
            latency=summarise_latency(TIMES_US),
            load_ms=2.0,
            series={INVOKE_US: TIMES_US},
        )
        for name, role in (("reference", "reference"), ("test", "test"))
    ]
    answered = {name: of_ranks(ranks, 3, recorded=True) for name, ranks in RANKS.items()}
    paired = compared("reference", "test", 60, 59)
    made = result(*entries, answered=answered, comparisons=[paired])
    return replace(made, examples_done=60, example_count=60, failed=[])


TEST = ("rows", 1)
TOP1, TOP3 = (*TEST, "figures", "top1"), (*TEST, "figures", "top3")
Edit = dict[tuple[str | int, ...], object]


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        ({(*TOP1, "value"): 0.99}, "'test': top1 is 0.99, and no number of 60 is such a share"),
        ({(*TOP1, "value"): -0.5}, "'test': top1 is -0.5, and a share is 0 to 1"),
        ({(*TEST, "figures", "failed_examples", "value"): 5}, "'test' has records of 65 of 60 examples"),
        ({("examples_done",): 120, ("example_count",): 120}, "'reference' has records of 60 of 120 examples"),
        (
            {
                (*TEST, "figures", "examples", "value"): 30,
                ("rows", 0, "figures", "examples", "value"): 30,
                ("examples_done",): 30,
            },
            "top1 is of 60 examples, and 30 were finished",
        ),
        ({(*TOP1, "value"): 56 / 60}, "top1 is 0.9333333333333333, and the mean of the recorded scores is 0.9166"),
        (
            {(*TOP3, "value"): 0.5, (*TOP3, "interval"): None, (*TOP3, "scores"): []},
            "top3 is 0.5, and top2, which is never above it, is 0.95",
        ),
        ({(*TOP1, "scores", 3): 0.0}, "top1 is 0.9166666666666666, and the mean of the recorded scores is 0.9"),
        ({(*TOP1, "scores"): [1.0]}, "top1 is of 60, and 1 scores are recorded"),
        ({(*TOP1, "change", "lost"): 0}, "top1 changed by -0.0166"),
        ({(*TOP1, "interval", "high"): 0.5}, "top1 is 0.9166666666666666, and its interval is"),
        ({(*TOP1, "change", "against"): "nobody"}, "top1 is compared with 'nobody', which is not a row"),
        ({(*TEST, "series", INVOKE_US, 3): -5.0}, "a time is -5.0 us"),
        (
            {(*TEST, "figures", "latency_ms", "value"): 1.0005},
            "latency_ms is 1.0005, and the median of the recorded times is 1.0295",
        ),
        (
            {(*TEST, "times", "invoke", "avg_us"): 1.0},
            "the average time of invoke is 1.0 us, of times from 1000 to 1059",
        ),
        ({(*TEST, "times", "invoke", "min_us"): -1}, "the shortest time of invoke is -1 us"),
        ({(*TEST, "figures", "load_ms", "value"): -2.0}, "load_ms is -2.0"),
    ],
)
def test_figures_that_their_records_deny_are_refused(edit: Edit, said: str) -> None:
    sound = encode_json(classifier())
    assert result_in(sound, Path("r.json")).rows == classifier().rows
    assert_contradicts_itself(sound, edit, said)


def test_a_gate_judges_no_figure_that_the_records_deny(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    made = classifier()
    path.write_bytes(encode_json(made))
    judged = evaltools_here("gate", str(path), "--limit=top1 >= 95 %")
    assert judged.code == exit_codes.LIMIT_BROKEN, judged.err
    reference, test = made.rows
    better = replace(test, figures={**test.figures, "top1": replace(test.figures["top1"], value=59 / 60)})
    path.write_bytes(encode_json(replace(made, rows=[reference, better])))
    judged = evaltools_here("gate", str(path), "--limit=top1 >= 95 %")
    assert judged.code == exit_codes.USAGE, judged.out
    assert "top1 is 0.98" in judged.err


def test_a_result_is_whole_only_with_a_record_of_each_configuration_for_each_example() -> None:
    made = classifier()
    reference, test = made.rows
    assert not missing_records(made)
    assert not missing_records(replace(made, rows=[reference, row_with(test, examples=58, failed_examples=2)]))
    few = replace(made, rows=[row_with(reference, examples=33), test])
    assert missing_records(few) == "'reference' has records of 33 of 60 examples"

"""Limits as a user writes them: what they are read as, and what each mistake is answered with."""

from __future__ import annotations

import pytest

from evaltools.errors import UsageError
from evaltools.gates.criteria import parse_criterion
from evaltools.known_tasks import all_metrics

METRICS = all_metrics()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("top1 >= 70 %", ("top1", None, "value", False, 0.7, None)),
        ("top1>=70%", ("top1", None, "value", False, 0.7, None)),
        ("top5 >= 90 % at 99.5 %", ("top5", None, "value", False, 0.9, 0.995)),
        ("top1 drop <= 5e-1 points at 95 %", ("top1", None, "drop", True, 0.005, 0.95)),
        ("top1 drop <= 0.5 points at 95%", ("top1", None, "drop", True, 0.005, 0.95)),
        ("top1 drop <= 1 point", ("top1", None, "drop", True, 0.01, None)),
        ("top1 drop <= -1 point", ("top1", None, "drop", True, -0.01, None)),
        ("mAP drop <= 1 points", ("ap", None, "drop", True, 0.01, None)),
        ("map >= 30 %", ("ap", None, "value", False, 0.3, None)),
        ("max_quanta[scores] <= 2", ("max_quanta", "scores", "value", True, 2.0, None)),
        (
            "max_error[ StatefulPartitionedCall:0 ] <= 1e-3",
            ("max_error", "StatefulPartitionedCall:0", "value", True, 1e-3, None),
        ),
        ("snr_db >= -3", ("snr_db", None, "value", False, -3.0, None)),
        ("latency_ms <= 5 ms", ("latency_ms", None, "value", True, 5.0, None)),
        ("latency_ms<=5", ("latency_ms", None, "value", True, 5.0, None)),
        ("latency_ratio <= 0.8 at 97.5 %", ("latency_ratio", None, "ratio", True, 0.8, 0.975)),
        ("failed_examples <= 0", ("failed_examples", None, "value", True, 0.0, None)),
    ],
)
def test_what_a_limit_is_read_as(text: str, expected: tuple[object, ...]) -> None:
    found = parse_criterion(text)
    read_as = (found.figure, found.output, found.kind, found.at_most, found.value, found.confidence)
    assert read_as == expected


def test_the_text_is_kept_with_single_spaces() -> None:
    assert parse_criterion("  top1   drop\n<= 0.5  points ").text == "top1 drop <= 0.5 points"


def test_a_percentage_is_the_share_that_so_many_of_a_hundred_give() -> None:
    for percent in range(1, 100):
        assert parse_criterion(f"top1 >= {percent} %").value == percent / 100
        assert parse_criterion(f"top1 drop <= {percent / 10} points").value == percent / 1000


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "'' is not a limit; write such as 'top1 >= 70 %' or 'top1 drop <= 0.5 points at 95 %'"),
        ("top1 > 0.7", "'top1 > 0.7' is not a limit"),
        ("top1 >= nan", "'top1 >= nan' is not a limit"),
        ("top1 >= 0,7", "'top1 >= 0,7' is not a limit"),
        ("top1 >= 0.7 at 95", "'top1 >= 0.7 at 95' is not a limit"),
        ("max_quanta[] <= 2", "'max_quanta[] <= 2' is not a limit"),
        ("top_1 >= 0.7", "'top_1 >= 0.7': no such figure 'top_1'. Did you mean top1? Known are top1, top2, "),
        ("exactness >= 0.7", "'exactness >= 0.7': no such figure 'exactness'. Known are top1, "),
        ("top11 >= 0.7", "no such figure 'top11'. Did you mean top1"),
        ("agreement drop <= 0.1", "'agreement drop <= 0.1': only ap, ap50, "),
        ("top1 ratio >= 0.9", "'top1 ratio >= 0.9': only times have a ratio: 'latency_ratio <= 0.8'"),
        ("latency ratio <= 0.9", "'latency ratio <= 0.9': only times have a ratio: 'latency_ratio <= 0.8'"),
        ("latency <= 5", "'latency <= 5': no such figure 'latency'. Did you mean latency_ms"),
        ("top1[scores] >= 0.7", "'top1[scores] >= 0.7': top1 is not a figure of one output; leave [scores] out"),
        ("top1 drop >= 0.01", "'top1 drop >= 0.01': a drop is limited from above: top1 drop <= ..."),
        ("top1 >= 0.7 at 50 %", "use a confidence above 50 % and below 100 %"),
        ("latency_ratio <= 1 at 99 %", "hold the 95 % interval of the ratio, so 97.5 % on one side is the most"),
        (
            "agreement >= 0.99 at 95 %",
            "only top1 to top10, drops and latency_ratio have an interval; leave 'at ...' out",
        ),
        ("top1 >= 70", "'top1 >= 70' has no unit: write 70 %"),
        ("top1 >= 0.7", "'top1 >= 0.7' has no unit: 0.7 % or 70 %? Write 0.7 % (7 of 1000 examples), or 70 %"),
        ("delegated_share >= 1", "has no unit: 1 % or 100 %?"),
        ("ap drop <= 0.5", "'ap drop <= 0.5' has no unit: 0.5 points or 50 points?"),
        ("top1 drop vs old <= 0.5", "has no unit: 0.5 points or 50 points? Write 0.5 points (5 of 1000 examples)"),
        (
            "top1 >= 0.7 %",
            "'top1 >= 0.7 %' is kept by nearly every model, also by one that is ruined: 0.007 of all is ",
        ),
        ("top1 >= 0.7 %", "was top1 >= 70 % meant? The least is 1 %"),
        ("top1 >= 170 %", "'top1 >= 170 %': top1 is a share, 0 to 100 %, and 170 % is none"),
        ("top1 >= -10 %", "is never negative"),
        ("top1 <= 0.99", "'top1 <= 0.99' is the wrong way round: higher is better; write top1 >= ..."),
        ("delegated_share <= 1", "is the wrong way round: higher is better"),
        ("failed_examples >= 0", "is the wrong way round: lower is better; write failed_examples <= ..."),
        ("latency_ratio >= 0.5", "is the wrong way round: lower is better; write latency_ratio <= ..."),
        ("top1 >= 0", "'top1 >= 0' is kept by every result, so it shows nothing; give a limit that can be broken"),
        ("distinct_answers >= 0", "is kept by every result"),
        ("top1 drop <= 100 points", "is kept by every result"),
        ("top1 vs old >= 0.5", "'vs old' stands behind drop, rise or ratio"),
        ("top1 drop <= 5", "'top1 drop <= 5' has no unit: write 5 points"),
        ("top1 >= 0.7 ms", "'top1 >= 0.7 ms': top1 is not measured in ms; leave the unit out"),
        ("latency_ms <= 5 %", "'latency_ms <= 5 %': latency_ms is not a share, so it has no %; leave the unit out"),
        ("latency_ratio <= 80 %", "latency_ratio is not a share, so it has no %"),
        ("max_error <= 1e999", "'max_error <= 1e999': inf limits nothing; give a finite number"),
        ("failed_examples <= -1", "failed_examples is never negative; give a number of 0 or more"),
    ],
)
def test_what_is_no_limit_is_answered_with_what_would_be(text: str, message: str) -> None:
    with pytest.raises(UsageError) as error:
        parse_criterion(text)
    assert message in str(error.value)
    assert str(error.value).startswith(repr(text))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("top1 >= 70 %", False),
        ("latency_ms <= 5", False),
        ("delegated_share >= 90 %", False),
        ("ap >= 30 %", False),
        ("top1 drop <= 10 points", True),
        ("latency_ratio <= 1", True),
        ("agreement >= 90 %", True),
        ("snr_db >= 40", True),
    ],
)
def test_what_is_about_a_comparison_with_the_reference(text: str, expected: bool) -> None:
    assert parse_criterion(text).is_relative == expected


def test_a_metric_of_ones_own_means_what_its_task_says_also_under_the_name_of_another_tasks() -> None:
    """Coco's ``ap`` is a share, that of a task of one's own perhaps a percentage."""
    for known in ("no", "perhaps"):
        with pytest.raises(UsageError, match="38"):
            parse_criterion("ap >= 38", known)
    assert parse_criterion("ap >= 38", "yes").metric.is_of_own_task
    assert parse_criterion("top1 drop <= 0.5 points at 95 %", "yes").metric.bounds == "counts"

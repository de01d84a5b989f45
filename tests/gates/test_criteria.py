"""Limits as a user writes them: what they are read as. What is none is refused in ``tests/refusals/limits.txt``."""

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

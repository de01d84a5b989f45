"""When a machine is called busy."""

from __future__ import annotations

import pytest

from evaltools.report.words.facts import load_in_words
from evaltools.result.facts import Load


@pytest.mark.parametrize(
    ("cores", "others", "said"),
    [
        (1, 0.49, ""),
        (1, 0.5, "the machine was busy: 1 other process on 1 core"),
        (16, 7.9, ""),
        (16, 8.0, "the machine was busy: 8 other processes on 16 cores"),
    ],
)
def test_a_machine_is_busy_with_another_process_for_every_second_core(cores: int, others: float, said: str) -> None:
    assert load_in_words(Load(cores, others, others)) == said

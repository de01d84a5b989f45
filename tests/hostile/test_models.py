"""Models with damaged tables are refused with a sentence, or run; ``make hostile`` tries thousands."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from evaltools.errors import ModelError
from evaltools.tasks.inspection.task import inspect_model
from tests.hostile.models.mutations import BYTES, FIELDS, case
from tests.hostile.models.runs import run_cases
from tests.hostile.models.seeds import sound_models

INSPECTED = 150
RUN = 24


def test_a_damaged_model_is_read_or_refused(tmp_path: Path) -> None:
    found: Counter[bool] = Counter()
    for number in range(INSPECTED):
        path = tmp_path / "model.tflite"
        path.write_bytes(case(number).content)
        try:
            inspect_model(path, run=False)
            found[True] += 1
        except ModelError:
            found[False] += 1
    assert min(found[True], found[False]) > INSPECTED // 5, "some of each, or the damage is too much or too little"


@pytest.mark.once
def test_commands_refuse_a_damaged_model_or_run_it_and_leave_nothing(tmp_path: Path) -> None:
    done = run_cases(range(RUN), tmp_path)
    assert [each for each in done if each.wrong] == []
    assert {each.command for each in done} == {"inspect", "diff", "benchmark"}


def test_a_case_is_the_same_each_time_and_another_model_than_its_seed() -> None:
    cases = [case(number) for number in range(INSPECTED)]
    assert cases[:RUN] == [case(number) for number in range(RUN)]
    same = [each.damage for each in cases if each.content == sound_models()[each.seed]]
    assert set(same) <= {"zeros", "number_in_file"}, "what was there may be what is put there"
    damages = {name for each in cases for name in each.damage.split("+")}
    assert damages == {each.__name__ for each in (*FIELDS, *BYTES)}

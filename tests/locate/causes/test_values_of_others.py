"""An operand, the run before, or nothing at all came out instead of the result."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from evaltools.locate.causes.table import find_causes
from tests.locate.causes import models
from tests.locate.causes.cases import Array, case, random, run


@pytest.mark.parametrize("place", [0, 1])
def test_an_operand_that_was_returned(tmp_path: Path, place: int) -> None:
    content, inputs = models.add()
    cause = find_causes(case(tmp_path, "ADD", content, inputs, lambda _expected: inputs[place]))[0]
    assert cause.name == "an operand was returned"
    assert f"all 210 values are those of operand {place}, 'x{place}'" in cause.shown_by
    assert "RESHAPE" in cause.remedy
    assert cause.link.endswith("/LiteRT/issues/8599")


def test_an_operand_of_whole_numbers_that_was_returned(tmp_path: Path) -> None:
    content, inputs = models.add_int8()
    cause = find_causes(case(tmp_path, "ADD", content, inputs, lambda _expected: inputs[1]))[0]
    assert cause.name == "an operand was returned"


def test_an_operand_but_for_one_value_is_not_returned(tmp_path: Path) -> None:
    content, inputs = models.add()
    almost = inputs[0].copy()
    almost.flat[17] += np.float32(0.5)
    assert not find_causes(case(tmp_path, "ADD", content, inputs, lambda _expected: almost))


def test_an_operator_of_one_operand_that_was_skipped(tmp_path: Path) -> None:
    content, inputs = models.unary("NEG", random((1, 40)))
    assert (
        find_causes(case(tmp_path, "NEG", content, inputs, lambda _: inputs[0]))[0].name == "the operator was skipped"
    )


def test_the_output_of_the_run_before(tmp_path: Path) -> None:
    content, inputs = models.conv()
    before = [random((1, 12, 12, 4), 50)]
    path = tmp_path / "model.tflite"
    path.write_bytes(content)
    stale = run(path, before)
    (cause,) = find_causes(case(tmp_path, "CONV_2D", content, inputs, lambda _: stale, before=before))
    assert cause.name == "the output of the run before"
    assert "all 1152 values" in cause.shown_by


def test_nothing_was_written(tmp_path: Path) -> None:
    content, inputs = models.conv()
    (cause,) = find_causes(case(tmp_path, "CONV_2D", content, inputs, np.zeros_like))
    assert cause.name == "one value everywhere"
    assert "all 1152 values are 0; the CPU's are from -" in cause.shown_by


@pytest.mark.parametrize("part", [slice(0, 400), slice(800, 1152)])
def test_a_part_was_not_written(tmp_path: Path, part: slice) -> None:
    content, inputs = models.conv()

    def fault(expected: Array) -> Array:
        given = expected.copy()
        given.reshape(-1)[part] = 0
        return given

    (cause,) = find_causes(case(tmp_path, "CONV_2D", content, inputs, fault))
    assert cause.name == "a part is not written"
    assert f"elements {part.start} to {part.stop - 1} of 1152 are 0" in cause.shown_by


def test_zeros_here_and_there_are_no_part(tmp_path: Path) -> None:
    content, inputs = models.conv()
    zeros = np.random.default_rng(4).random((1, 12, 12, 8)) < 0.3
    assert not find_causes(case(tmp_path, "CONV_2D", content, inputs, lambda y: np.where(zeros, 0, y).astype(y.dtype)))

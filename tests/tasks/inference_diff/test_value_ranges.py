"""From where on numbers are too large: those that outputs may have, and those that may be asked for."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from evaltools.errors import UsageError
from evaltools.model import read_model
from evaltools.tasks.inference_diff.value_ranges import are_sane, given_ranges
from tests import tiny_models


@pytest.mark.parametrize(("largest", "sane"), [(1e6, True), (-1e6, True), (1.001e6, False), (-1.001e6, False)])
def test_outputs_beyond_a_million_have_overflowed(largest: float, sane: bool) -> None:
    assert are_sane([np.zeros(2), np.array([0.0, largest])]) == sane
    assert are_sane([np.array([10**9])])


def test_the_span_of_a_range_is_a_number_of_its_type(tmp_path: Path) -> None:
    """The largest of float32 is 3.4028e38, so a span of twice 1.7014e38 is the widest."""
    (tmp_path / "m.tflite").write_bytes(tiny_models.classifier())
    model = read_model(tmp_path / "m.tflite")
    (found,) = given_ranges(model, model.inputs, ["-1.7014e38:1.7014e38"]).values()
    assert (found.low, found.high, found.whole) == (-1.7014e38, 1.7014e38, False)
    for text in ("-1.7015e38:0", "0:1.7015e38"):
        with pytest.raises(UsageError, match=r"beyond float32; use limits within \+-1\.70141e\+38"):
            given_ranges(model, model.inputs, [text])

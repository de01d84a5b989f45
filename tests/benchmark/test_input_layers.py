"""The texts of ``--input_layer`` and its companions; what is wrong in them: tests/cli/refusals.txt."""

from __future__ import annotations

import pytest

from evaltools.benchmark.input_layers import InputLayer, read_layers


def test_all_that_flags_say_is_read() -> None:
    found = read_layers("a:0,b,c", "1, 224 ,3::+2", "c,-5,+9:a::0,0,1", "b:C::\\x.bin,a::0:y")
    assert found == (
        InputLayer("a:0", (1, 224, 3), (0, 1), "y"),
        InputLayer("b", (), None, "C:\\x.bin"),
        InputLayer("c", (2,), (-5, 9), ""),
    )


@pytest.mark.parametrize(
    ("item", "name", "file"), [("a:::b", "a:", "b"), ("a::::b:c", "a::b", "c"), ("a:b::", "a", "b:")]
)
def test_a_colon_is_written_twice(item: str, name: str, file: str) -> None:
    assert read_layers(name, "1", "", item) == (InputLayer(name, (1,), None, file),)

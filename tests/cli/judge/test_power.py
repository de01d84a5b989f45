"""``evaltools power``."""

from __future__ import annotations

from tests.command import evaltools_here


def test_the_number_of_examples_is_that_of_the_table_in_the_docs() -> None:
    completed = evaltools_here("power", "--drop=0.5 points", "--flip_rate=1 %", "--num_images=5000")
    assert completed.out.splitlines() == [
        "5000 examples decide 'top1 drop <= 0.5 points at 95 %' with a probability of 96.3 %",
        "2708 examples decide 'top1 drop <= 0.5 points at 95 %' with a probability of 80 %",
        "(of a configuration that is as accurate as the reference, with 1 % flips)",
    ]
    assert evaltools_here("power", "--drop=0.5 points", "--flip_rate=0").out.startswith("598 examples")
    hopeless = evaltools_here("power", "--drop=0.01 points", "--flip_rate=20 %")
    assert hopeless.out.startswith("more than 100000000 examples")

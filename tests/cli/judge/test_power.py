"""``evaltools power``."""

from __future__ import annotations

import pytest

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


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ((), "missing: --drop=... --flip_rate=..."),
        (("--drop=1 point",), "missing: --flip_rate=..."),
        (("--drop=0.5", "--flip_rate=1 %"), "--drop=0.5 has no unit: 0.5 points or 50 points?"),
        (("--drop=0.5 points", "--flip_rate=1"), "--flip_rate=1 has no unit: 1 % or 100 %?"),
        (("--drop=half a point", "--flip_rate=1 %"), "--drop=half a point: not a number with its unit"),
        (("--drop=1 point", "--flip_rate=10 %", "--power=1"), "--power=1: use more than 0.5, and at most 0.9999"),
        (("--drop=1 point", "--flip_rate=10 %", "--confidence=95"), "--confidence=95: use more than 0.5, and"),
        (("--drop=1 point", "--flip_rate=10 %", "--num_images=-3"), "--num_images=-3: use 1 or more"),
    ],
)
def test_wrong_flags(flags: tuple[str, ...], message: str) -> None:
    completed = evaltools_here("power", *flags)
    assert (completed.code, completed.out) == (2, "")
    assert message in completed.err

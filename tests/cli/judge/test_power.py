"""``evaltools power``."""

from __future__ import annotations

import re

import numpy as np
import pytest
from scipy import stats

from tests.command import evaltools, evaltools_here


@pytest.mark.once
def test_the_probability_is_that_of_simulated_evaluations() -> None:
    completed = evaltools_here("power", "--drop=0.5 points", "--flip_rate=1 %", "--num_images=5000")
    assert completed.code == 0
    found = re.search(r"5000 examples show .* with a probability of ([\d.]+) %", completed.out)
    assert found is not None
    generator = np.random.default_rng(1)
    drawn = generator.multinomial(5000, [0.0075, 0.0025, 0.99], 4000)
    seen = [stats.binomtest(int(lost), int(lost + gained)).pvalue <= 0.05 for lost, gained, _ in drawn]
    assert float(found[1]) == pytest.approx(100 * np.mean(seen), abs=2)


def test_the_number_of_examples() -> None:
    completed = evaltools("power", "--drop=0.5 points", "--flip_rate=1 %", "--power=0.8")
    assert completed.out.startswith(
        "3373 examples show a drop of 0.5 points with 1 % flips with a probability of 80 %\n"
    )
    hopeless = evaltools("power", "--drop=0.01 points", "--flip_rate=20 %")
    assert hopeless.out.startswith("more than 100000000 examples")


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ((), "missing: --drop=... --flip_rate=..."),
        (("--drop=1 points",), "missing: --flip_rate=..."),
        (("--drop=2 points", "--flip_rate=1 %"), "the drop is at most the share of flips"),
        (("--drop=0.5", "--flip_rate=1 %"), "--drop=0.5 has no unit: 0.5 points or 50 points?"),
        (("--drop=0.5 points", "--flip_rate=1"), "--flip_rate=1 has no unit: 1 % or 100 %?"),
        (("--drop=1 points", "--flip_rate=10 %", "--power=1"), "--power=1: use 0.5 to 0.9999"),
        (("--drop=1 points", "--flip_rate=10 %", "--confidence=95"), "--confidence=95: use 0.5 to 0.9999"),
        (("--drop=1 points", "--flip_rate=10 %", "--num_images=-3"), "--num_images=-3: use 1 or more"),
    ],
)
def test_wrong_flags(flags: tuple[str, ...], message: str) -> None:
    completed = evaltools_here("power", *flags)
    assert (completed.code, completed.out) == (2, "")
    assert message in completed.err

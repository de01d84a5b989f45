"""``evaltools demo`` on what is installed."""

from __future__ import annotations

from pathlib import Path

from tests.command import evaltools


def test_the_demo_evaluates_a_model_and_says_what_to_look_at() -> None:
    completed = evaltools("demo", "--models=float32")
    assert completed.code == 0, completed.err
    assert completed.out == ""
    assert "$ evaltools imagenet --model_file=" in completed.err
    assert "91.00 %" in completed.err
    assert "What to look at" in completed.err


def test_the_demo_shows_a_delegate_that_takes_nothing(rounding_delegate: Path) -> None:
    completed = evaltools("demo", "--models=int8", f"--external_delegate_path={rounding_delegate}")
    assert completed.code == 0, completed.err
    assert "not measured: the EXTERNAL delegate was applied but took none of the 19 nodes" in completed.err


def test_an_unknown_model_is_refused() -> None:
    completed = evaltools("demo", "--models=float64")
    assert completed.code == 2
    assert "'float64' is no model of the sample; use some of float32,float16,dynamic_range,int8" in completed.err

"""Flags that are tried after a run: in which order, what is made of the times, what stays where one fails."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from statistics import geometric_mean
from typing import Any

import pytest
from msgspec.structs import replace

from evaltools.configuration import Configuration
from evaltools.engine.execution import Execution
from evaltools.engine.ledger import Tally
from evaltools.engine.run import PassOptions, PassOutcome
from evaltools.engine.stages import StageTimes
from evaltools.engine.task import Example
from evaltools.errors import ConfigurationUnavailable
from evaltools.tasks.shared.advice import ROUNDS, Rounds, Settings, Trial, Turn, with_tried_advice
from evaltools.tasks.shared.measured import MeasuredPass
from evaltools.tasks.shared.measuring import Observer, PassSetup
from evaltools.tasks.shared.request import TaskRequest

AS_IT_WAS, TWO, FOUR = Settings(1, None), Settings(2, None), Settings(4, None)
SETTINGS = {"": AS_IT_WAS, "--workers=2": TWO, "--workers=4": FOUR}
REQUEST = TaskRequest(
    model_file=Path("m.tflite"), reference=None, tests=(Configuration("test"),), execution=Execution(try_advice=3)
)


class Told(Trial, frozen=True):
    """A trial whose turns take as long as ``told`` says, in which all calls are listed."""

    told: Callable[[Settings, int], Turn]
    calls: list[Settings]

    def turn(self, settings: Settings) -> Turn:
        self.calls.append(settings)
        return self.told(settings, self.calls.count(settings) - 1)


def rounds(told: Callable[[Settings, int], Turn]) -> tuple[Rounds, list[Settings]]:
    calls: list[Settings] = []
    nothing: Any = None
    examples = [Example(index, f"{index}.jpg") for index in range(3)]
    return Rounds(
        Told(nothing, PassSetup(None, PassOptions()), [], examples, REQUEST, nothing, told, calls), SETTINGS
    ), calls


def seconds(settings: Settings, number: int) -> Turn:
    """The first round, which fills caches, is far too long; workers help by half, and rounds differ."""
    return Turn((100.0 if number == 0 else 6.0 + number) / (1 + settings.workers / 2), 0)


def test_every_second_round_is_in_the_opposite_order_and_the_first_is_not_counted() -> None:
    tried, calls = rounds(seconds)
    assert not tried.run(Observer())
    assert calls == [FOUR, TWO, AS_IT_WAS, *[AS_IT_WAS, TWO, FOUR, FOUR, TWO, AS_IT_WAS] * (ROUNDS // 2)]
    found = tried.found("--workers=2")
    assert found.seconds == [7 / 2, 8 / 2, 9 / 2, 10 / 2]
    assert found.seconds_without == [7 / 1.5, 8 / 1.5, 9 / 1.5, 10 / 1.5]
    assert (found.examples, found.reason) == (3, "")


def test_the_speed_is_the_mean_of_the_ratios_with_students_interval() -> None:
    """t of 3 degrees of freedom is 3.182 at 97.5 %, from tables."""
    own = {1: 2.0, 2: 2.5, 3: 2.0, 4: 1.6}
    tried, _ = rounds(lambda settings, number: Turn(4.0 if settings == AS_IT_WAS else own.get(number, 9.0), 0))
    tried.run(Observer())
    found = tried.found("--workers=2")
    assert found.speed == pytest.approx(geometric_mean([2.0, 1.6, 2.0, 2.5]))
    assert found.interval is not None
    # logarithms: ln 2 and ln 2 -+ ln 1.25 -> deviation ln 1.25 * sqrt(2 / 3), standard error half of that
    reach = 1.25 ** (3.182446 * (2 / 3) ** 0.5 / 2)
    assert (found.interval.low, found.interval.high) == pytest.approx((2 / reach, 2 * reach), rel=1e-6)


def test_settings_that_fail_are_left_out_and_the_others_go_on() -> None:
    def told(settings: Settings, number: int) -> Turn:
        if settings == FOUR:
            raise ConfigurationUnavailable("no memory for 4")
        return Turn(1.0, 2 if settings == TWO and number == 3 else 1)

    tried, calls = rounds(told)
    tried.run(Observer())
    assert calls.count(FOUR) == 1
    assert (tried.found("--workers=4").speed, tried.found("--workers=4").reason) == (None, "no memory for 4")
    fails = tried.found("--workers=2")
    assert (fails.speed, fails.reason) == (None, "1 of 3 examples fail with it that did not without")


def test_nothing_is_said_of_speed_where_the_run_cannot_be_repeated() -> None:
    def told(settings: Settings, _number: int) -> Turn:
        if settings == AS_IT_WAS:
            raise ConfigurationUnavailable("cpu was given up")
        return Turn(1.0, 0)

    tried, calls = rounds(told)
    tried.run(Observer())
    assert len(calls) == len(SETTINGS)
    assert tried.found("--workers=2").reason == "the run could not be repeated as it was: cpu was given up"


@pytest.mark.parametrize(("last", "counted"), [(3, 0), (8, 1)])
def test_rounds_that_were_finished_before_an_interrupt_are_kept(last: int, counted: int) -> None:
    class Interrupting(Observer):
        @contextmanager
        def progress(self, phase: str, total: int) -> Any:
            assert (phase, total) == ("trying advice", (ROUNDS + 1) * len(SETTINGS))

            def tell(tally: Tally) -> None:
                if tally.done == last:
                    raise KeyboardInterrupt

            yield tell

    tried, _ = rounds(seconds)
    assert tried.run(Interrupting())
    found = tried.found("--workers=2")
    assert (found.speed is not None, found.interval) == (counted > 0, None)
    assert found.reason == ("" if counted else "it was interrupted before the end of a round")


def of(bound_by: str, stopped: Any = None) -> MeasuredPass:
    stages = StageTimes()
    stages.seconds[bound_by] = 1.0
    return MeasuredPass(PassOutcome({}, examples_run=8, stopped=stopped, stages=stages))


@pytest.mark.parametrize(
    ("measured", "setup", "why"),
    [
        (
            of("metrics"),
            PassSetup(None, PassOptions()),
            "none is known that would make this run faster",
        ),
        (MeasuredPass(PassOutcome({})), PassSetup(None, PassOptions()), "no example was run this time"),
        (of("decode"), PassSetup(None, PassOptions(), one_worker=True), "the runs depend on those before them"),
        (of("decode", "interrupted"), PassSetup(None, PassOptions()), ""),
    ],
    ids=["nothing helps", "resumed", "keeps a state", "stopped"],
)
def test_why_nothing_was_tried_is_said(measured: MeasuredPass, setup: PassSetup, why: str) -> None:
    nothing: Any = None
    found = with_tried_advice(measured, nothing, setup, [], REQUEST, Observer(), nothing)
    assert found.not_tried.startswith(why)
    assert (found.not_tried == "", found.tried) == (why == "", ())
    not_asked = replace(REQUEST, execution=Execution())
    assert with_tried_advice(measured, nothing, setup, [], not_asked, Observer(), nothing) is measured


def test_a_folder_for_inputs_that_cannot_be_made_costs_no_result(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(**_given: Any) -> AbstractContextManager[str]:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tempfile.TemporaryDirectory", full)
    nothing: Any = type("Nothing", (), {"in_order": True, "examples": []})()
    found = with_tried_advice(of("decode"), nothing, PassSetup(None, PassOptions()), [], REQUEST, Observer(), nothing)
    assert found.not_tried.startswith(
        "no folder for inputs can be made: [Errno 28] No space left on device; name another"
    )

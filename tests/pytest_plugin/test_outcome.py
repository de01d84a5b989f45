"""From decisions to the outcome of a test."""

from __future__ import annotations

import pytest

from evaltools.gates.check import GateDecisions
from evaltools.gates.decide import Decision, Found
from evaltools.gates.evidence import RunRows
from evaltools.pytest_plugin.outcome import Outcome, judge, properties
from evaltools.pytest_plugin.settings import Settings
from evaltools.result.verdict import GateVerdict

LENIENT = Settings("skip")


def decided(name: str, verdict: GateVerdict) -> Decision:
    found = None if verdict in ("not measured", "skipped") else Found("top1", 0.5)
    reason = "" if verdict in ("pass", "fail") else f"because of {name}"
    return Decision(name, "top1 >= 50 %", verdict, found, reason)


def reported(*decisions: Decision) -> list[GateDecisions]:
    return [GateDecisions("run", "model.tflite", decisions)]


PASSES = decided("a", "pass")
FAILS = decided("b", "fail")
OPEN = decided("c", "inconclusive")
STOPPED = decided("d", "not measured")
ABSENT = decided("e", "skipped")


@pytest.mark.parametrize(
    ("decisions", "kind"),
    [
        ([PASSES], "pass"),
        ([PASSES, ABSENT], "pass"),
        ([ABSENT], "skip"),
        ([ABSENT, ABSENT], "skip"),
        ([], "fail"),
        ([PASSES, OPEN], "skip"),
        ([PASSES, FAILS], "fail"),
        ([OPEN, FAILS], "fail"),
        ([PASSES, STOPPED], "fail"),
        ([ABSENT, STOPPED], "fail"),
        ([ABSENT, FAILS], "fail"),
    ],
)
def test_the_worst_that_counts_decides(decisions: list[Decision], kind: str) -> None:
    assert judge(reported(*decisions), LENIENT).kind == kind


def test_what_becomes_of_open_limits_is_a_setting() -> None:
    assert judge(reported(PASSES, OPEN), Settings("fail")).kind == "fail"
    assert judge(reported(PASSES, OPEN), Settings("xfail")).kind == "xfail"
    assert judge(reported(ABSENT), Settings("xfail")).kind == "skip"
    assert judge(reported(), Settings("skip")) == Outcome("fail", "nothing was measured")


def test_a_failure_names_all_that_does_not_keep_the_limit_and_nothing_else() -> None:
    parts = judge(reported(PASSES, FAILS, OPEN, STOPPED, ABSENT), LENIENT).text.split("\n\n")
    assert [part.splitlines()[0] for part in parts] == [
        "run/b: fail: top1 0.5",
        "run/d: not measured: because of d",
        "run/c: inconclusive: top1 0.5",
    ]
    assert parts[0].splitlines()[1:] == ["  limit   top1 >= 50 %", "  model   model.tflite"]
    assert parts[2].splitlines()[-1].startswith("  reason  because of c. That is not a proof")


def test_words_of_native_code_cannot_command_the_terminal() -> None:
    crashed = Decision("x", "top1 >= 50 %", "not measured", reason="died\n\x1b[2J")
    assert judge(reported(crashed), LENIENT).text.splitlines()[0] == "run/x: not measured: died\\n\\x1b[2J"


def test_properties_hold_what_was_found() -> None:
    undecided = Decision(
        "c",
        "top1 >= 50 %",
        "inconclusive",
        Found("top1", 0.5, 0.4, 0.6),
        "too few examples to decide; about 300 would do",
        300,
    )
    other = RunRows("benchmark", "benchmark", "model.tflite", warnings=["the machine was busy"])
    found = dict(properties(reported(undecided), {"run": other}))
    assert "about 300" in found.pop("run/c.reason")
    assert found == {
        "run/c.model": "model.tflite",
        "run/c.verdict": "inconclusive",
        "run/c.found": "top1 0.5 (0.4 to 0.6)",
        "run/c.examples_needed": "300",
        "run/c.top1": "0.5",
        "run.warning": "the machine was busy",
    }

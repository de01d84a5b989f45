"""From the decisions on a limit to the outcome of its test, and the words for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Literal

from msgspec import Struct

from evaltools.gates.check import GateDecisions
from evaltools.gates.decide import Decision
from evaltools.gates.other_results import AnyResult
from evaltools.pytest_plugin.settings import Settings
from evaltools.report.words.gates import found_in_words, reason_in_words
from evaltools.text import printable

_BROKEN: Final = ("fail", "not measured")
OutcomeKind = Literal["pass", "fail", "skip", "xfail"]


class Outcome(Struct, frozen=True):
    """What becomes of a test, and why."""

    kind: OutcomeKind
    text: str = ""


def judge(reports: Sequence[GateDecisions], settings: Settings) -> Outcome:
    """The outcome of one limit over everything that it is compared with, mostly one configuration.

    A configuration that cannot exist here is left out, unless ``strict``; where nothing else is left, nothing was
    shown, and the test is skipped.
    """
    found = [(report, decision) for report in reports for decision in report.decisions]
    counting = [entry for entry in found if settings.strict or not entry[1].cannot_exist]
    open_ones = [entry for entry in counting if entry[1].verdict == "inconclusive"]
    broken = [entry for entry in counting if entry[1].verdict in _BROKEN]
    if broken or (open_ones and settings.inconclusive == "fail"):
        return Outcome("fail", "\n\n".join(_block(*entry) for entry in broken + open_ones))
    if open_ones:
        return Outcome("skip" if settings.inconclusive == "skip" else "xfail", _line(open_ones))
    if not counting:
        return Outcome("fail" if settings.strict else "skip", _line(found) or "nothing was measured")
    return Outcome("pass")


def properties(reports: Sequence[GateDecisions], results: Mapping[str, AnyResult]) -> list[tuple[str, str]]:
    """The figures of a test and the warnings of its runs by name, as they stand in a report of JUnit's form."""
    found = []
    for report in reports:
        for decision in report.decisions:
            values = {
                "model": report.model,
                "verdict": decision.verdict,
                "found": found_in_words(decision.found),
                "reason": reason_in_words(decision),
                "examples_needed": "" if decision.examples_needed is None else str(decision.examples_needed),
            }
            if decision.found is not None and decision.found.value is not None:
                values[decision.found.figure] = f"{decision.found.value:.6g}"
            place = _place(report, decision)
            found += [(f"{place}.{name}", value) for name, value in values.items() if value]
    return found + [(f"{run}.warning", printable(text)) for run, result in results.items() for text in result.warnings]


def _place(report: GateDecisions, decision: Decision) -> str:
    return "/".join(word for word in (report.run, decision.configuration) if word)


def _line(entries: Sequence[tuple[GateDecisions, Decision]]) -> str:
    return printable(
        "; ".join(
            _headline(report, decision)
            + (f", {reason_in_words(decision)}" if decision.found and decision.reason else "")
            for report, decision in entries
        )
    )


def _headline(report: GateDecisions, decision: Decision) -> str:
    text = found_in_words(decision.found) or reason_in_words(decision)
    return f"{_place(report, decision)}: {decision.verdict}: {text}"


def _block(report: GateDecisions, decision: Decision) -> str:
    reason = reason_in_words(decision) if decision.found else ""
    if decision.verdict == "inconclusive":
        reason += ". That is not a proof: the limit may be broken"
    lines = {"limit": decision.limit, "model": report.model, "reason": reason}
    details = [f"  {name:<6}  {text}" for name, text in lines.items() if text]
    return "\n".join(printable(line) for line in [_headline(report, decision), *details])

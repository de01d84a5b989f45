"""From the decisions on a limit to the outcome of its test, and the words for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from msgspec import Struct

from evaltools.gates.check import GateDecisions
from evaltools.gates.decide import Decision, worst_verdict
from evaltools.gates.ending import ending_of
from evaltools.gates.other_results import AnyResult
from evaltools.pytest_plugin.settings import Settings
from evaltools.report.words.gates import found_in_words, reason_in_words
from evaltools.text import printable

OutcomeKind = Literal["pass", "fail", "skip", "xfail"]


class Outcome(Struct, frozen=True):
    """What becomes of a test, and why."""

    kind: OutcomeKind
    text: str = ""


def judge(reports: Sequence[GateDecisions], settings: Settings) -> Outcome:
    """The outcome of one limit over everything that it is compared with, mostly one configuration; the worst counts."""
    found = [(report, decision) for report in reports for decision in report.decisions]
    verdict = worst_verdict([decision for _, decision in found])
    kind = ending_of(verdict, settings.inconclusive != "fail").test
    if kind == "pass":
        return Outcome(kind)
    if kind == "fail":
        worst_first = sorted(found, key=lambda entry: entry[1].verdict == "inconclusive")
        shown = [entry for entry in worst_first if entry[1].verdict not in ("pass", "skipped")]
        return Outcome(kind, "\n\n".join(_block(*entry) for entry in shown) or "nothing was measured")
    text = _line([entry for entry in found if entry[1].verdict == verdict])
    return Outcome("xfail" if verdict == "inconclusive" and settings.inconclusive == "xfail" else kind, text)


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

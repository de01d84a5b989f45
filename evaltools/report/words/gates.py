"""Decisions on limits in words, as every rendering shows them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct

from evaltools.gates.decide import Decision, Found, GateVerdict
from evaltools.gates.outcome import GateOutcome
from evaltools.report.words.numbers import in_unit, number_in
from evaltools.text import printable

_ANY: Final = "*"


class GateLine(Struct, frozen=True):
    """A decision as texts of one line each, free of characters that command a terminal or that XML cannot hold.

    ``figure`` is what was found without the figure's name, for a cell beside its limit. ``own_s`` is what the
    configuration itself took of ``elapsed_s``, that of the run; 0 where nobody knows.
    """

    run: str
    model: str
    configuration: str
    limit: str
    found: str
    figure: str
    verdict: GateVerdict
    examples: str
    explanation: str
    elapsed_s: float
    own_s: float


def lines(outcome: GateOutcome) -> Iterator[GateLine]:
    """Every decision, in order."""
    for report in outcome.reports:
        for decision in report.decisions:
            yield GateLine(
                run=_text(report.run) or _ANY,
                model=_text(report.model) or _ANY,
                configuration=_text(decision.configuration) or _ANY,
                limit=_text(decision.limit),
                found=_text(found_in_words(decision.found)),
                figure=_text(figure_in_words(decision.found)),
                verdict=decision.verdict,
                examples=str(decision.examples) if decision.examples else "",
                explanation=_explanation(decision),
                elapsed_s=report.elapsed_s,
                own_s=report.own_s.get(decision.configuration, 0.0),
            )


def warnings_by_run(outcome: GateOutcome) -> dict[str, list[str]]:
    """The warnings of each run that has some, each once, free of characters that command a terminal."""
    found: dict[str, list[str]] = {}
    for report in outcome.reports:
        for warning in map(_text, report.warnings):
            of_run = found.setdefault(_text(report.run) or _ANY, [])
            of_run += [warning] if warning not in of_run else []
    return found


def warnings_of(outcome: GateOutcome) -> list[str]:
    """The same in one line each, with the name of the run."""
    return [f"{run}: {warning}" for run, warnings in warnings_by_run(outcome).items() for warning in warnings]


class WhyNot(Struct, frozen=True):
    """Why limits did not pass: all of a run that have the same verdict for the same reason."""

    place: str
    verdict: GateVerdict
    explanation: str


def why_not(outcome: GateOutcome) -> list[WhyNot]:
    """The reasons of all limits that did not pass.

    Limits and configurations of a run with the same reason share one entry.
    """
    found: dict[tuple[str, GateVerdict, str], list[GateLine]] = {}
    for line in lines(outcome):
        if line.verdict != "pass":
            found.setdefault((line.run, line.verdict, line.explanation), []).append(line)
    return [WhyNot(_place(run, of), verdict, explanation) for (run, verdict, explanation), of in found.items()]


def _place(run: str, found: Sequence[GateLine]) -> str:
    """The run, the names of all configurations, and the limit, or how many there are."""
    configurations = dict.fromkeys(line.configuration for line in found)
    limits = list(dict.fromkeys(line.limit for line in found))
    return ", ".join([run, *configurations, limits[0] if len(limits) == 1 else f"{len(limits)} limits"])


def _explanation(decision: Decision) -> str:
    """Why it did not pass, with the next step where there is one."""
    found = f"found {_text(found_in_words(decision.found))}" if decision.found else ""
    return "; ".join(part for part in (found, _text(decision.reason)) if part)


def found_in_words(found: Found | None) -> str:
    """The measured figure that a limit was compared with; empty where there is none.

    >>> found_in_words(Found("latency_ratio", 0.5, 0.45, 0.6, processes=1))
    'latency_ratio of these processes 0.5 [0.45, 0.6]'
    >>> found_in_words(Found("max_error", None, output="boxes"))
    'max_error no number in boxes'
    >>> found_in_words(Found("top1 drop", 0.0, -0.0123, 0.0123, unit="points"))
    'top1 drop 0 points [-1.23, 1.23]'
    """
    if found is None:
        return ""
    basis, figure = _basis(found), _figure(found)
    return f"{found.figure}{basis} {figure}"


def figure_in_words(found: Found | None) -> str:
    """The measured figure without its name, for a cell beside the limit, which names it.

    >>> figure_in_words(Found("top1 drop", 0.0, -0.0123, 0.0123, unit="points"))
    '0 points [-1.23, 1.23]'
    """
    return "" if found is None else f"{_figure(found)}{_basis(found)}"


def _basis(found: Found) -> str:
    """What a latency ratio is based on: medians, or the processes that were compared."""
    if found.of_medians:
        return " of medians"
    return {None: "", 1: " of these processes"}.get(found.processes, f" of such ({found.processes}) processes")


def _figure(found: Found) -> str:
    span = "" if found.low is None else f" [{number_in(found.low, found.unit)}, {number_in(found.high, found.unit)}]"
    output = "" if found.output is None else f" in {found.output}"
    return f"{in_unit(found.value, found.unit)}{span}{output}"


_COUNTED: Final[Mapping[GateVerdict, str]] = {
    "fail": "failed",
    "not measured": "not measured",
    "inconclusive": "inconclusive",
    "pass": "passed",
    "skipped": "skipped",
}
"""How verdicts are counted, in this order."""


def decision_in_words(decision: Decision) -> str:
    """A decision in one line.

    >>> decision_in_words(Decision("xnnpack", "top1 >= 0.7", "pass", Found("top1", 0.75)))
    'xnnpack: top1 >= 0.7: pass: top1 0.75'
    """
    reasons = "; ".join(part for part in (found_in_words(decision.found), decision.reason) if part)
    return f"{decision.configuration}: {decision.limit}: {decision.verdict}{f': {reasons}' if reasons else ''}"


def _text(text: str) -> str:
    return printable(" ".join(text.split()))


def counts(outcome: GateOutcome) -> str:
    """How many limits came out how: what is broken first, then what nobody knows.

    >>> from evaltools.gates.check import GateDecisions
    >>> from evaltools.gates.outcome import outcome_of
    >>> kept, left = Decision("x", "top1 >= 0.7", "pass"), Decision("y", "top1 >= 0.7", "not measured")
    >>> counts(outcome_of("1", "gates.toml", [GateDecisions("run", "m.tflite", (kept, left))]))
    '1 not measured, 1 passed'
    """
    verdicts = [decision.verdict for decision in outcome.decisions]
    return ", ".join(f"{verdicts.count(verdict)} {word}" for verdict, word in _COUNTED.items() if verdict in verdicts)

"""Decisions on limits in words, as every rendering shows them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct

from evaltools.gates.decide import Decision, Found, GateVerdict
from evaltools.gates.outcome import GateOutcome
from evaltools.metrics.power import POWER
from evaltools.report.words.numbers import in_unit, number_in
from evaltools.report.words.verdicts import any_reason_in_words
from evaltools.result.verdict import CANNOT_EXIST, FEW_UNEQUAL, TEXT, Reason
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
    return "; ".join(part for part in (found, _text(reason_in_words(decision))) if part)


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


_MEASURED_ON_THE_CPU: Final = "measured on the CPU instead of what it asked for: {why}"
_REASONS: Final = {
    TEXT: "{text}",
    CANNOT_EXIST: "{text}; allow_missing = true in the gate skips what cannot exist here",
    "fallback": f"it was {_MEASURED_ON_THE_CPU}",
    "ended_early": "the run ended early ({why}); its figures are those of a part of the examples",
    "no_reference": "this result has no reference to compare it with; run with one",
    "shard": "it is only shard {shard}; put all of them together: evaltools merge",
    "failed": "{failed} of {tried} examples failed{why}; a gate with allow_failed_examples = {failed} allows it",
    "nan": "{nan_outputs} of its outputs are NaN or infinite; a gate with allow_nan_outputs = {nan_outputs} allows it",
    "not_clean": "not clean: {why}; a gate with allow_crashes = {crashes} allows it",
    "model_changed": "the model file {file} has another content by now than when it was measured; measure again",
    "no_old": "there is no earlier evaluation to compare with; give --against=OLD.json, or against in the run (of "
    "benchmarks --against compares the times by itself)",
    "no_configurations": "the result has no configuration",
    "no_nodes": "how many nodes a delegate took is not known now",
    "not_in_old": "{old} has no such configuration; it has {there_are}",
    "not_in_new": "{old} has this configuration, the new result has not; measure it too",
    "other_examples": "other inputs than before ({others}); measure on the same, or give --allow_other_examples=true "
    "for a comparison of two samples",
    "verdict": "now {now}",
    "nothing_twice": "nothing was measured in both, so nothing is compared; run what the earlier suite ran",
    "no_result": "no result is about it; there are {there_are}",
    "no_gate": "no gate is about {result}; add one, or leave the result out",
    "no_configuration": "no configuration is named {configuration!r} in {run}; there are {there_are}",
    "no_such_figure": "this result has no {figure} ({meaning})",
    "no_such_own_figure": "this result has no figure {figure!r}.{hint} It has {there_are}",
    "no_such_output": "no output {output!r} has {figure}; outputs of this result: {there_are}",
    "no_value": "{figure} has no value: there is nothing in the data that it could be measured on",
    "no_number": "no number: a side has NaN or infinite values or another shape, or the reference is 0 everywhere",
    "no_interval": "{figure} has no interval in this result",
    "no_change": "there is no change of {figure} against a reference; run with a reference on the same examples",
    "no_reference_times": "there is no reference whose times belong to the same examples",
    "emulated": "emulated: no latency; measure it on the device",
    "busy": "the machine was busy, {others} other processes on {cores} cores, and latencies count up to {most:g} for "
    "each core; measure where less runs, or allow_load = NUMBER in the gate, or give --allow_any_load",
    "stolen": "the hypervisor gave {steal} % of the time to others, and latencies count up to {most} %; measure where "
    "its host is less busy",
    "unknown_load": "what else the machine did is not known, and it may have been busy; measure where it says so, or "
    "allow_load = inf in the gate, or give --allow_any_load",
    "runs_apart": "two runs differ by so much that this shows nothing; measure where less runs, or both in one run",
    "no_old_times": "one of the two results has no times",
    "no_ratio_interval": "so few pairs of times give no interval; measure more",
    "times_jumped": "the times jumped or drifted while they were measured, so the ratio has no interval; measure where "
    "nothing else runs and the clock is steady",
    "medians_only": "only the medians of both are known, no single times on the same examples, so there is no "
    "interval; leave 'at ...' out",
    FEW_UNEQUAL: "fewer than {fewest} examples are unequal and the metric states no bounds, so nothing says how "
    "others would be; state its bounds=(LOWEST, HIGHEST), or measure more",
    "at_the_limit": "what was found is so close to the limit that no number of examples would decide; move the limit",
    "too_few": "too few examples to decide",
    "beyond_for_one": "beyond it, but not clearly enough for one of {limits} limits",
}
_COUNTED: Final[Mapping[GateVerdict, str]] = {
    "fail": "failed",
    "not measured": "not measured",
    "inconclusive": "inconclusive",
    "pass": "passed",
    "skipped": "skipped",
}
"""How verdicts are counted, in this order."""
_BETTER: Final = {"drop": "higher", "rise": "lower"}


def obstacle_in_words(reason: Reason) -> str:
    """Why a configuration has no figures of its own.

    >>> obstacle_in_words(Reason("ended_early", names={"why": "interrupted"}))
    'the run ended early (interrupted); its figures are those of a part of the examples'
    """
    whose = f"{reason.names['whose']}: " if "whose" in reason.names else ""
    try:
        return whose + _REASONS[reason.kind].format(**reason.names, **reason.numbers)
    except (KeyError, TypeError, ValueError):  # a result that was edited lacks a number
        return any_reason_in_words(reason)


def reason_in_words(decision: Decision) -> str:
    """Why a limit was not kept, and the next step; nothing where what was found says it all.

    >>> reason_in_words(Decision("x", "top1 >= 0.7", "inconclusive", reason=Reason("too_few"), examples_needed=300))
    'too few examples to decide; about 300 would do in 80 % of cases if they are like these'
    """
    reason = decision.reason
    if reason is None:
        return ""
    if reason.kind == "other_direction":
        figure, wanted = reason.names.get("figure", ""), reason.names.get("wanted", "")
        return f"{_BETTER.get(wanted, 'the other')} is better for {figure}: write '{figure} {wanted} <= ...'"
    text = obstacle_in_words(reason)
    if reason.kind not in ("too_few", "beyond_for_one"):
        return text
    if decision.examples_needed is not None:
        return f"{text}; about {decision.examples_needed} would do in {100 * POWER:g} % of cases if they are like these"
    is_of_times = decision.found is not None and decision.found.figure.startswith("latency")
    return f"{text}; measure more{', or where nothing else runs' if is_of_times else ''}"


def decision_in_words(decision: Decision) -> str:
    """A decision in one line.

    >>> decision_in_words(Decision("xnnpack", "top1 >= 0.7", "pass", Found("top1", 0.75)))
    'xnnpack: top1 >= 0.7: pass: top1 0.75'
    """
    reasons = "; ".join(part for part in (found_in_words(decision.found), reason_in_words(decision)) if part)
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

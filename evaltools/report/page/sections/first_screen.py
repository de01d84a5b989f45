"""The first screen of an evaluation: a saying per configuration, and what took the time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from msgspec.structs import replace

from evaltools.report.page.charts.look import colours_of
from evaltools.report.page.charts.times import shares_chart
from evaltools.report.page.content.page import Saying
from evaltools.report.page.sections.accuracy import tone_of
from evaltools.report.tables.cells import NO_LATENCY, figure_in_words, median, p_value
from evaltools.report.tables.evaluation import describe_configuration
from evaltools.report.tables.execution import advice_in_words, shares_in_words
from evaltools.report.tables.models import ModelRows
from evaltools.report.tables.short_answers import SEARCH, WITH_REASON, Answer, answers_of
from evaltools.report.words.verdicts import why_in_words
from evaltools.result.evaluation import ConfigurationResult, EvaluationResult
from evaltools.result.places import reference_of
from evaltools.result.section import Chart


def sayings(result: EvaluationResult, is_located: bool = False) -> tuple[Saying, ...]:
    """One for each configuration that was compared or was not measured; of a lone one, what it is; of none, why.

    ``is_located``: the search for an operator is on the page, and no next step any more.
    """
    found = [
        Saying(answer.configuration.name, tone_of(answer.configuration), _said(answer), _facts(result, answer),
               tuple(step for step in answer.next_steps if not (is_located and step.startswith(SEARCH))))
        for answer in answers_of(result)
    ]  # fmt: skip
    if found:
        return tuple(found)
    if not result.configurations:
        why = result.stopped or "the result has no configurations"
        return (Saying(Path(result.model.file).name, "bad", f"nothing was measured: {why}"),)
    return tuple(
        Saying(entry.name, "", "measured, and compared with nothing", tuple(_alone(result, entry)))
        for entry in result.configurations
    )


def _alone(result: EvaluationResult, entry: ConfigurationResult) -> Iterator[tuple[str, str]]:
    """What is known of a configuration that was compared with nothing, its figure first."""
    found = ModelRows.of({"": result})
    if found.figure in entry.figures:
        given = figure_in_words(entry.figures[found.figure], found.metric)
        yield "how good", f"{found.heading} {given}; {entry.finished_examples} examples"
    yield from _ran_and_fast(result, entry, "")


def _said(answer: Answer) -> str:
    """What was found; of a configuration that fell back, first that it says nothing of the delegate."""
    entry = answer.configuration
    if answer.not_clean:
        return f"{answer.judged}; {answer.not_clean}"
    fell_back = entry.status == "measured" and bool(entry.fallback)
    return f"FALLBACK to the CPU; {answer.judged}" if fell_back else answer.judged


def _facts(result: EvaluationResult, answer: Answer) -> tuple[tuple[str, str], ...]:
    entry = answer.configuration
    why = (("why", answer.why),) if answer.why else ()
    if entry.status == "not measured":
        return why
    sure = _how_sure(entry)
    return why + ((("how sure", sure),) if sure else ()) + tuple(_ran_and_fast(result, entry, answer.fast))


def _how_sure(configuration: ConfigurationResult) -> str:
    """The evidence, without what the verdict itself says in its sentence."""
    found = configuration.verdict
    if found is None or found.kind == "not measured":
        return ""
    said = [f"{configuration.finished_examples} examples"]
    said += [] if found.p_value is None else [p_value(found.p_value)]
    reasons = found.reasons[1:] if found.kind in WITH_REASON else found.reasons
    said += [why_in_words(replace(found, reasons=reasons))] if reasons and found.change is None else []
    return "; ".join(said)


def _ran_and_fast(result: EvaluationResult, entry: ConfigurationResult, fast: str) -> Iterator[tuple[str, str]]:
    latency = entry.inference_latency
    reference = reference_of(entry, result.configurations)
    if latency is not None and latency.count:
        against = reference.inference_latency if reference is not None and reference is not entry else None
        other = f", {reference.name} {median(against)}" if against is not None and reference is not None else ""
        yield "how fast", f"{fast + '; ' if fast else ''}median {median(latency)}{other}"
    if entry.is_emulated:
        yield "how fast", NO_LATENCY
    yield "did it run", describe_configuration(entry)


def overview(result: EvaluationResult) -> tuple[Chart | None, str]:
    """What took the time of the whole run, and what would make it faster; nothing where that is not known."""
    execution = result.execution
    if execution is None or not any(execution.stage_seconds.values()):
        return None, ""
    seconds = {name: spent for name, spent in execution.stage_seconds.items() if spent > 0}
    spec = shares_chart({"": seconds}, colours_of(list(seconds)), "share of the work of all workers", as_shares=True)
    chart = Chart("What took the time", spec, f"{shares_in_words(execution)}.")
    return chart, advice_in_words(result, execution)

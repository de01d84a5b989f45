"""The content of a page about a result, before it is rendered as Markdown or HTML."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from evaltools.report.tables.cells import delegated, median, speed
from evaltools.report.tables.evaluation import describe_configuration
from evaltools.report.words.verdicts import verdict_in_words
from evaltools.result.evaluation import ConfigurationResult, EvaluationResult
from evaltools.result.places import reference_of
from evaltools.result.section import Section
from evaltools.task_kind import all_metrics, kind_of


@dataclass(frozen=True)
class Page:
    """Plain texts, not yet escaped.

    ``said`` and ``ran`` are pairs of a configuration's name and a sentence: the answer, and what ran. ``sections`` are
    the figures and the task's own tables; ``below`` is the last line, about software, machine, time and model.
    """

    title: str
    said: tuple[tuple[str, str], ...]
    sections: tuple[Section, ...]
    ran: tuple[tuple[str, str], ...]
    warnings: tuple[str, ...]
    below: str


def page_of(result: EvaluationResult) -> Page:
    """All that a page says of a result; sections without a row are left out."""
    kind, environment = kind_of(result.task), result.environment
    sections = [_figures(result), *kind.report.sections(result)]
    return Page(
        title=f"{Path(result.model.file).name}: {kind.evidence.subject(result)}",
        said=tuple((entry.name, _said(entry)) for entry in result.configurations if entry.role == "test"),
        sections=tuple(section for section in sections if section.rows),
        ran=tuple((entry.name, describe_configuration(entry)) for entry in result.configurations),
        warnings=tuple(result.warnings),
        below=f"evaltools {environment.evaltools}, {environment.processor or environment.machine}, "
        f"{environment.started_at}; model {result.model.sha256[:16]}",
    )


def _said(entry: ConfigurationResult) -> str:
    if entry.status == "not measured":
        return f"not measured: {entry.reason}"
    return verdict_in_words(entry.verdict) if entry.verdict is not None else "measured"


def _figures(result: EvaluationResult) -> Section:
    measured = [entry for entry in result.configurations if entry.status == "measured"]
    names = dict.fromkeys(name for entry in measured for name in entry.figures)
    rows = [[name, *(_figure(entry, name) for entry in measured)] for name in names]
    rows.append(["latency p50", *(_latency(entry) for entry in measured)])
    against = [reference_of(entry, result.configurations) for entry in measured]
    ratios = [
        speed(entry, reference, result.latency_comparisons) or "-"
        for entry, reference in zip(measured, against, strict=True)
    ]
    rows += [["speed", *ratios], ["delegated nodes", *map(delegated, measured)]]
    return Section("Figures", ["", *(entry.name for entry in measured)], rows if measured else [])


def _figure(entry: ConfigurationResult, name: str) -> str:
    value, metric = entry.figures.get(name), all_metrics().get(name)
    if value is None:
        return "no number" if name in entry.figures else "-"
    if metric is not None and metric.is_share:
        return f"{100 * value:.4g} %"
    return f"{value:.4g} {metric.unit if metric is not None else ''}".rstrip()


def _latency(entry: ConfigurationResult) -> str:
    return "-" if entry.inference_latency is None else median(entry.inference_latency)

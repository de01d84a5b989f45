"""A page in Markdown: what is said of each configuration, its figures, the task's own sections, what ran."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from evaltools.report.tables.cells import delegated, median, speed
from evaltools.report.tables.evaluation import describe_configuration
from evaltools.report.words.markdown import escape, table
from evaltools.report.words.verdicts import verdict_in_words
from evaltools.result.evaluation import ConfigurationResult, EvaluationResult
from evaltools.result.places import reference_of
from evaltools.result.section import Section
from evaltools.task_kind import all_metrics, kind_of

PER_CONFIGURATION: Final = False


def render(result: EvaluationResult, _configuration: ConfigurationResult | None) -> bytes:
    """UTF-8, without pictures, fit for a comment in a code review."""
    sections = [_figures(result), *kind_of(result.task).report.sections(result)]
    parts = [
        f"# {escape(Path(result.model.file).name)}: {escape(kind_of(result.task).evidence.subject(result))}",
        "\n".join(_said(entry) for entry in result.configurations if entry.role == "test"),
        *("\n\n".join(_section(section)) for section in sections if section.rows),
        "## What ran",
        "\n".join(
            f"* {escape(entry.name)}: {escape(describe_configuration(entry))}" for entry in result.configurations
        ),
        "\n".join(f"* warning: {escape(warning)}" for warning in result.warnings),
        escape(
            f"evaltools {result.environment.evaltools}, {result.environment.processor or result.environment.machine}, "
            f"{result.environment.started_at}; model {result.model.sha256[:16]}"
        ),
    ]
    return ("\n\n".join(part for part in parts if part) + "\n").encode()


def _said(entry: ConfigurationResult) -> str:
    if entry.status == "not measured":
        text = f"not measured: {entry.reason}"
    else:
        text = verdict_in_words(entry.verdict) if entry.verdict is not None else "measured"
    return f"* **{escape(entry.name)}**: {escape(text)}"


def _section(section: Section) -> list[str]:
    rows = [list(map(escape, row)) for row in section.rows]
    below = [escape(section.below)] if section.below else []
    return [f"## {escape(section.title)}", table(list(map(escape, section.columns)), rows), *below]


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

"""From decisions on a limit, or the verdict of a diff, to the outcome of a test, and the words for it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Literal

from msgspec import Struct

from evaltools.gates.check import GateDecisions
from evaltools.gates.decide import Decision
from evaltools.gates.evidence import RunRows
from evaltools.gates.verdict import PASSES
from evaltools.parameter import did_you_mean
from evaltools.preprocess import IMAGE_EXTENSIONS
from evaltools.pytest_plugin.settings import Settings
from evaltools.result.result import Result
from evaltools.result.verdict import ending_of, kind_in_words, worst_verdict
from evaltools.tasks.inference_diff.options import INPUT_KINDS
from evaltools.text import printable

OutcomeKind = Literal["pass", "fail", "skip", "xfail"]
WITHIN: Final = PASSES
"""All that say something good."""
_NAME: Final = "test"


class Outcome(Struct, frozen=True):
    """What becomes of a test, and why."""

    kind: OutcomeKind
    text: str = ""


def judge(reports: Sequence[GateDecisions], settings: Settings) -> Outcome:
    """The outcome of one limit over everything that it is compared with, mostly one configuration; the worst counts."""
    found = [(report, decision) for report in reports for decision in report.decisions]
    verdict = worst_verdict(decision.verdict for _, decision in found)
    kind = ending_of(verdict, settings.inconclusive != "fail").test
    if kind == "pass":
        return Outcome(kind)
    if kind == "fail":
        worst_first = sorted(found, key=lambda entry: entry[1].verdict == "inconclusive")
        shown = [entry for entry in worst_first if entry[1].verdict not in ("pass", "skipped")]
        return Outcome(kind, "\n\n".join(_block(*entry) for entry in shown) or "nothing was measured")
    text = _line([entry for entry in found if entry[1].verdict == verdict])
    return Outcome("xfail" if verdict == "inconclusive" and settings.inconclusive == "xfail" else kind, text)


def properties(reports: Sequence[GateDecisions], results: Mapping[str, RunRows]) -> list[tuple[str, str]]:
    """The figures of a test and the warnings of its runs by name, as they stand in a report of JUnit's form."""
    found = []
    for report in reports:
        for decision in report.decisions:
            values = {
                "model": report.model,
                "verdict": decision.verdict,
                "found": decision.found.text if decision.found else "",
                "reason": decision.reason,
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
            _headline(report, decision) + (f", {decision.reason}" if decision.found and decision.reason else "")
            for report, decision in entries
        )
    )


def _headline(report: GateDecisions, decision: Decision) -> str:
    text = decision.found.text if decision.found else decision.reason
    return f"{_place(report, decision)}: {decision.verdict}: {text}"


def _block(report: GateDecisions, decision: Decision) -> str:
    reason = decision.reason if decision.found else ""
    if decision.verdict == "inconclusive":
        reason += ". That is not a proof: the limit may be broken"
    lines = {"limit": decision.limit, "model": report.model, "reason": reason}
    details = [f"  {name:<6}  {text}" for name, text in lines.items() if text]
    return "\n".join(printable(line) for line in [_headline(report, decision), *details])


def diff_words(
    root: Path,
    model: str | Path,
    configuration: str,
    inputs: str | Path | Sequence[str | Path] | None = None,
    num_runs: int | None = None,
) -> list[str]:
    """The command that compares a configuration with the reference; relative paths are meant from ``root``.

    >>> diff_words(Path(), "a.tflite", "use_xnnpack=true", num_runs=20)
    ['inference-diff', '--model_file=a.tflite', '--config=test: use_xnnpack=true', '--num_runs=20']
    """
    named = configuration if _has_name(configuration) else f"{_NAME}: {configuration}"
    words = ["inference-diff", f"--model_file={model}", f"--config={named}"]
    if inputs is not None:
        several = [inputs] if isinstance(inputs, str | Path) else list(inputs)
        words += [f"--{_input_flag(root, entry)}={entry}" for entry in several]
    return words + ([f"--num_runs={num_runs}"] if num_runs is not None else [])


def _has_name(configuration: str) -> bool:
    name, colon, _ = configuration.partition(":")
    return bool(colon) and bool(name.strip()) and "=" not in name


def _input_flag(root: Path, entry: str | Path) -> str:
    folder = root / entry
    if entry in INPUT_KINDS and not folder.exists():
        return "inputs"
    if folder.is_dir() and any(Path(name).suffix.lower() in IMAGE_EXTENSIONS for name in os.listdir(folder)):
        return "input_images"
    return "input_files"


def judge_diff(result: Result, within: str, allow_missing: bool = False) -> Outcome:
    """Whether the verdict on the configuration is at least as good as ``within``.

    ``allow_missing``: a delegate that cannot exist here is skipped.
    """
    if within not in WITHIN:
        known = ", ".join(WITHIN)
        return Outcome("fail", f"within={within!r}: no such grade.{did_you_mean(within, WITHIN)} Use {known}")
    entry = next(row for row in result.rows if row.role == "test")
    obstacle = entry.reason or "not measured" if entry.status == "not measured" else entry.fallback
    place = f"{Path(result.model.file).name}, {entry.name}"
    if obstacle:
        if entry.cannot_exist and allow_missing:
            return Outcome("skip", f"{place}: not measured: {obstacle}")
        hint = "; allow_missing=True skips what cannot exist here" if entry.cannot_exist else ""
        return Outcome("fail", f"{place}: not measured: {obstacle}{hint}")
    if entry.failed_examples or not result.complete:
        reasons = [failed.reason for failed in result.failed] or [f"the run ended early ({result.stopped})"]
        return Outcome("fail", f"{place}: {entry.failed_examples} runs failed: {reasons[0]}")
    verdict = entry.verdict
    assert verdict is not None
    if verdict.kind in WITHIN[: WITHIN.index(within) + 1]:
        return Outcome("pass")
    asked = f"asked for {kind_in_words(within)} or better"
    return Outcome("fail", f"{place}: {kind_in_words(verdict.kind)}, {asked}: {verdict.why}")

"""An inference diff as an assertion."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from evaltools.gates.verdict import PASSES
from evaltools.parameter import did_you_mean
from evaltools.preprocess import IMAGE_EXTENSIONS
from evaltools.pytest_plugin.outcome import Outcome
from evaltools.report.words.verdicts import kind_in_words, why_in_words
from evaltools.result.evaluation import EvaluationResult
from evaltools.runs.gate_runs import Result
from evaltools.tasks.inference_diff.options import INPUT_KINDS

WITHIN: Final = PASSES
"""All that say something good."""
_NAME: Final = "test"


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
    assert isinstance(result, EvaluationResult)
    entry = next(entry for entry in result.configurations if entry.role == "test")
    obstacle = entry.reason or "not measured" if entry.status == "not measured" else entry.fallback
    place = f"{Path(result.model.file).name}, {entry.name}"
    if obstacle is not None:
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
    return Outcome("fail", f"{place}: {kind_in_words(verdict.kind)}, {asked}: {why_in_words(verdict)}")

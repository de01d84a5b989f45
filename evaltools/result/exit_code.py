"""The exit code of an evaluation."""

from __future__ import annotations

from evaltools import exit_codes
from evaltools.result.evaluation import EvaluationResult


def exit_code_of(result: EvaluationResult) -> int:
    """The exit code of an evaluation whose files were all written."""
    if result.stopped == "interrupted":
        return exit_codes.INTERRUPTED
    without_input = [failure for failure in result.failed if failure.stage == "input"]
    no_input_at_all = bool(without_input) and len(without_input) == result.examples_done
    unavailable = [entry for entry in result.configurations if entry.status == "not measured"]
    if unavailable and not (no_input_at_all and all(entry.runtime is not None for entry in unavailable)):
        return exit_codes.NOT_MEASURED
    if result.part.breaks_limits:
        return exit_codes.LIMIT_BROKEN
    is_clean = not any(entry.not_clean or entry.nan_outputs for entry in result.configurations)
    is_whole = result.stopped is None and not result.failed and is_clean
    return exit_codes.OK if is_whole else exit_codes.EXAMPLES_FAILED

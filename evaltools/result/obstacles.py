"""Why no figure of a row counts: the one answer that gates, JUnit files and Python give."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from evaltools.result.places import reference_of
from evaltools.result.result import SHARD, Row


def why_not_measured(
    row: Row, rows: Sequence[Row], failed_examples: int = 0, nan_outputs: int = 0, crashes: int = 0
) -> str:
    """What a row's own command would end with 3 or 4 for, or that it is a part of a run; empty where it counts.

    ``rows`` are those of the same model and job, its reference among them. So many failed examples, outputs that are
    not finite, and crashes are allowed.
    """
    return next(_obstacles(row, rows, failed_examples, nan_outputs, crashes), "")


def _obstacles(row: Row, rows: Sequence[Row], failed_examples: int, nan_outputs: int, crashes: int) -> Iterator[str]:
    if row.status == "not measured":
        yield row.reason or "not measured"
    if row.fallback:
        yield f"it was measured on the CPU instead of what it asked for: {row.fallback}"
    if "stopped" in row.texts:
        yield f"the run ended early ({row.texts['stopped']}); its figures are those of a part of the examples"
    if SHARD in row.given:
        yield f"it is only shard {row.given[SHARD]}; put all of them together: evaltools merge"
    if row.failed_examples > failed_examples:
        example, reason = row.texts.get("first_failed"), row.texts.get("first_failure")
        why = f" (first {example}: {reason})" if reason else ""
        failed = f"{row.failed_examples} of {row.failed_examples + row.finished_examples} examples failed{why}"
        yield f"{failed}; a gate with allow_failed_examples = {row.failed_examples} allows it"
    if row.nan_outputs > nan_outputs:
        allows = f"a gate with allow_nan_outputs = {row.nan_outputs} allows it"
        yield f"{row.nan_outputs} of its outputs are NaN or infinite; {allows}"
    if row.crashes > crashes or (row.not_clean and not row.crashes):
        yield f"not clean: {row.not_clean}; a gate with allow_crashes = {row.crashes} allows it"
    reference = reference_of(row, rows)
    if reference is not None and reference.crashes > crashes:
        why = reference.not_clean or reference.first_crash
        yield f"the reference: not clean: {why}; a gate with allow_crashes = {reference.crashes} allows it"

"""The runs of a suite in its folder: where each lies, which are done, and what the result says of them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from evaltools.benchmark.kind import KIND as BENCHMARK
from evaltools.engine.journal import Journal
from evaltools.engine.run_folder import decode, encode
from evaltools.errors import OutputError
from evaltools.exit_codes import INTERRUPTED, MEASURED, NOT_WRITTEN
from evaltools.gates.suite_result import SuiteEntry
from evaltools.gates.suite_rows import rows_of_benchmark, rows_of_evaluation
from evaltools.result.benchmark import BenchmarkResult
from evaltools.result.json_file import read_json
from evaltools.result_file import read_result
from evaltools.runs.handing_over import ending_in_words
from evaltools.suite.entries import Entry

RESULT: Final = "result.json"
LOG: Final = "log.txt"
_ENTRIES: Final = "entries"
_MOST_REASON: Final = 500


class _Done(Struct, frozen=True):
    """What the journal keeps of an entry that needs not be run again; without a ``reason`` there is a result.

    ``is_timed``: nothing ran beside it, so that its times say something.
    """

    exit_code: int
    elapsed_s: float
    reason: str = ""
    is_timed: bool = True


class Runs:
    """The runs of a suite in its folder; the journal says which are done. ``is_kept``: somebody may go on with them."""

    def __init__(self, folder: Path, journal: Journal, is_kept: bool) -> None:
        self.is_kept = is_kept
        self._folder = folder
        self._journal = journal

    def place(self, entry: Entry) -> Path:
        """The folder of an entry; a checksum distinguishes names that look alike in a file system."""
        checksum = hashlib.sha256(entry.key.encode("utf-8", "surrogateescape")).hexdigest()[:8]
        name = re.sub(r"[^\w.-]+", "_", f"{entry.model}.{entry.job}")[:80]
        return self._folder / _ENTRIES / f"{name}.{checksum}"

    def has_begun(self, entries: Sequence[Entry]) -> bool:
        """Whether any of them has ended in this folder."""
        return any(self._kept(entry) for entry in entries)

    def is_done(self, entry: Entry) -> bool:
        """Whether an entry needs not be run again."""
        kept = self._kept(entry)
        return kept is not None and (bool(kept.reason) or (self.place(entry) / RESULT).is_file())

    def keep(self, entry: Entry, code: int, elapsed_s: float, is_timed: bool) -> None:
        """Keep what came of an entry whose process ended with ``code``: its files lie in its place.

        Raises KeyboardInterrupt where it was interrupted, :class:`OutputError` where it could not write.
        """
        place = self.place(entry)
        if code == INTERRUPTED:
            raise KeyboardInterrupt
        if code == NOT_WRITTEN:
            raise OutputError(f"{entry.key}: {_last_words(place / LOG)}")
        has_result = code in MEASURED and (place / RESULT).is_file()
        reason = "" if has_result else _last_words(place / LOG) or ending_in_words(code)
        self._journal.state({entry.key: encode(_Done(code, round(elapsed_s, 3), reason, is_timed))})

    def outcome_of(self, entry: Entry, model_sha256: str) -> SuiteEntry:
        """What the result says of an entry; ``model_sha256`` is that of its model when the suite began."""
        kept = self._kept(entry)
        outcome = SuiteEntry(
            model=entry.model,
            model_file=str(entry.path),
            model_sha256=model_sha256,
            job=entry.job,
            command=list(entry.request.command),
            state="skipped",
            reason="the suite ended before it was done",
        )
        if kept is None:
            return outcome
        outcome = replace(
            outcome, exit_code=kept.exit_code, elapsed_s=kept.elapsed_s, reason=kept.reason, is_timed=kept.is_timed
        )
        if kept.reason:
            return replace(outcome, state="failed")
        place = self.place(entry) / RESULT
        outcome = replace(outcome, state="done", result=str(place.relative_to(self._folder)) if self.is_kept else "")
        if entry.request.task == BENCHMARK.name:
            return replace(outcome, rows=rows_of_benchmark(_benchmark_in(place)))
        result = read_result(place)
        if not kept.is_timed:
            untimed = [replace(each, inference_latency=None) for each in result.configurations]
            result = replace(result, configurations=untimed, latency_comparisons=[])
        return replace(outcome, rows=rows_of_evaluation(result), evaluation=result)

    def _kept(self, entry: Entry) -> _Done | None:
        text = self._journal.fact(entry.key)
        found: _Done | None = None if text is None else decode(text, _Done, self._journal.folder)
        return found


def _benchmark_in(path: Path) -> BenchmarkResult:
    return read_json(path, BenchmarkResult, "evaltools benchmark result")


def _last_words(log: Path) -> str:
    """The last message of a log, else its last line."""
    lines = [line.strip() for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
    messages = [line.removeprefix("evaltools: ") for line in lines if line.startswith("evaltools: ")]
    return (messages or lines or [""])[-1][:_MOST_REASON]

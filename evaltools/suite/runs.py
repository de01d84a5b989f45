"""The runs of a suite, each by a process of its own: where they lie, which are done, what the result says of them."""

from __future__ import annotations

import hashlib
import re
import shlex
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from evaltools.engine.journal import Journal
from evaltools.engine.run_folder import Fact
from evaltools.errors import OutputError
from evaltools.exit_codes import INTERRUPTED, MEASURED, NOT_WRITTEN
from evaltools.result.facts import Model
from evaltools.result.figure import Figure
from evaltools.result.result import ALL, STATE, Row, standing_alone
from evaltools.result_file import read_result
from evaltools.runs.handing_over import ending_in_words, run_in_own_process
from evaltools.suite.conclude import RESULT as RESULT_FILE
from evaltools.suite.entries import Entry

RESULT: Final = "result.json"
_ENTRIES: Final = "entries"
_MOST_REASON: Final = 500


class _Done(Struct, frozen=True):
    """What the journal keeps of an entry that needs not be run again; without a ``reason`` there is a result."""

    exit_code: int
    elapsed_s: float
    reason: str = ""


class Found(Struct, frozen=True):
    """The rows that came of an entry, and its model; None where there is no result."""

    rows: list[Row]
    model: Model | None = None


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

    def run(self, entry: Entry) -> None:
        """Run an entry and keep what came of it: its files lie in its place.

        Raises KeyboardInterrupt where it was interrupted, :class:`OutputError` where it could not write.
        """
        place, start = self.place(entry), time.monotonic()
        request = entry.request.stating(output_file_path=place / RESULT)
        if self.is_kept and "run_dir" in request.options.parameters:
            request = request.stating(run_dir=place / "run")
        try:
            place.mkdir(parents=True, exist_ok=True)
            (place / RESULT).unlink(missing_ok=True)
            ended = run_in_own_process(request, request.folder)
        except OSError as error:
            raise OutputError(f"{place} cannot be written: {error.strerror}; make room, and resume") from error
        if ended.code == INTERRUPTED:
            raise KeyboardInterrupt
        if ended.code == NOT_WRITTEN:
            raise OutputError(f"{entry.key}: {_last_words(ended.err)}")
        has_result = ended.code in MEASURED and (place / RESULT).is_file()
        reason = "" if has_result else _last_words(ended.err) or ending_in_words(ended.code)
        done = _Done(ended.code, round(time.monotonic() - start, 3), reason)
        Fact[_Done](entry.key, _Done).write(self._journal, done)

    def found(self, entry: Entry) -> Found:
        """The rows that an entry gave, or one that says why there are none, and its model as the result has it."""
        kept = self._kept(entry)
        place = self.place(entry) / RESULT
        if kept is None or kept.reason:
            reason = "the suite ended before it was done" if kept is None else kept.reason
            state = "skipped" if kept is None else "failed"
            found = Found([Row(ALL, status="not measured", reason=reason, texts={STATE: state})])
        else:
            result = read_result(place)
            found = Found(standing_alone(result), result.model)
        file = str(place.relative_to(self._folder)) if self.is_kept and found.model is not None else ""
        return replace(found, rows=[_of_entry(row, entry, kept, file) for row in found.rows])

    def _kept(self, entry: Entry) -> _Done | None:
        return Fact[_Done](entry.key, _Done).read(self._journal)


def _of_entry(row: Row, entry: Entry, kept: _Done | None, file: str) -> Row:
    """The row with what a suite knows of the entry that it is of."""
    texts = {**row.texts, "again": shlex.join(entry.request.command), **({RESULT_FILE: file} if file else {})}
    if kept is None:
        return replace(row, job=entry.job, texts=texts)
    figures = {**row.figures, "elapsed_s": Figure(kept.elapsed_s, "s")}
    return replace(row, job=entry.job, texts=texts, figures=figures, counts={**row.counts, "exit_code": kept.exit_code})


def _last_words(printed: str) -> str:
    """The last message, else the last line."""
    lines = [line.strip() for line in printed.splitlines() if line.strip()]
    messages = [line.removeprefix("evaltools: ") for line in lines if line.startswith("evaltools: ")]
    return (messages or lines or [""])[-1][:_MOST_REASON]

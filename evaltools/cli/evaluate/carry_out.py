"""A request carried out at a terminal: measured, shown, written; whatever the task."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from evaltools import exit_codes
from evaltools.cli.evaluate.output import (
    has_native_lines,
    print_crashes,
    print_early_end,
    print_to_stdout,
    write_and_show,
    write_report,
)
from evaltools.cli.evaluate.terminal import Terminal
from evaltools.cli.shared.interrupts import interrupts_restored
from evaltools.cli.shared.terminal import make_console
from evaltools.report.files.evaluation import planned_files, planned_report
from evaltools.report.page.content.sources import Sources
from evaltools.request import Request
from evaltools.result.evaluation import EvaluationResult
from evaltools.result.json_file import encode_json
from evaltools.runs.finished_shards import FinishedShards
from evaltools.runs.measure import measure
from evaltools.tasks.shared.kind import evaluation_kind

if TYPE_CHECKING:
    from evaltools.result.locate import LocateResult


class CarriedOut(Struct, frozen=True):
    """What came of a request; ``sources`` are what a page tells of it."""

    exit_code: int
    result: EvaluationResult
    sources: Sources


def carry_out(
    request: Request,
    shards: FinishedShards | None = None,
    is_one_model: bool = True,
) -> CarriedOut:
    """Evaluate, or take the records from finished ``shards``; print, write. ``is_one_model``: of this command."""
    options, console = request.options, make_console()
    kind = evaluation_kind(request.task)
    asked = kind.read(request)
    files = planned_files(request, kind.files_read(asked))
    page = planned_report(request, kind.files_read(asked))
    more_files = kind.more_files(request, asked, files.values())
    with interrupts_restored():
        with redirect_stdout(sys.stderr):  # what a task of one's own prints does not mix with the native lines
            result = measure(kind, request, Terminal(console, options), shards)
        with_lines = has_native_lines(result, options, is_one_model)
        not_written = print_to_stdout(kind.debug_lines(result, options) if with_lines else [])
        saved = kind.as_asked(result, options)
        not_written += write_and_show(saved, files, console, options, with_lines)
        not_written += kind.write_more(result, more_files, asked, console)
        total = asked.execution.shard.size_of(kind.example_count(result))
        print_early_end(result, total, asked.max_failed_examples, request.is_native, console)
    located: Sequence[LocateResult] = ()
    if "locate" in kind.parameters and options.is_on("locate"):
        from evaltools.cli.locate.run import locate_after

        located, errors = locate_after(request, result, files.values(), console)
        not_written += errors
    name = Path(result.model.file).stem
    as_saved = {name: encode_json(saved)} if page is not None or not is_one_model else {}
    sources = Sources({name: result}, located={name: located}, saved=as_saved)
    not_written += write_report(page, sources)
    for error in not_written:
        console.print(f"evaltools: {error}", style="bold red")
    print_crashes(result, console)
    return CarriedOut(exit_codes.NOT_WRITTEN if not_written else kind.exit_code(result), result, sources)

"""Evaluations carried out at a terminal: measured, shown, written; one, a part, or one for each of several models."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from rich.console import Console

from evaltools import exit_codes
from evaltools.cli.shared.decided import Decided
from evaltools.cli.shared.progress import show_progress
from evaltools.cli.shared.streams import complain, say, stdout_is_terminal
from evaltools.cli.shared.terminal import make_console
from evaltools.command import TaskCommand
from evaltools.commands.evaluation import OF_ALL
from evaltools.engine.ledger import Tally
from evaltools.errors import EvaltoolsError, OutputError
from evaltools.extensions import named
from evaltools.known_tasks import Detail, task_command
from evaltools.native.lines.evaluation import debug_lines, native_lines
from evaltools.report.content import Sources
from evaltools.report.files.evaluation import (
    PLOT,
    file_per_configuration,
    files_read,
    planned_files,
    planned_files_of_task,
    planned_report,
    rendered,
)
from evaltools.report.files.output_file import planned_outputs, write_outputs, write_report
from evaltools.report.page.screens import print_configurations, print_result
from evaltools.request import Options, Request
from evaltools.result.json_file import encode_json
from evaltools.result.result import Result, Row, exit_code_of, without_examples
from evaltools.runs.evaluate import measure, record
from evaltools.runs.finished import FinishedShards
from evaltools.runtime.process.ahead import OpenedAhead
from evaltools.signals import ignore_interrupts, interrupts_restored
from evaltools.tasks.framework import read
from evaltools.tasks.framework.observer import Observer
from evaltools.text import printable

if TYPE_CHECKING:
    from evaltools.result.result import Result


class Terminal(Observer):
    """Shows an evaluation on stderr, what runs and how far it is, as ``--progress`` and ``--quiet`` ask for.

    ``missing`` is a line about what cannot run here.
    """

    def __init__(self, console: Console, options: Options, missing: str = "") -> None:
        self._console = console
        self._missing = missing
        self._is_quiet = options.is_on("quiet")
        self._progress = "none" if self._is_quiet else options.text("progress")

    def opened(self, configurations: list[Row]) -> None:
        """Print what each configuration runs on."""
        if not self._is_quiet:
            print_configurations(configurations, self._console)
        if self._missing:
            complain(self._missing)

    @contextmanager
    def progress(self, phase: str, total: int) -> Iterator[Callable[[Tally], None]]:
        """Show progress."""
        with show_progress(phase, total, self._console, self._progress) as update:
            yield update

    def message(self, text: str) -> None:
        """Print it between the lines of progress."""
        if self._progress in ("auto", "lines"):
            self._console.print(text, highlight=False, markup=False)

    def measured(self) -> None:
        """Ignore Ctrl-C from now on: the result is not written yet."""
        ignore_interrupts()


class CarriedOut(Struct, frozen=True):
    """What came of a request; ``sources`` are what a page shows of it."""

    exit_code: int
    result: Result
    sources: Sources


def evaluate_and_print(
    request: Request,
    shards: FinishedShards | None = None,
    is_one_model: bool = True,
    missing: str = "",
    ahead: OpenedAhead | None = None,
) -> CarriedOut:
    """Evaluate, or take the records from finished ``shards``; print, write.

    ``is_one_model``: of this command. ``missing`` is a line about what was tried and cannot run here; ``ahead`` has
    sessions of what can.
    """
    options, console = request.options, make_console()
    task = task_command(request.task)
    asked = read(task, request)
    files = planned_files(request)
    page = planned_report(request)
    of_task = planned_files_of_task(task, request, files.values())
    with interrupts_restored():
        with redirect_stdout(sys.stderr):  # what a task of one's own prints does not mix with the native lines
            result = measure(task, request, Terminal(console, options, missing), shards, ahead)
        with_lines = has_native_lines(result, options, is_one_model)
        is_debug = with_lines and "debug_mode" in options and options.is_on("debug_mode")
        not_written = print_to_stdout(debug_lines(result) if is_debug else [])
        keeps_examples = "record_examples" in options and options.is_on("record_examples")
        saved = result if keeps_examples else without_examples(result)
        not_written += write_and_show(saved, files, console, options, with_lines)
        not_written += _write_of_task(result, task, of_task, console)
        total = len(asked.execution.shard.numbers_of(result.example_count))
        _print_early_end(result, total, asked.execution.max_failed_examples, request.is_native, console)
    located: Sequence[Result] = ()
    if "locate" in task.parameters and options.is_on("locate"):
        located, errors = _locate_after(request, result, files, console)
        not_written += errors
    name = Path(result.model.file).stem
    as_saved = {name: encode_json(saved)} if page is not None or not is_one_model else {}
    sources = Sources({name: result}, located={name: located}, saved=as_saved)
    not_written += write_report(page, sources)
    for error in not_written:
        console.print(f"evaltools: {error}", style="bold red")
    for entry in result.rows:
        if entry.crashes:
            console.print(f"{entry.name}: {entry.crashes_of_runs}", style="bold red")
    code = exit_codes.worst_of([exit_code_of(result), exit_codes.NOT_WRITTEN if not_written else exit_codes.OK])
    return CarriedOut(code, result, sources)


def record_only(request: Request) -> int:
    """Measure and keep the records in the run folder; another process makes the figures of them.

    Returns the exit code.
    """
    task = task_command(request.task)
    with interrupts_restored(), redirect_stdout(sys.stderr):  # what a task of one's own prints is not a result
        return record(read(task, request), Terminal(make_console(), request.options))


def has_native_lines(result: Result, options: Options, is_one_model: bool = True) -> bool:
    """Whether the native lines are printed on stdout.

    They are where a program reads stdout, and with ``--compat=native``. On a terminal they are only for a single model
    with a single test configuration, without ``--quiet``.
    """
    if not stdout_is_terminal() or options.text("compat") == "native":
        return True
    tests = [entry for entry in result.rows if entry.role == "test"]
    return is_one_model and len(tests) == 1 and not options.is_on("quiet")


def write_and_show(
    result: Result, files: dict[str, Path], console: Console, options: Options, with_lines: bool = True
) -> list[OutputError]:
    """Write the files, print the native lines and the tables; returns what could not be written."""
    figures = {name: path for name, path in files.items() if name != PLOT}
    contents = rendered(result, figures, options.text("output_format"))
    not_written = write_outputs(figures, contents, console)
    if PLOT in files:
        from evaltools.report.files.plot import plot_results

        plot, name = files[PLOT], Path(result.model.file).name
        not_written += write_outputs({PLOT: plot}, {PLOT: lambda: plot_results({name: result}, plot)})
    if with_lines:
        not_written += print_to_stdout(native_lines(result))
    detail: Detail = "answer" if options.is_on("quiet") else "all" if options.is_on("verbose") else "figures"
    print_result(result, console, detail)
    return not_written


def _write_of_task(result: Result, task: TaskCommand, files: Mapping[str, Path], console: Console) -> list[OutputError]:
    """Write the files that only the task has; returns what could not be written, then or while it was measured."""
    measured = [entry.name for entry in result.rows if entry.status == "measured"]
    contents = {name: partial(named(task.file_at), result, name) for name in files if name in measured}
    not_saved = [OutputError(result.not_saved)] if result.not_saved else []
    return [*write_outputs(files, contents, console), *not_saved]


def print_to_stdout(lines: Sequence[str]) -> list[OutputError]:
    """Print lines; returns what could not be written."""
    return [] if not lines or say("\n".join(lines)) else [OutputError("stdout cannot be written")]


def _print_early_end(result: Result, total: int, limit: int | None, native: bool, console: Console) -> None:
    """Say why the evaluation ended before its last example, if it did; ``limit`` is that of failed examples."""
    if not result.stopped:
        return
    reason: str = result.stopped
    if result.stopped == "too many failed examples":
        reason = f"more than --max_failed_examples={limit} examples failed"
        if native:
            reason = "an example failed, and the native tool stops there (--compat=native)"
    line = f"stopped after {result.examples_done} of {total} examples: {reason}"
    if result.stopped == "records are missing":
        line = f"the result is not complete: {reason}"
    elif result.examples_done == total:
        line = f"all {total} examples were run, what follows was not finished: {reason}"
    console.print(line, style="bold red")


def _locate_after(
    request: Request, result: Result, files: Mapping[str, Path], console: Console
) -> tuple[list[Result], list[OutputError]]:
    """Search for each configuration that differs, and show what is found; returns that, and what could not be written.

    Where ``files`` has a JSON file, the findings are written beside it.
    """
    from evaltools.cli.locate import print_answer, print_operators, search
    from evaltools.locate.command import searches_after

    searches = searches_after(request, result)
    json_files = [path for path in files.values() if path.suffix.lower() == ".json"]
    beside = file_per_configuration(json_files[0].with_suffix(".locate.json"), list(searches)) if json_files else {}
    found = {}
    for name, asked in searches.items():
        found[name] = search(asked, request.options, console)
        console.print(f"\n{printable(name)}:")
        if not request.options.is_on("quiet"):
            print_operators(found[name], console)
        print_answer(found[name], console)
    not_written = write_outputs(beside, {name: partial(encode_json, found[name]) for name in beside})
    return list(found.values()), not_written


def evaluate_and_print_each(decided: Mapping[str, Decided], options: Options) -> int:
    """Evaluate one model after the other, show a table of all, draw and report it as the options of all say.

    Returns the worst of the exit codes: a model that cannot be evaluated costs no other one.
    """
    from evaltools.report.files.plot import plot_results
    from evaltools.report.page.file import page_file
    from evaltools.report.page.screens import print_models

    console = make_console()
    read = [path for each in decided.values() for path in files_read(each.request)]
    files = planned_outputs(options, OF_ALL, read)
    results: dict[str, Result] = {}
    sources: dict[str, Sources] = {}
    codes = []
    for name, (request, missing) in decided.items():
        if not stdout_is_terminal() or request.is_native:
            print_to_stdout([f"INFO: Model: {name}"])
        console.print(f"\n{name}", style="bold underline")
        try:
            done = evaluate_and_print(request, is_one_model=False, missing=missing)
        except EvaltoolsError as error:
            complain(f"evaltools: {name}: {error}")
            codes.append(error.exit_code)
            continue
        except KeyboardInterrupt:
            complain(f"evaltools: interrupted before there was a result of {name}")
            codes.append(exit_codes.INTERRUPTED)
            break
        results[name] = done.result
        sources[name] = done.sources
        codes.append(done.exit_code)
        if done.result.stopped == "interrupted":
            break
    if results:
        console.print()
        print_models(results, console)
        contents = {
            "plot": lambda: plot_results(results, files["plot"]),
            "report": lambda: page_file(_all_of(sources), files["report"]),
        }
        not_written = write_outputs(files, contents)
        for problem in not_written:
            complain(f"evaltools: {problem}")
        codes += [exit_codes.NOT_WRITTEN] * len(not_written)
    return exit_codes.worst_of(codes)


def _all_of(sources: Mapping[str, Sources]) -> Sources:
    """What a page shows of all models, each by its name here."""
    return Sources(
        results={name: one for name, each in sources.items() for one in each.results.values()},
        located={name: found for name, each in sources.items() for found in each.located.values()},
        saved={name: one for name, each in sources.items() for one in each.saved.values()},
    )

"""What every evaluating command does around its evaluation: show it, write its files, print the native lines."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console

from evaltools.cli.configurations import Configurations
from evaltools.cli.flags import GivenFlags
from evaltools.cli.output_file import require_writable, write_file
from evaltools.cli.progress import show_progress
from evaltools.cli.streams import say
from evaltools.errors import OutputError, UsageError
from evaltools.preprocess import IMAGE_EXTENSIONS
from evaltools.report.files import plan_files, rendered
from evaltools.report.native import native_lines
from evaltools.report.result import ConfigurationResult, EvaluationResult
from evaltools.report.table import print_configurations, print_result


class Terminal:
    """Shows an evaluation on stderr."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def opened(self, configurations: list[ConfigurationResult]) -> None:
        """What each configuration runs on."""
        print_configurations(configurations, self._console)

    @contextmanager
    def progress(self, total: int) -> Iterator[Callable[[int], None]]:
        """Show progress; after it, Ctrl-C must not lose what was measured and is not written yet."""
        with show_progress(total, self._console) as on_example:
            yield on_example
            signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextmanager
def interrupts_restored() -> Iterator[None]:
    """Ctrl-C works again at the end as it did at the beginning."""
    handler = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)


def planned_files(flags: GivenFlags, configurations: Configurations, inputs: Iterable[Path | None]) -> dict[str, Path]:
    """The result files that ``--output_file_path`` asks for, checked before any long work.

    Refuses to overwrite what the evaluation reads (``inputs`` and the configurations' files), and stdout, which carries
    the native lines.
    """
    output = flags.path("output_file_path")
    if output is None:
        return {}
    files = plan_files(output, [configuration.name for configuration in configurations.tests])
    read = [path for path in inputs if path is not None] + [Path(text) for text in flags.texts("configs")]
    for configuration in configurations.all:
        read += configuration.files
    for path in set(files.values()):
        require_writable(path, "--output_file_path")
        _require_no_input(path, read)
    return files


def _require_no_input(path: Path, inputs: Iterable[Path]) -> None:
    if any(_same_file(path, source) for source in inputs):
        raise UsageError(f"--output_file_path={path} would overwrite an input of this run; give another name")
    if _same_file(path, 1) and not path.samefile(os.devnull):
        raise UsageError(f"--output_file_path={path} is stdout, which carries the native lines; give a file")
    if path.suffix.lower() in IMAGE_EXTENSIONS:
        raise UsageError(f"--output_file_path={path} has the ending of a picture; give another name")


def _same_file(path: Path, other: Path | int) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.stat(other))
    except OSError:
        return False


def hand_out(result: EvaluationResult, files: dict[str, Path], console: Console) -> list[OutputError]:
    """Write the files, print the native lines and the tables; returns what could not be written."""
    not_written = _write(result, files, console) + _print_native_lines(result)
    print_result(result, console)
    return not_written


def _write(result: EvaluationResult, files: dict[str, Path], console: Console) -> list[OutputError]:
    """Write what was planned, as far as it was measured."""
    failed = []
    contents = rendered(result, files)
    for name, path in files.items():
        if name not in contents:
            console.print(f"{path} is not written: {name} was not measured")
            continue
        try:
            write_file(path, contents[name])
        except OutputError as error:
            failed.append(error)
    return failed


def _print_native_lines(result: EvaluationResult) -> list[OutputError]:
    lines = native_lines(result)
    return [] if not lines or say("\n".join(lines)) else [OutputError("stdout cannot be written")]


def print_early_end(result: EvaluationResult, total: int, limit: int | None, native: bool, console: Console) -> None:
    """Say why the evaluation ended before its last example, if it did; ``limit`` is that of failed examples."""
    if result.stopped is None:
        return
    reason: str = result.stopped
    if result.stopped == "too many failed examples":
        reason = f"more than --max_failed_examples={limit} examples failed"
        if native:
            reason = "an example failed, and the native tool stops there (--compat=native)"
    line = f"stopped after {result.examples_done} of {total} examples: {reason}"
    if result.examples_done == total:
        line = f"all {total} examples were run, what follows was not finished: {reason}"
    console.print(line, style="bold red")

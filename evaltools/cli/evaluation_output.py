"""What every evaluating command does around its evaluation: show it, write its files, print the native lines."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Final

from rich.console import Console

from evaltools.cli import exit_codes
from evaltools.cli.configurations import Configurations
from evaltools.cli.flags import GivenFlags
from evaltools.cli.output_file import require_writable, write_file
from evaltools.cli.progress import show_progress
from evaltools.cli.streams import say
from evaltools.engine import Tally
from evaltools.errors import OutputError, UsageError
from evaltools.preprocess import IMAGE_EXTENSIONS
from evaltools.report.files import plan_files, rendered
from evaltools.report.native import native_lines
from evaltools.report.table import print_configurations, print_result
from evaltools.result.evaluation import ConfigurationResult, EvaluationResult

_ENDINGS: Final = (signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else []))
_INTERRUPTS: Final = (signal.SIGINT, *_ENDINGS)


class Terminal:
    """Shows an evaluation on stderr; ``progress`` is the value of ``--progress``."""

    def __init__(self, console: Console, progress: str = "auto") -> None:
        self._console = console
        self._progress = progress

    def opened(self, configurations: list[ConfigurationResult]) -> None:
        """What each configuration runs on."""
        print_configurations(configurations, self._console)

    def progress(self, phase: str, total: int) -> AbstractContextManager[Callable[[Tally], None]]:
        """Show progress."""
        return show_progress(phase, total, self._console, self._progress)

    def measured(self) -> None:
        """After the measurements, Ctrl-C must not lose what is not written yet."""
        ignore_interrupts()


def ignore_interrupts() -> None:
    """Until what was measured is written and shown."""
    for number in _INTERRUPTS:
        signal.signal(number, signal.SIG_IGN)


@contextmanager
def interrupts_restored() -> Iterator[None]:
    """SIGTERM and the end of the terminal interrupt as Ctrl-C does; afterwards all work again as they did before.

    What is ignored, as with ``nohup``, stays so.
    """
    before = {number: signal.getsignal(number) for number in _INTERRUPTS}
    for number in _ENDINGS:
        if before[number] is not signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def files_read(flags: GivenFlags, configurations: Configurations, inputs: Iterable[Path | None]) -> list[Path]:
    """Every file that an evaluation reads, but for pictures: its own ``inputs`` and those of the configurations."""
    read = [path for path in inputs if path is not None] + [Path(text) for text in flags.texts("configs")]
    return read + [path for configuration in configurations.all for path in configuration.files]


def planned_files(flags: GivenFlags, configurations: Configurations, inputs: Iterable[Path | None]) -> dict[str, Path]:
    """The result files that ``--output_file_path`` asks for, checked before any long work.

    Refuses to overwrite what the evaluation reads (``inputs`` and the configurations' files), and stdout, which carries
    the native lines.
    """
    output = flags.path("output_file_path")
    trace = flags.path("trace")
    if trace is not None:
        require_output_file(trace, "--trace", files_read(flags, configurations, inputs))
        if trace == output:
            raise UsageError(f"--trace={trace} is the result file, too; give another name")
    recording = "record_examples" in flags.parameters and flags.is_on("record_examples")
    if recording and (output is None or output.suffix.lower() != ".json"):
        raise UsageError("--record_examples writes to the JSON result; add --output_file_path=FILE.json")
    if output is None:
        return {}
    files = plan_files(output, [configuration.name for configuration in configurations.tests])
    read = files_read(flags, configurations, inputs)
    for path in set(files.values()):
        require_output_file(path, "--output_file_path", read)
        if path.suffix.lower() in IMAGE_EXTENSIONS:
            raise UsageError(f"--output_file_path={path} has the ending of a picture; give another name")
    return files


def require_output_file(path: Path, flag: str, inputs: Iterable[Path]) -> None:
    """Refuse a file that cannot be written, is read by this run (``inputs``), or is stdout, before any long work."""
    require_writable(path, flag)
    if any(_same_file(path, source) for source in inputs):
        raise UsageError(f"{flag}={path} would overwrite an input of this run; give another name")
    if _same_file(path, 1) and not path.samefile(os.devnull):
        raise UsageError(f"{flag}={path} is stdout, which carries the native lines; give a file")


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
    return write_measured(rendered(result, files), files, console)


def write_measured(contents: Mapping[str, bytes], files: Mapping[str, Path], console: Console) -> list[OutputError]:
    """Write the content of each file by what it holds, and say which are left out; returns what cannot be written."""
    failed = []
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


def exit_code(result: EvaluationResult, damaged: bool) -> int:
    """That of an evaluation over pictures; ``damaged``: some outputs hold NaN or infinite numbers."""
    if result.stopped == "interrupted":
        return exit_codes.INTERRUPTED
    without_input = [failure for failure in result.failed if failure.stage == "input"]
    no_input_at_all = bool(without_input) and len(without_input) == result.examples_done
    unavailable = [entry for entry in result.configurations if entry.status == "not measured"]
    if unavailable and not (no_input_at_all and all(entry.runtime is not None for entry in unavailable)):
        return exit_codes.NOT_MEASURED
    return exit_codes.EXAMPLES_FAILED if result.failed or damaged else exit_codes.OK


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

"""``evaltools imagenet`` behind its flags: request, evaluation, output, exit code."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console

from evaltools.cli import exit_codes
from evaltools.cli.configurations import read_configurations
from evaltools.cli.flags import GivenFlags
from evaltools.cli.output_file import require_writable, write_file
from evaltools.cli.progress import show_progress
from evaltools.cli.streams import say
from evaltools.cli.terminal import make_console
from evaltools.errors import OutputError, UsageError
from evaltools.preprocess import IMAGE_EXTENSIONS
from evaltools.report.files import plan_files, rendered
from evaltools.report.native import native_lines
from evaltools.report.result import ConfigurationResult, EvaluationResult
from evaltools.report.table import print_configurations, print_result
from evaltools.tasks.imagenet import ImagenetOptions
from evaltools.tasks.imagenet_evaluation import ImagenetRequest, evaluate


class _Terminal:
    """Shows the evaluation on stderr."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def opened(self, configurations: list[ConfigurationResult]) -> None:
        print_configurations(configurations, self._console)

    @contextmanager
    def progress(self, total: int) -> Iterator[Callable[[int], None]]:
        """Show progress; after the pass, Ctrl-C must not lose what was measured and is not written yet."""
        with show_progress(total, self._console) as on_example:
            yield on_example
            signal.signal(signal.SIGINT, signal.SIG_IGN)


def evaluate_imagenet(flags: GivenFlags, command: list[str]) -> int:
    """Evaluate, print, write; returns the exit code."""
    console = make_console()
    request = _request(flags, command)
    output = flags.path("output_file_path")
    files = plan_files(output, [configuration.name for configuration in request.tests]) if output else {}
    for path in set(files.values()):
        require_writable(path, "--output_file_path")
        _require_no_input(path, request, flags)
    if request.record_examples and (output is None or output.suffix.lower() != ".json"):
        raise UsageError("--record_examples writes to the JSON result; add --output_file_path=FILE.json")
    handler = signal.getsignal(signal.SIGINT)
    try:
        result = evaluate(request, _Terminal(console))
        not_written = _write(result, files, console) + _print_native_lines(result)
        print_result(result, console)
        _print_early_end(result, request, console)
    finally:
        signal.signal(signal.SIGINT, handler)
    for error in not_written:
        console.print(f"evaltools: {error}", style="bold red")
    return exit_codes.NOT_WRITTEN if not_written else _exit_code(result)


def _request(flags: GivenFlags, command: list[str]) -> ImagenetRequest:
    configurations = read_configurations(flags)
    limit = flags.number("max_failed_examples")
    options = ImagenetOptions(
        ground_truth_images_path=Path(flags.text("ground_truth_images_path")),
        ground_truth_labels=Path(flags.text("ground_truth_labels")),
        model_output_labels=Path(flags.text("model_output_labels")),
        denylist_file_path=flags.path("denylist_file_path"),
        num_images=flags.number("num_images"),
        normalization=flags.text("normalization"),
        label_offset=flags.number("label_offset") if "label_offset" in flags else None,
        native=flags.text("compat") == "native",
    )
    return ImagenetRequest(
        model_file=Path(flags.text("model_file")),
        options=options,
        reference=configurations.reference,
        tests=configurations.tests,
        allow_fallback=flags.is_on("allow_fallback"),
        label_check=flags.is_on("label_check"),
        max_failed_examples=(0 if options.native else None) if limit < 0 else limit,
        record_examples=flags.is_on("record_examples"),
        command=tuple(command),
    )


def _require_no_input(path: Path, request: ImagenetRequest, flags: GivenFlags) -> None:
    """Refuse to overwrite what the evaluation reads, or stdout, which carries the native lines."""
    options = request.options
    inputs = [request.model_file, options.ground_truth_labels, options.model_output_labels, options.denylist_file_path]
    inputs += [Path(text) for text in flags.texts("configs")]
    for configuration in (request.reference, *request.tests):
        inputs += configuration.files if configuration else []
    if any(source is not None and _same_file(path, source) for source in inputs):
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


def _write(result: EvaluationResult, files: dict[str, Path], console: Console) -> list[OutputError]:
    """Write what was planned, as far as it was measured; returns what could not be written."""
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
    """Print to stdout; returns what could not be printed."""
    lines = native_lines(result)
    return [] if not lines or say("\n".join(lines)) else [OutputError("stdout cannot be written")]


def _print_early_end(result: EvaluationResult, request: ImagenetRequest, console: Console) -> None:
    if result.stopped is None:
        return
    reason: str = result.stopped
    if result.stopped == "too many failed examples":
        reason = f"more than --max_failed_examples={request.max_failed_examples} examples failed"
        if request.options.native:
            reason = "an example failed, and the native tool stops there (--compat=native)"
    line = f"stopped after {result.examples_done} of {result.data.example_count} examples: {reason}"
    console.print(line, style="bold red")


def _exit_code(result: EvaluationResult) -> int:
    if result.stopped == "interrupted":
        return exit_codes.INTERRUPTED
    without_input = [failure for failure in result.failed if failure.stage == "input"]
    no_input_at_all = bool(without_input) and len(without_input) == result.examples_done
    unavailable = [entry for entry in result.configurations if entry.status == "not measured"]
    if unavailable and not (no_input_at_all and all(entry.runtime is not None for entry in unavailable)):
        return exit_codes.NOT_MEASURED
    damaged = any(c.classification and c.classification.outputs_with_nonfinite for c in result.configurations)
    return exit_codes.EXAMPLES_FAILED if result.failed or damaged else exit_codes.OK

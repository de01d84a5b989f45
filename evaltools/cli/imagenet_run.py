"""``evaltools imagenet`` behind its flags: request, evaluation, output, exit code."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TextIO

from rich.console import Console

from evaltools.cli import exit_codes
from evaltools.cli.configurations import read_configurations
from evaltools.cli.flags import GivenFlags
from evaltools.cli.output_file import require_writable, write_file
from evaltools.cli.progress import show_progress
from evaltools.report.json_file import to_json
from evaltools.report.native import measured_tests, native_lines, native_proto
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

    def progress(self, total: int) -> AbstractContextManager[Callable[[int], None]]:
        return show_progress(total, self._console)


def evaluate_imagenet(flags: GivenFlags, command: list[str], stdout: TextIO) -> int:
    """Evaluate and print; returns the exit code."""
    console = _stderr_console()
    request = _request(flags, command)
    output = _path(flags, "output_file_path")
    if output is not None:
        require_writable(output, "--output_file_path")
    result = evaluate(request, _Terminal(console))
    for line in native_lines(result):
        print(line, file=stdout)
    stdout.flush()
    print_result(result, console)
    if output is not None:
        _write(result, output, console)
    return _exit_code(result, console)


def _stderr_console() -> Console:
    """A console on stderr; without a terminal lines are not cut at 80 columns."""
    console = Console(stderr=True)
    return console if console.is_terminal else Console(stderr=True, width=160)


def _request(flags: GivenFlags, command: list[str]) -> ImagenetRequest:
    configurations = read_configurations(flags)
    limit = int(flags.value("max_failed_examples"))
    options = ImagenetOptions(
        ground_truth_images_path=Path(str(flags.value("ground_truth_images_path"))),
        ground_truth_labels=Path(str(flags.value("ground_truth_labels"))),
        model_output_labels=Path(str(flags.value("model_output_labels"))),
        denylist_file_path=_path(flags, "denylist_file_path"),
        num_images=int(flags.value("num_images")),
        normalization=str(flags.value("normalization")),
        label_offset=int(flags.value("label_offset")) if "label_offset" in flags else None,
        native=flags.value("compat") == "native",
    )
    return ImagenetRequest(
        model_file=Path(str(flags.value("model_file"))),
        options=options,
        reference=configurations.reference,
        tests=configurations.tests,
        allow_fallback=bool(flags.value("allow_fallback")),
        label_check=bool(flags.value("label_check")),
        max_failed_examples=(0 if options.native else None) if limit < 0 else limit,
        record_examples=bool(flags.value("record_examples")),
        command=tuple(command),
    )


def _path(flags: GivenFlags, name: str) -> Path | None:
    text = str(flags.value(name))
    return Path(text) if text else None


def _write(result: EvaluationResult, output: Path, console: Console) -> None:
    """JSON, or the native protobuf: the first test configuration to ``output``, others beside it by name."""
    if output.suffix == ".json":
        write_file(output, to_json(result))
        return
    measured = measured_tests(result)
    if not measured:
        console.print(f"{output} is not written: no test configuration was measured", highlight=False, soft_wrap=True)
    for number, configuration in enumerate(measured):
        name = re.sub(r"[^\w.-]+", "_", configuration.name)
        path = output if number == 0 else output.with_name(f"{output.stem}.{name}{output.suffix}")
        write_file(path, native_proto(result, configuration))
        if len(measured) > 1:
            console.print(f"{configuration.name}: {path}", markup=False, highlight=False, soft_wrap=True)


def _exit_code(result: EvaluationResult, console: Console) -> int:
    if result.stopped is not None:
        done = max((c.classification.topk.example_count for c in result.configurations if c.classification), default=0)
        line = f"stopped after {done} of {result.data.example_count} examples: {result.stopped}"
        console.print(line, style="bold red", markup=False, highlight=False, soft_wrap=True)
    if result.stopped == "interrupted":
        return exit_codes.INTERRUPTED
    if any(configuration.status == "not measured" for configuration in result.configurations):
        return exit_codes.NOT_MEASURED
    damaged = any(c.classification and c.classification.outputs_with_nonfinite for c in result.configurations)
    if result.failed or damaged:
        return exit_codes.EXAMPLES_FAILED
    return exit_codes.OK

"""``evaltools imagenet`` behind its flags: request, evaluation, output, exit code."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from evaltools.cli import exit_codes
from evaltools.cli.configurations import Configurations, read_configurations
from evaltools.cli.evaluation_flags import read_margin
from evaltools.cli.evaluation_output import (
    Terminal,
    exit_code,
    hand_out,
    interrupts_restored,
    planned_files,
    print_early_end,
)
from evaltools.cli.execution_flags import flags_to_repeat, read_execution
from evaltools.cli.finished_shards import FinishedShards
from evaltools.cli.flags import GivenFlags
from evaltools.cli.terminal import make_console
from evaltools.runtime.isolated import open_isolated
from evaltools.tasks.imagenet.evaluation import ImagenetRequest, prepare
from evaltools.tasks.imagenet.task import ImagenetOptions
from evaltools.tasks.shared.evaluation import evaluate, merge


def plan_files(flags: GivenFlags, configurations: Configurations, request: ImagenetRequest) -> dict[str, Path]:
    """The files to write, checked before any long work; raises :class:`UsageError`."""
    options = request.options
    inputs = [request.model_file, options.ground_truth_labels, options.model_output_labels, options.denylist_file_path]
    return planned_files(flags, configurations, inputs)


def evaluate_imagenet(flags: GivenFlags, command: list[str], shards: FinishedShards | None = None) -> int:
    """Evaluate, print, write; returns the exit code."""
    console = make_console()
    configurations = read_configurations(flags)
    request = read_request(flags, configurations, command)
    options = request.options
    files = plan_files(flags, configurations, request)
    with interrupts_restored():
        terminal = Terminal(console, flags.text("progress"))
        opener = partial(open_isolated, timeout_s=request.execution.example_timeout_s)
        if shards is None:
            result = evaluate(prepare, request, terminal, opener)
        else:
            result = shards.complete(merge(prepare, request, shards.places, terminal))
        not_written = hand_out(result, files, console)
        total = request.execution.shard.size_of(result.data.example_count if result.data else 0)
        print_early_end(result, total, request.max_failed_examples, options.native, console)
    for error in not_written:
        console.print(f"evaltools: {error}", style="bold red")
    damaged = any(c.classification and c.classification.outputs_with_nonfinite for c in result.configurations)
    return exit_codes.NOT_WRITTEN if not_written else exit_code(result, damaged)


def read_request(flags: GivenFlags, configurations: Configurations, command: list[str]) -> ImagenetRequest:
    """What the flags ask for; raises :class:`UsageError` for values that make no sense."""
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
        margin=read_margin(flags),
        execution=read_execution(flags),
        flags=flags_to_repeat(flags),
        command=tuple(command),
    )

"""``evaltools coco`` behind its flags: request, evaluation, output, exit code."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final, cast

from evaltools.cli import exit_codes
from evaltools.cli.coco_files import MoreFiles, plan_more_files, write_more_files
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
from evaltools.cli.streams import say
from evaltools.cli.terminal import make_console
from evaltools.errors import OutputError, UsageError
from evaltools.metrics.coco_stats import CocoEvaluator
from evaltools.preprocess import parse_normalization
from evaltools.report.native import measured_tests
from evaltools.report.native_coco import debug_lines
from evaltools.report.result import EvaluationResult
from evaltools.runtime.isolated import open_isolated
from evaltools.tasks.coco.evaluation import CocoRequest, prepare
from evaltools.tasks.coco.task import CocoOptions, Resize
from evaltools.tasks.shared.evaluation import evaluate, merge

_FEWEST_RESAMPLES: Final = 100
_MOST_RESAMPLES: Final = 100_000


def plan_files(
    flags: GivenFlags, configurations: Configurations, request: CocoRequest
) -> tuple[dict[str, Path], MoreFiles]:
    """The files to write, checked before any long work; raises :class:`UsageError`."""
    options = request.options
    truths = (options.ground_truth_annotations, options.ground_truth_proto, options.model_output_labels)
    inputs = [request.model_file, *truths]
    files = planned_files(flags, configurations, inputs)
    return files, plan_more_files(flags, configurations, inputs, files.values())


def run_coco(flags: GivenFlags, command: list[str], shards: FinishedShards | None = None) -> int:
    """Evaluate, print, write; returns the exit code."""
    console = make_console()
    configurations = read_configurations(flags)
    request = read_request(flags, configurations, command)
    options = request.options
    files, more_files = plan_files(flags, configurations, request)
    with interrupts_restored():
        terminal = Terminal(console, flags.text("progress"))
        opener = partial(open_isolated, timeout_s=request.execution.example_timeout_s)
        if shards is None:
            result = evaluate(prepare, request, terminal, opener)
        else:
            result = shards.complete(merge(prepare, request, shards.places, terminal))
        not_written = _print_debug_lines(result) if flags.is_on("debug_mode") else []
        not_written += hand_out(_as_asked(result, flags.is_on("record_examples")), files, console)
        not_written += write_more_files(result, more_files, options.ground_truth_images_path, console)
        total = request.execution.shard.size_of(result.coco.data.example_count if result.coco else 0)
        print_early_end(result, total, request.max_failed_examples, options.native, console)
    for error in not_written:
        console.print(f"evaltools: {error}", style="bold red")
    damaged = result.coco is not None and any(figures.nonfinite_detections for figures in result.coco.figures)
    return exit_codes.NOT_WRITTEN if not_written else exit_code(result, damaged)


def _resamples(flags: GivenFlags) -> int:
    resamples = flags.number("bootstrap_resamples")
    if resamples and not _FEWEST_RESAMPLES <= resamples <= _MOST_RESAMPLES:
        raise UsageError(
            f"--bootstrap_resamples={resamples}: use {_FEWEST_RESAMPLES} to {_MOST_RESAMPLES}, or 0 to judge no change"
        )
    return resamples


def read_request(flags: GivenFlags, configurations: Configurations, command: list[str]) -> CocoRequest:
    """What the flags ask for; raises :class:`UsageError` for values that make no sense."""
    limit = flags.number("max_failed_examples")
    native = flags.text("compat") == "native"
    options = CocoOptions(
        ground_truth_images_path=Path(flags.text("ground_truth_images_path")),
        ground_truth_annotations=flags.path("ground_truth_annotations"),
        ground_truth_proto=flags.path("ground_truth_proto"),
        model_output_labels=flags.path("model_output_labels"),
        num_images=flags.number("num_images"),
        normalization=flags.text("normalization"),
        resize=cast(Resize, flags.text("resize")),
        letterbox_fill=_pixel(flags),
        output_map=flags.text("output_map"),
        class_offset=flags.text("class_offset"),
        score_threshold=flags.real("score_threshold"),
        coco_evaluator=cast(CocoEvaluator, flags.text("coco_evaluator")),
        native=native,
    )
    if options.num_images < 0:
        raise UsageError(f"--num_images={options.num_images}: use 0 for all pictures, or how many to take")
    if native and options.resize != "stretch":
        raise UsageError(
            f"--resize={options.resize}: the native tool stretches pictures; leave out one of it and --compat"
        )
    if options.normalization != "auto":
        parse_normalization(options.normalization)
    if "coco_evaluator" in flags and not (options.ground_truth_annotations or options.ground_truth_proto):
        raise UsageError("--coco_evaluator has no effect without a ground truth; give one, or leave it out")
    return CocoRequest(
        model_file=Path(flags.text("model_file")),
        options=options,
        reference=configurations.reference,
        tests=configurations.tests,
        allow_fallback=flags.is_on("allow_fallback"),
        max_failed_examples=(0 if native else None) if limit < 0 else limit,
        keep_pictures=flags.is_on("record_examples")
        or flags.is_on("debug_mode")
        or bool(flags.text("detections_path") or flags.text("disagreements_path")),
        margin=read_margin(flags),
        bootstrap_resamples=_resamples(flags),
        execution=read_execution(flags),
        flags=flags_to_repeat(flags),
        command=tuple(command),
    )


def _pixel(flags: GivenFlags) -> int:
    value = flags.number("letterbox_fill")
    if not 0 <= value <= 255:
        raise UsageError(f"--letterbox_fill={value}: use a pixel value, 0 to 255")
    if "letterbox_fill" in flags and flags.text("resize") == "stretch":
        raise UsageError("--letterbox_fill has no effect without --resize=letterbox; add that, or leave it out")
    return value


def _print_debug_lines(result: EvaluationResult) -> list[OutputError]:
    measured = measured_tests(result)
    lines: list[str] = []
    for entry in measured:
        if len([other for other in result.configurations if other.role == "test"]) > 1:
            lines.append(f"INFO: Configuration: {entry.name}")
        lines += [f"INFO: {line}" for line in debug_lines(result, entry.name)]
    return [] if not lines or say("\n".join(lines)) else [OutputError("stdout cannot be written")]


def _as_asked(result: EvaluationResult, with_pictures: bool) -> EvaluationResult:
    """Detections stand in the result only where they were asked for."""
    if with_pictures or result.coco is None:
        return result
    return replace(result, coco=replace(result.coco, pictures=None))

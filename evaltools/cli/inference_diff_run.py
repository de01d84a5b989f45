"""``evaltools inference-diff`` behind its flags: request, evaluation, output, exit code."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Final

from evaltools.cli import exit_codes
from evaltools.cli.configurations import REFERENCE_KERNELS, Configurations, read_configurations
from evaltools.cli.evaluation_output import Terminal, hand_out, interrupts_restored, planned_files, print_early_end
from evaltools.cli.execution_flags import flags_to_repeat, read_execution
from evaltools.cli.finished_shards import FinishedShards
from evaltools.cli.flags import GivenFlags
from evaltools.cli.terminal import make_console
from evaltools.errors import OutputError, UsageError
from evaltools.gates.limits import LIMIT_FLAGS, parse_limit
from evaltools.preprocess import parse_normalization
from evaltools.report.result import EvaluationResult
from evaltools.runtime.isolated import open_isolated
from evaltools.tasks.inference_diff.evaluation import evaluate_diff, merge_diff
from evaltools.tasks.inference_diff.inputs import InputOptions
from evaltools.tasks.inference_diff.request import DiffRequest

_MOST_RUNS: Final = 1_000_000


def evaluate_inference_diff(flags: GivenFlags, command: list[str], shards: FinishedShards | None = None) -> int:
    """Compare, print, write; returns the exit code."""
    console = make_console()
    native = flags.text("compat") == "native"
    configurations = diff_configurations(flags)
    request = read_request(flags, configurations, command)
    files = plan_files(flags, configurations, request)
    with interrupts_restored():
        terminal = Terminal(console, flags.text("progress"))
        opener = partial(open_isolated, timeout_s=request.execution.example_timeout_s)
        if shards is None:
            result = evaluate_diff(request, terminal, opener)
        elif shards.whole is None:
            result = shards.complete(merge_diff(request, shards.places, terminal, opener))
        else:
            terminal.opened(shards.whole.configurations)
            result = shards.complete(shards.whole)
        not_written = hand_out(result, files, console)
        assert result.inference_diff is not None
        if result.inference_diff.not_saved is not None:
            not_written.append(OutputError(result.inference_diff.not_saved))
        total = request.execution.shard.size_of(result.inference_diff.num_runs)
        print_early_end(result, total, request.max_failed_examples, native, console)
    for error in not_written:
        console.print(f"evaltools: {error}", style="bold red")
    return exit_codes.NOT_WRITTEN if not_written else _exit_code(result)


def plan_files(flags: GivenFlags, configurations: Configurations, request: DiffRequest) -> dict[str, Path]:
    """The files to write, checked before any long work; raises :class:`UsageError`."""
    files = planned_files(flags, configurations, _files_read(request))
    for path in files.values():
        if request.save_outputs is not None and path.resolve().is_relative_to(request.save_outputs.resolve()):
            raise UsageError(f"--output_file_path={path} is in the folder of --save_outputs; put it elsewhere")
    return files


def diff_configurations(flags: GivenFlags) -> Configurations:
    """The native tool's reference has the runtime's default kernels, ours builtin ones."""
    loads = "load_reference" in flags
    if loads and "reference" in flags:
        raise UsageError("--load_reference and --reference both state the reference; keep one")
    native = flags.text("compat") == "native"
    found = read_configurations(flags, "default" if native else REFERENCE_KERNELS)
    if loads:
        return Configurations(None, found.tests)
    if found.reference is None:
        raise UsageError(
            "--reference=none leaves nothing to compare with; leave it out, or give --load_reference=FOLDER"
        )
    return found


def read_request(flags: GivenFlags, configurations: Configurations, command: list[str]) -> DiffRequest:
    """What the flags ask for; raises :class:`UsageError` for values that make no sense."""
    native = flags.text("compat") == "native"
    limit = flags.number("max_failed_examples")
    return DiffRequest(
        model_file=Path(flags.text("model_file")),
        reference=configurations.reference,
        tests=configurations.tests,
        inputs=_inputs(flags, native),
        reference_model_file=flags.path("reference_model_file"),
        signature=flags.text("signature"),
        input_shapes=tuple(flags.texts("input_shape")),
        yardstick_runs=_count(flags, "noise_floor_runs", 0, 0 if native else None),
        warmup_runs=_count(flags, "warmup_runs", 0, 0 if native else None),
        limits=tuple(parse_limit(name, text) for name in LIMIT_FLAGS for text in flags.texts(name)),
        save_outputs=flags.path("save_outputs"),
        load_reference=flags.path("load_reference"),
        allow_model_mismatch=flags.is_on("allow_model_mismatch"),
        allow_fallback=flags.is_on("allow_fallback"),
        max_failed_examples=(0 if native else None) if limit < 0 else limit,
        native=native,
        execution=read_execution(flags),
        flags=flags_to_repeat(flags),
        command=tuple(command),
    )


def _inputs(flags: GivenFlags, native: bool) -> InputOptions:
    seed = flags.number("seed")
    if seed < 1:
        raise UsageError(f"--seed={seed}: use a whole number of 1 or more; 1 gives the inputs of the native tool")
    normalization = flags.text("normalization")
    images = flags.path("input_images")
    if "normalization" in flags and images is None:
        raise UsageError("--normalization has no effect without --input_images; add that, or leave it out")
    if normalization != "auto":
        parse_normalization(normalization)
    return InputOptions(
        num_runs=_count(flags, "num_runs", 1) if "num_runs" in flags else None,
        seed=seed,
        ranges=tuple(flags.texts("input_range")),
        files=tuple(flags.texts("input_files")),
        images=images,
        normalization=normalization,
        native=native,
    )


def _files_read(request: DiffRequest) -> list[Path | None]:
    """What a result file must not overwrite; an input file may stand as ``NAME=PATH``, or be one of a folder."""
    files: list[Path | None] = [request.model_file, request.reference_model_file]
    for text in request.inputs.files:
        words = text.split("=")
        named = [Path("=".join(words[start:])) for start in range(len(words))]
        files += [file for path in named for file in (path.iterdir() if path.is_dir() else [path])]
    if request.load_reference is not None:
        files += request.load_reference.rglob("*")
    return files


def _count(flags: GivenFlags, name: str, lowest: int, unless_given: int | None = None) -> int:
    if name not in flags and unless_given is not None:
        return unless_given
    number = flags.number(name)
    if not lowest <= number <= _MOST_RUNS:
        raise UsageError(f"--{name}={number}: use {lowest} to {_MOST_RUNS}")
    return number


def _exit_code(result: EvaluationResult) -> int:
    assert result.inference_diff is not None
    comparisons = result.inference_diff.comparisons
    if result.stopped == "interrupted":
        return exit_codes.INTERRUPTED
    if any(entry.status == "not measured" for entry in result.configurations):
        return exit_codes.NOT_MEASURED
    if any(comparison.within_limits is False for comparison in comparisons):
        return exit_codes.LIMIT_BROKEN
    sides = [side for c in comparisons for o in c.outputs for side in (o.difference.test, o.difference.reference)]
    damaged = any(side.nan or side.infinite for side in sides)
    return exit_codes.EXAMPLES_FAILED if result.failed or damaged else exit_codes.OK

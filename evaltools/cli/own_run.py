"""``evaltools run`` behind its flags: request, evaluation, output, exit code."""

from __future__ import annotations

from collections.abc import Sequence
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
from evaltools.errors import UsageError
from evaltools.report.native_own import NO_PROTOBUF
from evaltools.runtime.isolated import open_isolated
from evaltools.tasks.own.evaluation import OwnRequest, prepare
from evaltools.tasks.own.loading import Loaded
from evaltools.tasks.own.options import Option, values_of
from evaltools.tasks.shared.evaluation import evaluate, merge


def evaluate_own(
    loaded: Loaded, options: Sequence[Option], flags: GivenFlags, command: list[str], shards: FinishedShards | None
) -> int:
    """Evaluate, print, write; returns the exit code."""
    console = make_console()
    configurations = read_configurations(flags)
    request = _request(loaded, options, flags, configurations, command)
    files = planned_files(flags, configurations, [request.model_file, loaded.origin.file if loaded.origin else None])
    if any(path.suffix.lower() != ".json" for path in files.values()):
        raise UsageError(NO_PROTOBUF)
    with interrupts_restored():
        terminal = Terminal(console, flags.text("progress"))
        opener = partial(open_isolated, timeout_s=request.execution.example_timeout_s)
        if shards is None:
            result = evaluate(prepare, request, terminal, opener)
        else:
            result = shards.complete(merge(prepare, request, shards.places, terminal))
        not_written = hand_out(result, files, console)
        total = request.execution.shard.size_of(result.own.example_count if result.own else 0)
        print_early_end(result, total, request.max_failed_examples, False, console)
    for error in not_written:
        console.print(f"evaltools: {error}", style="bold red")
    return exit_codes.NOT_WRITTEN if not_written else exit_code(result, False)


def _request(
    loaded: Loaded, options: Sequence[Option], flags: GivenFlags, configurations: Configurations, command: list[str]
) -> OwnRequest:
    names = {option.parameter.name for option in options}
    given = {
        name: flags.parameters[name].format(flags.value(name)).partition("=")[2] for name in names if name in flags
    }
    limit = flags.number("max_failed_examples")
    return OwnRequest(
        model_file=Path(flags.text("model_file")),
        loaded=loaded,
        options=values_of(tuple(options), given, loaded.function.name),
        reference=configurations.reference,
        tests=configurations.tests,
        allow_fallback=flags.is_on("allow_fallback"),
        max_failed_examples=None if limit < 0 else limit,
        record_examples=flags.is_on("record_examples"),
        margin=read_margin(flags),
        execution=read_execution(flags),
        flags={name: text for name, text in flags_to_repeat(flags).items() if name.removeprefix("--") not in names},
        command=tuple(command),
    )

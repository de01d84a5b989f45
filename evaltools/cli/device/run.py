"""``evaltools device run TASK``: a task on phones and boards, with the same result as here."""

from __future__ import annotations

from pathlib import Path

from evaltools.benchmark.kind import KIND
from evaltools.cli.shared.streams import complain, tell
from evaltools.commands.device_run import HELP, parse, tasks_on_devices
from evaltools.commands.names import COMMANDS
from evaltools.device.run.flags import read_device_flags
from evaltools.exit_codes import NOT_WRITTEN, OK, USAGE
from evaltools.request import Request


def run(arguments: list[str]) -> int:
    """Run one task on devices; returns the exit code."""
    if not arguments:
        complain(f"evaltools: missing: the task of evaltools device run\n{_help_text()}")
        return USAGE
    word, rest = arguments[0], arguments[1:]
    if word in (*HELP, "help"):
        return OK if tell(_help_text()) else NOT_WRITTEN
    return carry_out_on_devices(parse(word, rest))


def carry_out_on_devices(request: Request) -> int:
    """Run the task of a request on its devices; returns the exit code."""
    from evaltools.runs.stored import seen_from

    request = seen_from(request, Path.cwd())
    assert request.devices is not None
    flags = read_device_flags(request.devices)
    if request.task == KIND.name:
        from evaltools.cli.device.benchmark import benchmark_on_devices

        return benchmark_on_devices(request, flags)
    from evaltools.cli.device.evaluation import evaluate_natively_on_devices, evaluate_on_devices

    return (evaluate_natively_on_devices if flags.program == "native" else evaluate_on_devices)(request, flags)


def _help_text() -> str:
    summaries = tasks_on_devices() | {KIND.command: COMMANDS[KIND.command].summary}
    tasks = "\n".join(f"  {command:<15} {summary}" for command, summary in summaries.items())
    return (
        "usage: evaltools device run TASK --flag=value ...\n\n"
        "A task on phones and boards, with the same result as here.\n\n"
        f"tasks:\n{tasks}\n\n"
        "evaltools device run TASK --help lists the flags of a task and those about devices."
    )

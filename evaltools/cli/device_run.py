"""``evaltools device run TASK``: a task on phones and boards, with the same result as here."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Final

from evaltools.cli.device_run_flags import NAMES, PARAMETERS, DeviceCommand, DeviceFlags, read_device_flags
from evaltools.cli.exit_codes import EXIT_CODE_HELP, NOT_WRITTEN, OK, USAGE
from evaltools.cli.flags import GivenFlags, parse_flags
from evaltools.cli.streams import complain, say
from evaltools.errors import UsageError
from evaltools.parameter import did_you_mean

TASKS: Final[Mapping[str, str]] = {
    "imagenet": "evaltools.cli.imagenet",
    "coco": "evaltools.cli.coco",
    "inference-diff": "evaltools.cli.inference_diff",
    "diff": "evaltools.cli.inference_diff",
    "benchmark": "evaltools.cli.benchmark",
}
DESCRIPTION: Final = """\
Runs evaltools {task} on devices over adb: sends model, data and program, runs in parts, fetches the records and makes
of them the result that this computer would have given. The flags below "devices" are about that, all others are those
of evaltools {task}.
stdout, stderr and result files are those of evaltools {task}; the result says which device did what, and how it was."""
Runner = Callable[[DeviceCommand], int]


def run(arguments: list[str]) -> int:
    """Run one task on devices; returns the exit code."""
    if not arguments:
        complain(f"evaltools: missing: the task of evaltools device run\n{_help_text()}")
        return USAGE
    task, rest = arguments[0], arguments[1:]
    if task in ("-h", "--help", "--help=true", "--help=1", "help"):
        return OK if say(_help_text()) else NOT_WRITTEN
    if task not in TASKS:
        hint = did_you_mean(task, TASKS)
        raise UsageError(
            f"{task!r} is no task; give one of {', '.join(TASKS)} first.{hint} See evaltools device run --help"
        )
    module = importlib.import_module(TASKS[task])
    if task == "benchmark":
        module.refuse_native_flags(rest)
    groups = {"devices": PARAMETERS, **module.GROUPS}
    description = DESCRIPTION.format(task=task)
    exit_codes = module.EXIT_CODES if task == "benchmark" else EXIT_CODE_HELP
    flags = parse_flags(f"device run {task}", description, f"exit codes:\n{exit_codes}", groups, rest)
    module.require(flags)
    own = read_device_flags(flags)
    _require_json(flags, own)
    task_flags = GivenFlags(tuple(pair for pair in flags.given if pair[0] not in NAMES), flags.parameters)
    runner: Runner = importlib.import_module(_runner(task, own)).run_on_devices
    return runner(DeviceCommand(task, module, task_flags, own, ("evaltools", "device", "run", task, *rest)))


def _require_json(flags: GivenFlags, own: DeviceFlags) -> None:
    """Refuse files per configuration where every place has its own; raises :class:`UsageError`."""
    if own.split != "each":
        return
    for name in ("detections_path", "disagreements_path"):
        if name in flags:
            raise UsageError(f"--{name} has no effect with --split=each; leave it out, or use --split=pool")
    output = flags.path("output_file_path")
    if output is not None and output.suffix.lower() != ".json":
        raise UsageError(
            f"--output_file_path={output}: with --split=each the result is JSON; give a name ending in .json"
        )


def _runner(task: str, own: DeviceFlags) -> str:
    """The module that runs a task with a program."""
    kind = "benchmark" if task == "benchmark" else "evaluation"
    if own.program == "app" and kind != "benchmark":
        raise UsageError(f"--device_program=app can only benchmark; use evaltools or native for {task}")
    if own.program == "evaltools":
        return f"evaltools.cli.device_{kind}"
    return f"evaltools.cli.device_native_{kind}"


def _help_text() -> str:
    from evaltools.cli.main import COMMANDS

    tasks = "\n".join(f"  {name:<15} {COMMANDS[name].summary}" for name in TASKS if name != "diff")
    return (
        "usage: evaltools device run TASK --flag=value ...\n\n"
        "A task on phones and boards, with the same result as here.\n\n"
        f"tasks:\n{tasks}\n\n"
        "evaltools device run TASK --help lists the flags of a task and those about devices."
    )

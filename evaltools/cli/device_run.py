"""``evaltools device run TASK``: a task on phones and boards, with the same result as here."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Final

from evaltools.cli.device_run_flags import NAMES, PARAMETERS, DeviceCommand, DeviceFlags, read_device_flags
from evaltools.cli.flags import GivenFlags, parse_flags
from evaltools.cli.streams import complain, say
from evaltools.errors import UsageError
from evaltools.exit_codes import (
    DEVICE_BENCHMARK_EXIT_CODE_HELP,
    DEVICE_EXIT_CODE_HELP,
    NOT_WRITTEN,
    OK,
    USAGE,
)
from evaltools.parameter import Parameter, did_you_mean

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
_HELP: Final = ("-h", "--help", "--help=true", "--help=1")
Runner = Callable[[DeviceCommand], int]


def run(arguments: list[str]) -> int:
    """Run one task on devices; returns the exit code."""
    if not arguments:
        complain(f"evaltools: missing: the task of evaltools device run\n{_help_text()}")
        return USAGE
    task, rest = arguments[0], arguments[1:]
    if task in (*_HELP, "help"):
        return OK if say(_help_text()) else NOT_WRITTEN
    if task not in TASKS:
        hint = did_you_mean(task, TASKS)
        raise UsageError(
            f"{task!r} is no task; give one of {', '.join(TASKS)} first.{hint} See evaltools device run --help"
        )
    module = importlib.import_module(TASKS[task])
    is_benchmark = task == "benchmark"
    if is_benchmark:
        module.refuse_native_flags(rest)
    groups: dict[str, Sequence[Parameter]] = {"devices": PARAMETERS, **module.GROUPS}
    if any(word in _HELP for word in rest):
        groups = _with_effect(groups)
    exit_codes = DEVICE_BENCHMARK_EXIT_CODE_HELP if is_benchmark else DEVICE_EXIT_CODE_HELP
    description = DESCRIPTION.format(task=task)
    flags = parse_flags(f"device run {task}", description, f"exit codes:\n{exit_codes}", groups, rest)
    _require(module, flags)
    _refuse(flags)
    own = read_device_flags(flags)
    _require_json(flags, own)
    task_flags = GivenFlags(tuple(pair for pair in flags.given if pair[0] not in NAMES), flags.parameters)
    runner: Runner = importlib.import_module(_runner(task, own)).run_on_devices
    return runner(DeviceCommand(task, module, task_flags, own, ("evaltools", "device", "run", task, *rest)))


def _with_effect(groups: Mapping[str, Sequence[Parameter]]) -> dict[str, Sequence[Parameter]]:
    """The flags that help lists: those that are refused on devices are parsed all the same, to say why."""
    return {
        title: tuple(parameter for parameter in group if not parameter.refused_on_devices)
        for title, group in groups.items()
    }


def _refuse(flags: GivenFlags) -> None:
    """Raise :class:`UsageError` for the first flag that has no meaning on devices."""
    for name, text in flags.given:
        parameter = flags.parameters[name]
        if parameter.refused_on_devices and not parameter.is_as_left_out(parameter.parse(text)):
            raise UsageError(f"--{name} has no effect on devices: {parameter.refused_on_devices}")


def _require(module: ModuleType, flags: GivenFlags) -> None:
    """Refuse a command without the flags that its task needs, naming the help of this command."""
    try:
        module.require(flags)
    except UsageError as error:
        raise UsageError(str(error).replace("See evaltools ", "See evaltools device run ")) from None


def _require_json(flags: GivenFlags, own: DeviceFlags) -> None:
    """Refuse files per configuration where every place has its own; raises :class:`UsageError`."""
    if own.split != "each":
        return
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

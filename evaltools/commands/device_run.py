"""The words behind ``evaltools device run``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from evaltools.benchmark import flags as benchmark_flags
from evaltools.benchmark.command import COMMAND, request_of_flags
from evaltools.command import Command
from evaltools.commands.evaluation import request_of_task
from evaltools.commands.names import task_aliases, task_of
from evaltools.device.flags import BY_NAME, PARAMETERS, PROGRAM_OF_FILE, read_device_flags
from evaltools.errors import UsageError
from evaltools.exit_codes import INCONCLUSIVE, INTERRUPTED, NOT_MEASURED, OF_EVALUATIONS, USAGE, in_words
from evaltools.known_tasks import names_file, task_command, usable_tasks
from evaltools.locate.command import COMMAND as LOCATE
from evaltools.parameter import Parameter, did_you_mean
from evaltools.request import Request
from evaltools.request.flags import GivenFlags, parse_flags

DESCRIPTION: Final = """\
Runs evaltools {task} on devices over adb: sends model, data and program, fetches the records and makes of them the
result that this computer would have given. The flags below "devices" are about that, all others are those
of evaltools {task}.
stdout, stderr and result files are those of evaltools {task}; the result says which device did what, and how it was."""
HELP: Final = ("-h", "--help", "--help=all")

_EXIT_CODES: Final = {
    **{code: text for code, text in OF_EVALUATIONS.items() if code != INCONCLUSIVE},
    USAGE: "a flag, a file or a list is wrong, or there are several devices and none is named; nothing was measured",
    NOT_MEASURED: "no device can be used, a device was lost for good, or a configuration could not be measured there",
    INTERRUPTED: "interrupted: what ran on devices is ended, and there are no figures; with --run_dir, evaltools "
    "resume goes on",
}


def parse(word: str, rest: Sequence[str], folder: Path | None = None) -> Request:
    """The request that a command line for devices makes.

    Relative paths start at ``folder``, by default at the working directory.

    Raises :class:`UsageError` for flags that are wrong.
    """
    asked = command_on_devices(word)
    if asked is COMMAND:
        benchmark_flags.refuse_native_flags(rest)
    words = [*rest, *program_of(rest)]
    groups: dict[str, Sequence[Parameter]] = {"devices": PARAMETERS}
    groups |= {title: [each for each in own if each.name not in BY_NAME] for title, own in asked.groups.items()}
    if any(word in HELP for word in rest):
        groups = _with_effect(groups)
    flags = parse_flags(f"device run {word}", DESCRIPTION.format(task=word), in_words(_EXIT_CODES), groups, words)
    return _read_request(asked, flags, ("evaltools", "device", "run", word, *rest), folder or Path.cwd())


def program_of(words: Sequence[str]) -> list[str]:
    """The flag that says which program runs on devices, where the file that is given for it says so already.

    >>> program_of(["--native_binary=run_eval", "m.tflite"]), program_of(["--device_program=app", "--app_apk", "a.apk"])
    (['--device_program=native'], [])
    """
    names = {word.partition("=")[0].removeprefix("--").replace("-", "_") for word in words if word.startswith("--")}
    if "device_program" in names:
        return []
    return [f"--device_program={program}" for name, program in PROGRAM_OF_FILE.items() if name in names][:1]


def command_on_devices(word: str) -> Command:
    """The command that is typed like that; raises :class:`UsageError` for one that devices cannot run."""
    if word == COMMAND.words:
        return COMMAND
    if word == LOCATE.words:
        raise UsageError(
            "a search runs from here: evaltools locate MODEL.tflite --at=adb:SERIAL "
            "--native_binary=PATH/benchmark_model; on a board with Python, run evaltools locate on the board itself"
        )
    task = word if names_file(word) else task_of(word)
    if task is None:
        known = [*tasks_on_devices(), *task_aliases(), COMMAND.words]
        hint = did_you_mean(word, known)
        raise UsageError(
            f"{word!r} is not a task; give one of {', '.join(known)} first.{hint} See evaltools device run --help"
        )
    return task_command(task)


def _read_request(asked: Command, flags: GivenFlags, command: Sequence[str], folder: Path) -> Request:
    task_flags = GivenFlags.typed([pair for pair in flags.given if pair[0] not in BY_NAME], asked.parameters)
    _refuse(task_flags)
    devices = GivenFlags.typed([pair for pair in flags.given if pair[0] in BY_NAME], BY_NAME).options()
    if folder == Path.cwd():
        read_device_flags(devices)
    native_tool = devices.text("device_program") != "evaltools"
    if asked is COMMAND:
        request = request_of_flags(task_flags, command, folder, native_tool)
    else:
        if native_tool:
            raise UsageError(
                f"--device_program={devices.text('device_program')} can only benchmark; a phone runs {command[3]} by "
                f"evaltools {asked.words} --at=adb:SERIAL --native_binary=PATH/benchmark_model"
            )
        request = request_of_task(task_command(asked.name), task_flags, command, folder)
    return replace(request, devices=devices)


def tasks_on_devices() -> dict[str, str]:
    """The commands of the tasks that can run on devices, with their summaries."""
    return {task.words: task.summary for task in usable_tasks()}


def _with_effect(groups: Mapping[str, Sequence[Parameter]]) -> dict[str, Sequence[Parameter]]:
    """The flags that ``--help`` lists.

    The others are parsed, too, so that a message can say why devices refuse them.
    """
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

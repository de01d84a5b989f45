"""``evaltools device``: phones and boards over adb; and ``evaltools device run TASK``, with the same result as here."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Final

from evaltools.adb.store import DEFAULT_ROOT
from evaltools.cli.shared.streams import complain, say, say_wrapped
from evaltools.device.flags import ADB, ALL, CHOICE_OF_DEVICES, read_root, read_serials
from evaltools.errors import UsageError
from evaltools.exit_codes import NOT_MEASURED, NOT_WRITTEN, OK, USAGE, in_words
from evaltools.parameter import Parameter, did_you_mean
from evaltools.report.files.output_file import planned_outputs, require_output_file, write_file
from evaltools.request.flags import parse_flags

_HELP: Final = ("-h", "--help", "--help=all", "help")
_NO_DEVICE: Final = "or run adb connect HOST:PORT"


def run(arguments: list[str]) -> int:
    """Run one action; returns the exit code."""
    if not arguments:
        complain(f"evaltools: missing: the action of evaltools device\n{_help_text()}")
        return USAGE
    name, rest = arguments[0], arguments[1:]
    if name in _HELP:
        return OK if say_wrapped(_help_text()) else NOT_WRITTEN
    if name not in ACTIONS:
        hint, known = did_you_mean(name, ACTIONS), ", ".join(ACTIONS)
        raise UsageError(f"{name!r} is not an action of evaltools device; give one of {known} first.{hint}")
    act, _ = ACTIONS[name]
    return act(rest)


LIST_PARAMETERS: Final = (
    Parameter("serials", "Serial numbers with commas between, or all.", default="all", about="execution"),
    ADB,
    Parameter(
        "output_file_path",
        "JSON file with everything that was found.",
        role="output_file",
        about="result",
        short="output",
    ),
)


def list_devices(arguments: list[str]) -> int:
    """Print which devices can be used, what they are, and what to do for the others; returns the exit code."""
    description = """\
Which devices adb sees, what each one is and how it is doing: SoC, Android, CPUs, battery, temperatures, space, Python.
What a device does not say stays open. Devices that cannot be used are listed with what to do.
adb's own variables (ADB_SERVER_SOCKET, ANDROID_ADB_SERVER_PORT ...) are respected. stdout: the devices."""
    codes = {
        OK: "at least one device can be used",
        USAGE: "a flag is wrong",
        NOT_MEASURED: "no device can be used, or there is no adb",
        NOT_WRITTEN: "",
    }
    flags = parse_flags("device list", description, in_words(codes), {"flags": LIST_PARAMETERS}, arguments).options()
    serials = read_serials(flags.text("serials"))
    flags.path("adb")
    files = planned_outputs(flags, ["output_file_path"], [], "the findings are")
    import msgspec

    from evaltools.adb.client import Adb
    from evaltools.adb.facts import find_devices
    from evaltools.cli.shared.terminal import text_for_stdout
    from evaltools.extensions import package_version
    from evaltools.report.page.screens import print_devices
    from evaltools.result.device import DeviceList

    adb = Adb(flags.text("adb"))
    found = DeviceList(package_version("evaltools"), adb.path, find_devices(adb, serials))
    for path in files.values():
        write_file(path, msgspec.json.format(msgspec.json.encode(found), indent=1) + b"\n")
    is_written = say(text_for_stdout(partial(print_devices, found)))
    if all(finding.facts is None for finding in found.devices):
        step = (
            "stdout says what to do for each" if found.devices else f"plug one in and allow USB debugging, {_NO_DEVICE}"
        )
        complain(f"evaltools: no device can be used; {step}")
        return NOT_MEASURED
    return OK if is_written else NOT_WRITTEN


CLEAN_PARAMETERS: Final = (
    *CHOICE_OF_DEVICES,
    Parameter("device_folder", "The folder to delete, as given to evaltools device run.", default=DEFAULT_ROOT),
    Parameter("force", "Delete the files of a run that goes on, too, and end it.", default=False),
)


def clean(arguments: list[str]) -> int:
    """Delete what runs have kept on devices; returns the exit code."""
    description = """\
Deletes what evaltools device run has kept on devices for the next run: models, data and programs. What an earlier run
left running there is ended first; a folder that a run uses now is left as it is, unless --force says otherwise. Nothing
else in the folder is touched. stdout: a line per device."""
    codes = {
        OK: "everything is deleted",
        USAGE: "a flag is wrong",
        NOT_MEASURED: "a device cannot be used, or something cannot be deleted there",
        NOT_WRITTEN: "",
    }
    flags = parse_flags("device clean", description, in_words(codes), {"flags": CLEAN_PARAMETERS}, arguments).options()
    root = read_root(flags.text("device_folder"))
    serials = read_serials(flags.text("serials")) if "serials" in flags else ()
    flags.path("adb")
    from evaltools.adb.client import Adb, DeviceError, Link
    from evaltools.adb.store import DeviceFolder

    adb = Adb(flags.text("adb"))
    if not serials:
        every = flags.text("serials") == ALL
        serials = tuple(adb.devices()) if every else (adb.choose(),)
    is_clean, is_written = bool(serials), True
    for serial in serials:
        try:
            folder, size = DeviceFolder(Link(adb, serial), root, flags.is_on("force")), 0
            if folder.is_there():
                with folder:
                    size = folder.clear()
        except DeviceError as error:
            complain(f"evaltools: {error}")
            is_clean = False
        else:
            done = f"{root} deleted, {size} KiB" if size else "nothing there"
            is_written = say_wrapped(f"{serial}: {done}") and is_written
    if not serials:
        complain(f"evaltools: no device is connected; plug one in, {_NO_DEVICE}")
    if not is_clean:
        return NOT_MEASURED
    return OK if is_written else NOT_WRITTEN


PARAMS_FILE: Final = Parameter(
    "output_file_path",
    "The file to write; the app looks for the name benchmark_params.json.",
    default="benchmark_params.json",
    role="output_file",
    about="result",
    short="output",
)


def write_ios_params(arguments: list[str]) -> int:
    """Write the file of flags for TensorFlow's benchmark app on iPhones and iPads; returns the exit code."""
    from evaltools.benchmark import flags as benchmark_flags
    from evaltools.benchmark.command import GROUPS, request_of_flags
    from evaltools.benchmark.ios import ios_params
    from evaltools.model import read_model

    description = """\
Writes benchmark_params.json for TensorFlow's benchmark app for iOS, which has no command line: one model with one
configuration, in the flags of evaltools benchmark; those that the app does not know are refused by name. It starts
nothing and needs no phone.
What the app prints is read by evaltools convert ios-log."""
    codes = {OK: "the file is written", USAGE: "a flag is wrong, or one that the app does not know", NOT_WRITTEN: ""}
    benchmark_flags.refuse_native_flags(arguments)
    own = {title: tuple(each for each in group if each.name != PARAMS_FILE.name) for title, group in GROUPS.items()}
    groups = {"the file": (PARAMS_FILE,), **own}
    given = parse_flags("device ios-params MODEL.tflite", description, in_words(codes), groups, arguments)
    request = request_of_flags(given, ["evaltools", "device", "ios-params", *arguments])
    params, model = ios_params(request), Path(request.options.texts("graph")[0])
    read_model(model)
    output = Path(given.text("output_file_path"))
    require_output_file(output, "--output_file_path", [model])
    write_file(output, json.dumps(params, indent=2).encode() + b"\n")
    complain(
        f"{output}: {len(params)} flags. Put it and {params['graph']} into benchmark_data of the app's project, and "
        "the model into Copy Bundle Resources; run it in Xcode, press its button, keep the console's text as FILE\n"
        f"next: evaltools convert ios-log FILE --graph={model} --output=result.json"
    )
    return OK


def run_task(arguments: list[str]) -> int:
    """Run one task on devices; returns the exit code."""
    from evaltools.commands.device_run import parse

    if not arguments:
        complain(f"evaltools: missing: the task of evaltools device run\n{_help_text_of_run()}")
        return USAGE
    if arguments[0] in _HELP:
        return OK if say_wrapped(_help_text_of_run()) else NOT_WRITTEN
    request = parse(arguments[0], arguments[1:])
    from evaltools.cli.device_run import carry_out_on_devices

    return carry_out_on_devices(request)


ACTIONS: Final[Mapping[str, tuple[Callable[[list[str]], int], str]]] = {
    "list": (list_devices, "Which devices can be used, what they are, what to do for the others"),
    "run": (run_task, "Run a task, or a benchmark, on devices"),
    "ios-params": (write_ios_params, "The flags of a benchmark as a file for TensorFlow's app on iOS"),
    "clean": (clean, "Delete what runs have kept on devices"),
}


def _help_text() -> str:
    return (
        "usage: evaltools device ACTION --flag=value ...\n\n"
        "Phones and boards over adb.\n\n"
        f"actions:\n{_listed({name: summary for name, (_, summary) in ACTIONS.items()}, max(map(len, ACTIONS)))}\n\n"
        "evaltools device ACTION --help lists the flags of an action."
    )


def _help_text_of_run() -> str:
    from evaltools.benchmark.command import COMMAND
    from evaltools.commands.device_run import tasks_on_devices
    from evaltools.commands.names import COMMANDS

    tasks = tasks_on_devices() | {COMMAND.words: COMMANDS[COMMAND.words].summary}
    return (
        "usage: evaltools device run TASK --flag=value ...\n\n"
        "A task on phones and boards, with the same result as here.\n\n"
        f"tasks:\n{_listed(tasks, 14)}\n\n"
        "evaltools device run TASK --help lists the flags of a task and those about devices."
    )


def _listed(summaries: Mapping[str, str], width: int) -> str:
    return "\n".join(f"  {name:<{width}}  {summary}" for name, summary in summaries.items())

"""``evaltools device list``: which devices can be used, what they are, and what to do for the others."""

from __future__ import annotations

from functools import partial
from typing import Final

from evaltools.cli.shared.streams import complain, say
from evaltools.device.flags import ADB, read_serials
from evaltools.exit_codes import NOT_MEASURED, NOT_WRITTEN, OK
from evaltools.parameter import Parameter
from evaltools.report.files.output_file import planned_outputs, write_file
from evaltools.request.flags import parse_flags

DESCRIPTION: Final = """\
Which devices adb sees, what each one is and how it is doing: SoC, Android, CPUs, battery, temperatures, space, Python.
What a device does not say stays open. Devices that cannot be used are listed with what to do.
adb's own variables (ADB_SERVER_SOCKET, ANDROID_ADB_SERVER_PORT ...) are respected. stdout: the devices."""
PARAMETERS: Final = (
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
EXIT_CODES: Final = """\
exit codes:
  0  at least one device can be used
  2  a flag is wrong
  3  no device can be used, or there is no adb
  5  the findings could not be written"""


def run(arguments: list[str]) -> int:
    """Print the devices; returns the exit code."""
    flags = parse_flags("device list", DESCRIPTION, EXIT_CODES, {"flags": PARAMETERS}, arguments).options()
    serials = read_serials(flags.text("serials"))
    flags.path("adb")
    files = planned_outputs(flags, ["output_file_path"], [], "the findings are")
    from importlib.metadata import version

    import msgspec

    from evaltools.cli.shared.terminal import text_for_stdout
    from evaltools.device.adb import Adb
    from evaltools.device.facts import find_devices
    from evaltools.report.page.screens import print_devices
    from evaltools.result.device import DeviceList

    adb = Adb(flags.text("adb"))
    found = DeviceList(version("evaltools"), adb.path, find_devices(adb, serials))
    for path in files.values():
        write_file(path, msgspec.json.format(msgspec.json.encode(found), indent=1) + b"\n")
    is_written = say(text_for_stdout(partial(print_devices, found)))
    if all(finding.facts is None for finding in found.devices):
        complain(
            "evaltools: no device can be used; plug one in and allow USB debugging, or run adb connect HOST:PORT"
            if not found.devices
            else "evaltools: no device can be used; stdout says what to do for each"
        )
        return NOT_MEASURED
    return OK if is_written else NOT_WRITTEN

"""``evaltools device list``: which devices can be used, what they are, and what to do for the others."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Final

from evaltools.cli.shared.streams import complain, say
from evaltools.errors import UsageError
from evaltools.exit_codes import NOT_MEASURED, NOT_WRITTEN, OK
from evaltools.parameter import Parameter
from evaltools.report.files.output_file import require_writable, write_file
from evaltools.request import Options
from evaltools.request.flags import parse_flags

DESCRIPTION: Final = """\
Which devices adb sees, what each one is and how it is doing: SoC, Android, CPUs, battery, temperatures, space, Python.
What a device does not say stays open. Devices that cannot be used are listed with what to do.
adb's own variables (ADB_SERVER_SOCKET, ANDROID_ADB_SERVER_PORT ...) are respected. stdout: the devices."""
ADB_PARAMETERS: Final = (
    Parameter("adb", "The adb binary. Without it: the variable ADB, then PATH.", role="program", about="execution"),
    Parameter(
        "adb_port", "Port of the adb server, 1 to 65535; 0: the one of adb's variables.", default=0, about="execution"
    ),
)
CHOICE_OF_DEVICES: Final = (
    Parameter(
        "serials",
        "Serial numbers with commas between, or all. Without it: ANDROID_SERIAL, else the only device.",
        about="execution",
    ),
    *ADB_PARAMETERS,
)
"""The flags of commands that do something on devices."""
PARAMETERS: Final = (
    Parameter("serials", "Serial numbers with commas between, or all.", default="all", about="execution"),
    *ADB_PARAMETERS,
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
ALL: Final = "all"
_FLAG: Final = "--output_file_path"
_HIGHEST_PORT: Final = 65535


def run(arguments: list[str]) -> int:
    """Print the devices; returns the exit code."""
    flags = parse_flags("device list", DESCRIPTION, EXIT_CODES, {"flags": PARAMETERS}, arguments).options()
    serials = read_serials(flags.text("serials"))
    port = read_port(flags)
    flags.path("adb")
    output = flags.path("output_file_path")
    if output is not None:
        _require_output(output)
    return _list_devices(flags, serials, port, output)


def read_serials(text: str) -> tuple[str, ...]:
    """The serial numbers named, each once; none for ``all``. Raises :class:`UsageError` for an empty one.

    >>> read_serials("R5, 10.0.0.2:5555,R5"), read_serials("all")
    (('R5', '10.0.0.2:5555'), ())
    """
    if text == ALL:
        return ()
    names = [name.strip() for name in text.split(",")]
    if "" in names or ALL in names:
        raise UsageError(f"--serials={text}: give serial numbers with commas between, or all; adb devices lists them")
    return tuple(dict.fromkeys(names))


def read_port(flags: Options) -> int | None:
    """The port of the adb server, None where adb's variables say it; raises :class:`UsageError` for what is none."""
    port = flags.number("adb_port")
    if not 0 <= port <= _HIGHEST_PORT:
        raise UsageError(f"--adb_port={port}: no port; give 1 to {_HIGHEST_PORT}, or leave the flag out")
    return port or None


def _require_output(output: Path) -> None:
    if output.suffix.lower() != ".json":
        raise UsageError(f"{_FLAG}={output}: the findings are JSON; give a name that ends in .json")
    require_writable(output, _FLAG)


def _list_devices(flags: Options, serials: tuple[str, ...], port: int | None, output: Path | None) -> int:
    from importlib.metadata import version

    import msgspec

    from evaltools.cli.shared.terminal import text_for_stdout
    from evaltools.device.adb.adb import Adb
    from evaltools.device.adb.found import find_devices
    from evaltools.report.tables.device import print_devices
    from evaltools.result.device import DeviceList

    adb = Adb(flags.text("adb"), port)
    found = DeviceList(version("evaltools"), adb.path, find_devices(adb, serials))
    if output is not None:
        write_file(output, msgspec.json.format(msgspec.json.encode(found), indent=1) + b"\n")
    is_written = say(text_for_stdout(partial(print_devices, found)))
    if all(finding.facts is None for finding in found.devices):
        complain(
            "evaltools: no device can be used; plug one in and allow USB debugging, or run adb connect HOST:PORT"
            if not found.devices
            else "evaltools: no device can be used; stdout says what to do for each"
        )
        return NOT_MEASURED
    return OK if is_written else NOT_WRITTEN

"""``evaltools device clean``: delete what runs have kept on devices."""

from __future__ import annotations

from typing import Final

from evaltools.cli.shared.streams import complain, say_wrapped
from evaltools.device.flags import ALL, CHOICE_OF_DEVICES, DEFAULT_ROOT, read_root, read_serials
from evaltools.exit_codes import NOT_MEASURED, NOT_WRITTEN, OK
from evaltools.parameter import Parameter
from evaltools.request.flags import parse_flags

DESCRIPTION: Final = """\
Deletes what evaltools device run has kept on devices for the next run: models, data and programs. What an earlier run
left running there is ended first; a folder that a run uses now is left as it is, unless --force says otherwise. Nothing
else in the folder is touched. stdout: a line per device."""
PARAMETERS: Final = (
    *CHOICE_OF_DEVICES,
    Parameter("device_folder", "The folder to delete, as given to evaltools device run.", default=DEFAULT_ROOT),
    Parameter("force", "Delete the files of a run that goes on, too, and end it.", default=False),
)
EXIT_CODES: Final = """\
exit codes:
  0  everything is deleted
  2  a flag is wrong
  3  a device cannot be used, or something cannot be deleted there
  5  stdout could not be written"""


def run(arguments: list[str]) -> int:
    """Delete the folders; returns the exit code."""
    flags = parse_flags("device clean", DESCRIPTION, EXIT_CODES, {"flags": PARAMETERS}, arguments).options()
    root = read_root(flags.text("device_folder"))
    serials = read_serials(flags.text("serials")) if "serials" in flags else ()
    flags.path("adb")
    from evaltools.device.adb import Adb, Link
    from evaltools.device.errors import DeviceError
    from evaltools.device.store import DeviceLock, clear, is_there

    adb = Adb(flags.text("adb"))
    if not serials:
        every = flags.text("serials") == ALL
        serials = tuple(adb.devices()) if every else (adb.choose(),)
    is_clean, is_written = bool(serials), True
    for serial in serials:
        try:
            link, size = Link(adb, serial), 0
            if is_there(link, root):
                with DeviceLock(link, root, flags.is_on("force")):
                    size = clear(link, root)
        except DeviceError as error:
            complain(f"evaltools: {error}")
            is_clean = False
        else:
            done = f"{root} deleted, {size} KiB" if size else "nothing there"
            is_written = say_wrapped(f"{serial}: {done}") and is_written
    if not serials:
        complain("evaltools: no device is connected; plug one in, or run adb connect HOST:PORT")
    if not is_clean:
        return NOT_MEASURED
    return OK if is_written else NOT_WRITTEN

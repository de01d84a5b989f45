"""The flags of ``evaltools device run`` about devices, beside the flags of the task that is run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final, Literal, get_args

from msgspec import Struct

from evaltools.adb.store import DEFAULT_ROOT
from evaltools.errors import UsageError
from evaltools.parameter import Parameter
from evaltools.request import Options

ProgramName = Literal["evaltools", "native", "app"]
KINDS_OF_CPUS: Final = ("big", "little")
PROGRAMS: Final[tuple[ProgramName, ...]] = get_args(ProgramName)
ALL: Final = "all"
PROGRAM_OF_FILE: Final[dict[str, ProgramName]] = {"native_binary": "native", "app_apk": "app"}
ADB: Final = Parameter(
    "adb", "The adb binary. Without it: the variable ADB, then PATH.", role="program", about="execution"
)
CHOICE_OF_DEVICES: Final = (
    Parameter(
        "serials",
        "Serial numbers with commas between, or all. Without it: ANDROID_SERIAL, else the only device.",
        about="execution",
    ),
    ADB,
)
"""The flags of commands that do something on devices."""
PARAMETERS: Final = (
    *CHOICE_OF_DEVICES,
    Parameter(
        "device_program",
        "What runs there: evaltools itself, on a device with Python; native: a TensorFlow binary, see "
        "--native_binary, which has Android's GPU, NNAPI and Hexagon; app: its benchmark app, which has them too. "
        "Without it: native with --native_binary, app with --app_apk, else evaltools.",
        default="evaltools",
        choices=PROGRAMS,
        about="run",
    ),
    Parameter(
        "device_python",
        "Python, a path on the device. Without it: python3.",
        about="execution",
        only_with=("device_program=evaltools",),
    ),
    Parameter(
        "device_wheels",
        "A folder here with wheels for the device's ABI and Python: the packages that its Python lacks.",
        role="input_folder",
        about="execution",
        only_with=("device_program=evaltools",),
    ),
    Parameter(
        "native_binary",
        "The task's binary, a file here that is built for the device, for --device_program=native.",
        role="input_file",
        about="run",
        only_with=("device_program=native",),
    ),
    Parameter(
        "device_libraries",
        "A folder here with libraries that are needed there, as those of an NPU's vendor. It is sent, and "
        "LD_LIBRARY_PATH and ADSP_LIBRARY_PATH name it there; flags of NPUs may name it, too.",
        role="input_folder",
        about="run",
        only_with=("device_program=evaltools|native",),
    ),
    Parameter(
        "app_apk",
        "The benchmark app, a file here that is installed first, for --device_program=app.",
        role="input_file",
        about="run",
        only_with=("device_program=app",),
    ),
    Parameter(
        "app_package",
        "The benchmark app's package.",
        default="org.tensorflow.lite.benchmark",
        about="run",
        only_with=("device_program=app",),
    ),
    Parameter(
        "app_activity",
        "The benchmark app's activity.",
        default=".BenchmarkModelActivity",
        about="run",
        only_with=("device_program=app",),
    ),
    Parameter("device_folder", "Folder on the device for everything of evaltools.", default=DEFAULT_ROOT, about="run"),
    Parameter(
        "include_host",
        "This computer does everything as well.",
        default=False,
        about="run",
        only_with=("device_program=evaltools",),
    ),
    Parameter(
        "cool_down",
        "Before the work begins, wait until no temperature is above this many degrees C, up to 150; 0: do not wait.",
        default=0.0,
        about="execution",
    ),
    Parameter(
        "taskset",
        "The device's CPUs to run on: big, little, or a hexadecimal mask: f0 is 4 to 7. Empty: all.",
        about="run",
    ),
    Parameter(
        "device_patience",
        "Seconds, above 0, that a device may be away.",
        default=180.0,
        about="execution",
    ),
    Parameter(
        "device_timeout",
        "Seconds, above 0, for which a device that is there may print nothing; then what runs there counts as hanging.",
        default=3600.0,
        about="execution",
    ),
    Parameter(
        "force", "Take devices that another run uses, and end what that runs there.", default=False, about="execution"
    ),
)
_HOTTEST_C: Final = 150
BY_NAME: Final = {parameter.name: parameter for parameter in PARAMETERS}


class DeviceFlags(Struct, frozen=True):
    """How a task is run on devices. ``serials`` is empty for ``all_devices``, and for the one that adb's rules name.

    ``cool_down_c`` None: no waiting. ``takes_by_force``: devices that others use, too.
    """

    serials: tuple[str, ...]
    all_devices: bool
    adb: str
    program: ProgramName
    python: str
    wheels: tuple[Path, ...]
    native_binary: Path | None
    libraries: Path | None
    app_apk: Path | None
    app_package: str
    app_activity: str
    root: str
    include_host: bool
    cool_down_c: float | None
    taskset: str
    patience_s: float
    silence_s: float
    takes_by_force: bool

    @property
    def ends_itself_after_s(self) -> float:
        """The seconds after which what runs on a device that stays away ends itself."""
        return self.silence_s + self.patience_s


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


def read_device_flags(flags: Options) -> DeviceFlags:
    """Check the flags; raises :class:`UsageError` for values that make no sense."""
    serials = flags.text("serials") if "serials" in flags else None
    root = read_root(flags.text("device_folder"))
    for name in ("device_patience", "device_timeout"):
        if flags.real(name) <= 0:
            raise UsageError(f"--{name}={flags.real(name):g}: use a number of seconds above 0")
    cool_down = flags.real("cool_down")
    if not 0 <= cool_down <= _HOTTEST_C:
        raise UsageError(
            f"--cool_down={cool_down:g}: use degrees Celsius up to {_HOTTEST_C}, such as 35, or 0: do not wait"
        )
    return DeviceFlags(
        serials=() if serials is None else read_serials(serials),
        all_devices=serials == ALL,
        adb=str(flags.path("adb") or ""),
        program=next(name for name in PROGRAMS if name == flags.text("device_program")),
        python=flags.text("device_python"),
        wheels=_wheels(flags),
        native_binary=flags.path("native_binary"),
        libraries=flags.path("device_libraries"),
        app_apk=flags.path("app_apk"),
        app_package=flags.text("app_package"),
        app_activity=flags.text("app_activity"),
        root=root,
        include_host=flags.is_on("include_host"),
        cool_down_c=cool_down or None,
        taskset=_mask(flags.text("taskset")),
        patience_s=flags.real("device_patience"),
        silence_s=flags.real("device_timeout"),
        takes_by_force=flags.is_on("force"),
    )


def read_root(text: str) -> str:
    """The folder on a device, which must be one of evaltools' own; raises :class:`UsageError`.

    >>> read_root("/data/local/tmp/evaltools/")
    '/data/local/tmp/evaltools'
    """
    root = text.rstrip("/")
    parts = root.split("/")
    if parts[0] or len(parts) < 3 or {"", ".", ".."} & set(parts[1:]) or not root.isprintable():
        raise UsageError(f"--device_folder={text}: give an absolute path of its own on the device, as {DEFAULT_ROOT}")
    if ":" in root:
        raise UsageError(
            f"--device_folder={text}: the path has a colon, at which the search path of Python is split; give a folder "
            f"without one, as {DEFAULT_ROOT}"
        )
    return root


def _wheels(flags: Options) -> tuple[Path, ...]:
    """The wheels to send, which are unpacked into one folder.

    Those of evaltools are left aside: it is sent as it is here. Raises :class:`UsageError` for two of one package.
    """
    folder = flags.path("device_wheels")
    if folder is None:
        return ()
    found: dict[str, Path] = {}
    for wheel in sorted(folder.glob("*.whl")):
        name = re.sub(r"[-_.]+", "-", wheel.name.partition("-")[0]).lower()
        if name in found:
            raise UsageError(f"--device_wheels: {found[name]} and {wheel} are both {name}; delete the wrong one there")
        found[name] = wheel
    if not found:
        raise UsageError(f"--device_wheels={folder}: no folder with *.whl files; fill it with pip download --platform")
    return tuple(wheel for name, wheel in found.items() if name != "evaltools")


def _mask(text: str) -> str:
    """A mask as taskset takes it, hexadecimal digits, or the name of a kind of CPUs.

    >>> _mask("0xF0"), _mask("big")
    ('f0', 'big')
    """
    if text in KINDS_OF_CPUS:
        return text
    digits = text.lower().removeprefix("0x")
    if text and (not digits or digits.strip("0123456789abcdef") or not digits.strip("0")):
        raise UsageError(
            f"--taskset={text}: use big, little, or a mask of CPUs in hexadecimal digits, such as f0 for 4 to 7"
        )
    return digits

"""What ``evaltools device run`` is told about devices, as a value."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, get_args

DEFAULT_ROOT: Final = "/data/local/tmp/evaltools"
ProgramName = Literal["evaltools", "native", "app"]
PROGRAMS: Final[tuple[ProgramName, ...]] = get_args(ProgramName)


@dataclass(frozen=True)
class DeviceFlags:
    """How a task is run on devices. ``serials`` is empty for ``all_devices``, and for the one that adb's rules name.

    ``parts`` 0: as many as make sense. ``cool_down_c`` None: no waiting, else for at most ``cool_down_timeout_s``.
    ``keeps_files``: those sent stay on the device.
    """

    serials: tuple[str, ...]
    all_devices: bool
    adb: str
    port: int | None
    program: ProgramName
    python: str
    wheels: tuple[Path, ...]
    native_binary: Path | None
    app_apk: Path | None
    app_package: str
    app_activity: str
    app_traces: bool
    root: str
    split: str
    include_host: bool
    parts: int
    cool_down_c: float | None
    cool_down_timeout_s: float
    taskset: str
    patience_s: float
    part_timeout_s: float
    keeps_files: bool

"""The processes of a run on devices, looked at over adb."""

from __future__ import annotations

import posixpath
import threading
import time
from pathlib import Path
from typing import Final

from evaltools.capture.usage import Sample, UsedOverTime
from evaltools.device.adb.adb import Adb
from evaltools.device.adb.errors import DeviceError
from evaltools.device.adb.states import USABLE
from evaltools.device.adb.usage import usage_of_runs
from evaltools.device.files.store import RUNS
from evaltools.device.run.flags import DeviceFlags, read_device_flags
from evaltools.errors import EvaltoolsError
from evaltools.request import Options

_SECONDS_BETWEEN_SAMPLES: Final = 0.5
_FIRST_NUMBER: Final = 10_000_000
"""Processes of devices are numbered in a trace from here on, so that they are told from those of this computer."""


class DeviceSampler:
    """Looks at the processes of runs on one device, in a thread of its own, until it is stopped."""

    def __init__(self, adb: Adb, serial: str, root: str, number: int) -> None:
        self.serial: Final = serial
        self.used: dict[int, UsedOverTime] = {}
        self.failure: DeviceError | None = None
        self._adb = adb
        self._runs = posixpath.join(root, RUNS)
        self._first_number = _FIRST_NUMBER * (number + 1)
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._watch, name=f"capture of {serial}", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End, after the answer that is waited for."""
        self._end.set()
        self._thread.join()

    def sample(self) -> None:
        """Ask once."""
        usage = usage_of_runs(self._adb, self.serial, self._runs)
        for process in usage.processes:
            number = self._first_number + process.process_id
            name = f"{self.serial}: {_program(process.command)} ({process.process_id})"
            used = self.used.setdefault(number, UsedOverTime(number, name, self.serial))
            used.samples.append(Sample(usage.moment_s, process.memory_mb, process.processor_s, process.threads))

    def _watch(self) -> None:
        while True:
            start = time.monotonic()
            try:
                self.sample()
            except DeviceError as error:
                self.failure = error
                return
            if self._end.wait(max(0.0, _SECONDS_BETWEEN_SAMPLES - (time.monotonic() - start))):
                return


def samplers_of(devices: Options) -> tuple[list[DeviceSampler], list[str]]:
    """One for each device of a run that can be asked, by its options, and notes about those that cannot."""
    try:
        flags = read_device_flags(devices)
        adb = Adb(flags.adb, flags.port)
        serials = _serials(adb, flags)
    except EvaltoolsError as error:
        return [], [f"the devices are not seen: {error}"]
    return [DeviceSampler(adb, serial, flags.root, number) for number, serial in enumerate(serials)], []


def _serials(adb: Adb, flags: DeviceFlags) -> list[str]:
    if flags.serials:
        return list(flags.serials)
    if flags.all_devices:
        return [device.serial for device in adb.devices() if device.state == USABLE]
    return [adb.choose()]


def _program(command: str) -> str:
    return Path(command.partition(" ")[0]).name or "process"

"""The devices of a run: choosing, locking, cleaning them, and the same work on each; what one loses, it does again."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Final, Generic, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace
from rich.console import Console

from evaltools.device.adb import Adb, last_lines
from evaltools.device.device import Device
from evaltools.device.errors import MAY_PASS, CommandFailed, DeviceError, DeviceStopped
from evaltools.device.facts import find_devices, masks_of_cpus
from evaltools.device.flags import KINDS_OF_CPUS, DeviceFlags, ProgramName
from evaltools.device.work import WorkDone
from evaltools.exit_codes import USAGE
from evaltools.result.device import DeviceLeftOut, DeviceRun, DeviceWork, LostAttempt
from evaltools.text import printable


class DevicesUsed:
    """The devices that a run may use; a context, at whose end nothing runs there any more, or is said to.

    Making it raises :class:`DeviceError` where there is no device, or one that was named cannot be used. Entering it
    takes the lock of the folder on each device, which raises :class:`DeviceError` where one that was named is in use.

    Attributes:
        left_out: the devices that cannot be used, where all were asked for
        stop: set to have everything on the devices ended
    """

    def __init__(self, flags: DeviceFlags, console: Console) -> None:
        self.stop = threading.Event()
        self.left_out: list[DeviceLeftOut] = []
        self._devices: dict[str, Device] = {}
        self._flags = flags
        self._console = console
        self._held = ExitStack()
        adb = Adb(flags.adb)
        wanted = flags.serials
        if not flags.all_devices and not wanted:
            wanted = (adb.choose(),)
        for serial in wanted:
            adb.connect(serial)
        for found in find_devices(adb, wanted):
            facts, problem = found.facts, found.problem
            if facts is not None and flags.taskset in KINDS_OF_CPUS:
                has_kinds = masks_of_cpus(facts.conditions.cpu_frequencies)
                problem = "" if has_kinds else f"{found.serial}: it does not say which CPUs are {flags.taskset}"
            if facts is None or problem:
                self._leave_out(DeviceError(problem, found.serial))
            else:
                self._devices[found.serial] = Device(adb, facts, flags, self.stop, console.print)
        self._require_any()

    @property
    def serials(self) -> tuple[str, ...]:
        """The serial numbers of the devices that can be used."""
        return tuple(self._devices)

    def __getitem__(self, serial: str) -> Device:
        """The device with this serial number."""
        return self._devices[serial]

    def __enter__(self) -> DevicesUsed:
        with ExitStack() as held:
            for serial, device in list(self._devices.items()):
                try:
                    held.enter_context(device.lock)
                except DeviceError as error:
                    self._leave_out(error)
                    del self._devices[serial]
            self._require_any()
            self._held = held.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._held:
            for device in self._devices.values():
                device.leave()

    def _leave_out(self, error: DeviceError) -> None:
        """Go on without a device where all were asked for; else raise its error."""
        if not self._flags.all_devices:
            raise error
        self.left_out.append(DeviceLeftOut(error.serial, str(error)))
        self._console.print(f"left out: {error}")

    def _require_any(self) -> None:
        if not self._devices:
            reasons = "".join(f"\n  {entry.reason}" for entry in self.left_out)
            raise DeviceError(f"no device can be used; evaltools device list says what to do{reasons}")


Done = TypeVar("Done")

MOST_ATTEMPTS: Final = 3
"""A device that lost its work so often is left out."""
_WORTH_ANOTHER_TRY: Final = (*MAY_PASS, CommandFailed)
_PROGRESS: Final = '{"phase"'
"""How lines about progress begin."""
_LOOK_S: Final = 0.2


class Outcome(Struct, Generic[Done]):
    """What devices did, by serial number, and the devices that were left out."""

    done: dict[str, Done] = field(default_factory=dict)
    left_out: list[DeviceLeftOut] = field(default_factory=list)


def do_on_each(
    devices: DevicesUsed,
    serials: Sequence[str],
    do: Callable[[Device, Sequence[LostAttempt]], Done],
    console: Console,
) -> Outcome[Done]:
    """Call ``do`` for each of these devices, in a thread of its own, as far as the devices can.

    ``do`` is given the attempts that the device has lost so far, and raises :class:`DeviceError` where it did not
    finish. Raises any other error of it, and :class:`KeyboardInterrupt`; before that it asks the devices to stop, and
    waits for them.
    """
    outcome: Outcome[Done] = Outcome(left_out=list(devices.left_out))
    errors: list[BaseException] = []

    def work(device: Device) -> None:
        try:
            _do_on(device, do, outcome, console)
        except DeviceStopped:
            pass
        except BaseException as error:
            errors.append(error)
            devices.stop.set()

    threads = [threading.Thread(target=work, args=(devices[serial],), name=serial) for serial in serials]
    try:
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            time.sleep(_LOOK_S)
    finally:
        devices.stop.set()
        for thread in threads:
            if thread.is_alive():
                thread.join()
    if errors:
        raise errors[0]
    return outcome


def _do_on(
    device: Device,
    do: Callable[[Device, Sequence[LostAttempt]], Done],
    outcome: Outcome[Done],
    console: Console,
) -> None:
    """Call ``do`` until it gives something, or the device is left out."""
    lost: list[LostAttempt] = []
    while True:
        started = time.monotonic()
        try:
            outcome.done[device.serial] = do(device, lost)
            return
        except DeviceStopped:
            raise
        except DeviceError as error:
            attempt = LostAttempt(error.kind, str(error), round(time.monotonic() - started, 3))
            lost.append(attempt)
            console.print(f"{printable(attempt.reason)} [{attempt.kind}]", markup=False)
            may_pass = isinstance(error, _WORTH_ANOTHER_TRY) and len(lost) < MOST_ATTEMPTS
            if not (may_pass and device.is_back()):
                outcome.left_out.append(DeviceLeftOut(device.serial, attempt.reason))
                return


def require_any(done: Collection[str], left_out: Sequence[DeviceLeftOut], step: str = "") -> None:
    """Raise :class:`DeviceError` where no device did its work; ``step`` ends the message."""
    if not done:
        raise DeviceError(f"no device did its work: {'; '.join(dict.fromkeys(each.reason for each in left_out))}{step}")


def run_on_each(
    do: Callable[[Device], tuple[DeviceWork, Done]], program: ProgramName, devices: DevicesUsed, console: Console
) -> tuple[Mapping[str, Done], DeviceRun]:
    """What every device gives, by serial number, with what the result says of devices; ``do`` gives both for one.

    Raises :class:`DeviceError` where no device did its work.
    """

    def do_and_note(device: Device, lost: Sequence[LostAttempt]) -> tuple[DeviceWork, Done]:
        work, given = do(device)
        return replace(work, lost=tuple(lost)), given

    outcome = do_on_each(devices, devices.serials, do_and_note, console)
    require_any(outcome.done, outcome.left_out)
    serials = [serial for serial in devices.serials if serial in outcome.done]
    run = DeviceRun(
        program=program,
        devices=tuple(devices[serial].facts for serial in serials),
        work=tuple(outcome.done[serial][0] for serial in serials),
        left_out=tuple(outcome.left_out),
    )
    return {serial: outcome.done[serial][1] for serial in serials}, run


def require_answer(done: WorkDone, good_codes: Collection[int], file: str, what: str) -> None:
    """Raise where evaltools on a device did not leave its ``file``: it refused the command, or it failed."""
    serial, quoted = done.work.serial, last_lines(done.err, leave_out=_PROGRESS)
    if done.code == USAGE:
        raise DeviceError(f"{serial}: evaltools refused the command there: {quoted}", serial)
    if done.code not in good_codes or not (done.folder / file).is_file():
        raise CommandFailed(
            f"{serial}: evaltools ended there with exit code {done.code} and no {what}; it printed last: {quoted}",
            serial,
        )

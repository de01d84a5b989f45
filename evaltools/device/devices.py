"""The devices of a run: choosing, locking, cleaning them, and the same work on each; what one loses, it does again."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Final, Generic, TypeVar

from msgspec import Struct, field
from rich.console import Console

from evaltools.device.adb import Adb
from evaltools.device.device import Device
from evaltools.device.errors import MAY_PASS, CommandFailed, DeviceError, DeviceStopped
from evaltools.device.facts import find_devices, masks_of_cpus
from evaltools.device.flags import KINDS_OF_CPUS, DeviceFlags, ProgramName
from evaltools.result.device import DeviceFacts, DeviceFinding, DeviceLeftOut, DeviceRun, DeviceWork, LostAttempt
from evaltools.text import printable


class DevicesUsed(Struct):
    """The devices that a run may use, and those that cannot be used, where all were asked for.

    ``stop`` is set to have everything on the devices ended.
    """

    by_serial: dict[str, Device] = field(default_factory=dict)
    left_out: list[DeviceLeftOut] = field(default_factory=list)
    stop: threading.Event = field(default_factory=threading.Event)


@contextmanager
def devices_used(flags: DeviceFlags, console: Console) -> Iterator[DevicesUsed]:
    """The devices that flags ask for, with the lock of the folder on each; a context.

    At its end nothing runs there any more, or is said to. Raises :class:`DeviceError` where there is no device, or one
    that was named cannot be used.
    """
    adb, used = Adb(flags.adb), DevicesUsed()
    wanted = flags.serials
    if not flags.all_devices and not wanted:
        wanted = (adb.choose(),)
    for serial in wanted:
        adb.connect(serial)
    with ExitStack() as held:
        for found in find_devices(adb, wanted):
            try:
                device = Device(adb, _usable(found, flags), flags, used.stop, console.print)
                held.enter_context(device.lock)
            except DeviceError as error:
                if not flags.all_devices:
                    raise
                used.left_out.append(DeviceLeftOut(error.serial, str(error)))
                console.print(f"left out: {error}")
            else:
                held.callback(device.leave)
                used.by_serial[found.serial] = device
        if not used.by_serial:
            reasons = "".join(f"\n  {entry.reason}" for entry in used.left_out)
            raise DeviceError(f"no device can be used; evaltools device list says what to do{reasons}")
        yield used


def _usable(found: DeviceFinding, flags: DeviceFlags) -> DeviceFacts:
    """The facts of a device; raises :class:`DeviceError` for one that cannot be used."""
    if found.facts is None:
        raise DeviceError(found.problem, found.serial)
    if flags.taskset in KINDS_OF_CPUS and not masks_of_cpus(found.facts.conditions.cpu_frequencies):
        raise DeviceError(f"{found.serial}: it does not say which CPUs are {flags.taskset}", found.serial)
    return found.facts


Done = TypeVar("Done")

MOST_ATTEMPTS: Final = 3
"""A device that lost its work so often is left out."""
_WORTH_ANOTHER_TRY: Final = (*MAY_PASS, CommandFailed)
_LOOK_S: Final = 0.2


class Outcome(Struct, Generic[Done]):
    """What devices did, by serial number, and the devices that were left out."""

    done: dict[str, Done] = field(default_factory=dict)
    left_out: list[DeviceLeftOut] = field(default_factory=list)


def do_on_each(
    devices: DevicesUsed, serials: Sequence[str], do: Callable[[Device], Done], console: Console
) -> Outcome[Done]:
    """Call ``do`` for each of these devices, in a thread of its own, as far as the devices can.

    ``do`` raises :class:`DeviceError` where the device did not finish. Raises any other error of it, and
    :class:`KeyboardInterrupt`; before that it asks the devices to stop, and waits for them.
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

    threads = [threading.Thread(target=work, args=(devices.by_serial[serial],), name=serial) for serial in serials]
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


def _do_on(device: Device, do: Callable[[Device], Done], outcome: Outcome[Done], console: Console) -> None:
    """Call ``do`` until it gives something, or the device is left out."""
    device.lost = []
    while True:
        started = time.monotonic()
        try:
            outcome.done[device.serial] = do(device)
            return
        except DeviceStopped:
            raise
        except DeviceError as error:
            attempt = LostAttempt(error.kind, str(error), round(time.monotonic() - started, 3))
            device.lost.append(attempt)
            console.print(f"{printable(attempt.reason)} [{attempt.kind}]", markup=False)
            may_pass = isinstance(error, _WORTH_ANOTHER_TRY) and len(device.lost) < MOST_ATTEMPTS
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
    outcome = do_on_each(devices, [*devices.by_serial], do, console)
    require_any(outcome.done, outcome.left_out)
    done = {serial: device for serial, device in devices.by_serial.items() if serial in outcome.done}
    run = DeviceRun(
        program=program,
        devices=tuple(device.facts for device in done.values()),
        work=tuple(outcome.done[serial][0] for serial in done),
        left_out=tuple(outcome.left_out),
    )
    return {serial: outcome.done[serial][1] for serial in done}, run

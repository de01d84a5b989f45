"""``--at=adb:SERIAL``: what a native program runs, it runs on that device; with several devices, on each of them."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from evaltools.adb.client import Adb
from evaltools.configuration import NATIVE_BINARY, Configuration
from evaltools.errors import UsageError
from evaltools.request import Request
from evaltools.runs.places import ADB, AT

_STEP: Final = f"add --{NATIVE_BINARY}=PATH/benchmark_model, Google's program for the device's processor"


def on_devices(request: Request) -> Request:
    """The request whose configurations with a native program name the devices of ``--at``, which is left out then.

    A configuration that names its device keeps it. Raises :class:`UsageError` for devices beside other places, and
    where no configuration has a program, and :class:`~evaltools.adb.client.DeviceError` where one is not there.
    """
    texts = dict.fromkeys(request.options.texts(AT))
    serials = [text.partition(":")[2] for text in texts if text.partition(":")[0] == ADB]
    if not serials:
        return request
    if len(serials) < len(texts):
        raise UsageError(f"--{AT}: devices and other places are not compared in one run; give one command for each")
    if not any(each.native_binary for each in request.configurations):
        board = "on a board with Python, evaltools device run --serials=SERIAL runs evaltools itself"
        raise UsageError(f"--{AT}={next(iter(texts))} starts a program on the device: {_STEP}; {board}")
    serials = [serial or Adb().choose() for serial in serials]
    tests = [each for test in request.tests for each in _on_each(test, serials)]
    reference = request.reference
    if reference is not None and reference.native_binary and not reference.device:
        reference = replace(reference, device=serials[0])
    return replace(request.without(AT), reference=reference, tests=tuple(tests))


def _on_each(test: Configuration, serials: list[str]) -> list[Configuration]:
    if not test.native_binary or test.device:
        return [test]
    if len(serials) == 1:
        return [replace(test, device=serials[0])]
    return [replace(test, name=f"{test.name}@{serial}", device=serial) for serial in serials]

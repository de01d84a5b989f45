"""Commands that answer the next question: where the model ran, and with the flags that were given."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator, Sequence
from itertools import zip_longest
from typing import Final

_ON_DEVICES: Final = ("device", "run")
_WHICH_DEVICE: Final = ("serials", "adb", "device_program")


def ran_on_devices(typed: Sequence[str]) -> bool:
    """Whether a command, as it was typed, ran on devices: nothing of it can be tried on this computer.

    >>> ran_on_devices(["evaltools", "device", "run", "diff", "m.tflite"]), ran_on_devices(["evaltools", "diff"])
    (True, False)
    """
    return tuple(typed[1:3]) == _ON_DEVICES


def stated(typed: Sequence[str], names: Collection[str]) -> Iterator[str]:
    """The flags of a typed command that have one of these names, each as one word.

    >>> list(stated(["evaltools", "diff", "--input-shape", "x:1,8", "--seed=2"], ["input_shape", "seed"]))
    ['--input_shape=x:1,8', '--seed=2']
    """
    for word, following in zip_longest(typed, typed[1:], fillvalue=""):
        name, equals, text = word.removeprefix("--").partition("=")
        name = name.replace("-", "_")
        if word.startswith("--") and name in names:
            yield f"--{name}={text if equals else following}"


def next_command(command: str, model_file: str, flags: Sequence[str], typed: Sequence[str] = ()) -> str:
    """A command about a model with a configuration, on the devices of the ``typed`` command if it was for some.

    >>> next_command("diff", "my model.tflite", ["--use_gpu=true"])
    "evaltools diff 'my model.tflite' --use_gpu=true"
    >>> next_command("diff", "m.tflite", [], ["evaltools", "device", "run", "imagenet", "--serials=1"])
    'evaltools device run diff m.tflite --serials=1'
    """
    if not ran_on_devices(typed):
        return shlex.join(["evaltools", command, model_file, *flags])
    devices = stated(typed, _WHICH_DEVICE)
    return shlex.join(["evaltools", *_ON_DEVICES, command, model_file, *flags, *devices])

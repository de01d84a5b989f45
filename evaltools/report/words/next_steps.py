"""What to do next: commands that answer the question which a result leaves open, or sentences about them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import Final

from evaltools.extensions import named
from evaltools.known_tasks import GIVEN_TO_A_SEARCH, task_command
from evaltools.result.places import fastest_on_cpu, opens_on_cpu, runs_on_cpu
from evaltools.result.result import Result, Row, next_step
from evaltools.result.section import Note

_ON_DEVICES: Final = ("device", "run")
_WHICH_DEVICE: Final = ("serials", "adb", "device_program")
SEARCH: Final = "evaltools locate "
"""How a step begins that looks for an operator."""
FOR_A_DIFFERENCE: Final = "looks for the operator that makes the difference"
"""What one does where outputs differ."""
HOW_FAST: Final = "says how fast it is in quiet, and how much memory it takes"
_DOCTOR: Final = next_step("says what runs on this machine, and what is missing for the rest", "evaltools doctor")
_BESIDE_XNNPACK: Final = next_step(
    "as well says whether it is faster than what apps use without it", '--config "xnnpack: use_xnnpack=true"'
)
_DEVICES: Final = next_step("says what the devices are, and whether they can be used", "evaltools device list")
_CRASHED: Final = ("process of this configuration died", "was ended")
"""What is said of a process that crashed or hung."""
_REFUSED: Final = ("failed to delegate", "Delegate) failed to prepare")
"""What the runtime reports where a delegate accepts an operator, and then refuses it."""
_OF_THE_MODEL: Final = ("failed to prepare", "took none of the", "unresolved custom op")
"""What is reported where the model is the reason, and not this machine."""
_FIXED_RESHAPE: Final = re.compile(
    r"num_input_elements != num_output_elements \((?P<fed>\d+) != (?P<fixed>\d+)\)\W*Node number (?P<place>\d+)"
)
"""What the runtime reports where a RESHAPE has sizes that its input does not have."""
_SETTLED: Final = ("identical", "unchanged", "equivalent", "better", "not compared", "not measured")


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


def search_command(model_file: str, row: Row, typed: Sequence[str], more: Iterable[str] = ()) -> str:
    """The search that looks into a configuration on this computer, with the inputs and at the place that were typed."""
    place = [f"--at={row.place}"] if row.place else stated(typed, ["at"])
    return next_command("locate", model_file, [*row.flags, *stated(typed, GIVEN_TO_A_SEARCH), *place, *more])


def fixed_reshape(reason: str) -> str:
    """What to do where a shape of an input meets a RESHAPE of fixed sizes; empty for all other reasons.

    >>> fixed_reshape("num_input_elements != num_output_elements (8 != 2). Node number 1 (RESHAPE)").partition(":")[0]
    '#1 RESHAPE has fixed sizes, of 2 numbers, and is fed 8'
    """
    found = _FIXED_RESHAPE.search(reason)
    if found is None:
        return ""
    return (
        f"#{found['place']} RESHAPE has fixed sizes, of {found['fixed']} numbers, and is fed {found['fed']}: export "
        "the model with -1 there, or leave the shape of the input as it is in the model"
    )


def after_evaluation(result: Result, configuration: Row) -> list[Note]:
    """What answers the question that a configuration leaves open; empty where none is.

    Where a shape does not fit the model, all rows have the one reason, and no other step leads anywhere.
    """
    unfit = next(filter(None, (fixed_reshape(row.reason) for row in result.rows)), "")
    if unfit:
        return [next_step(unfit)]
    steps = list(where_it_did_not_run(configuration, result.model.file, result.environment.command))
    if configuration.role == "reference" and configuration.status == "not measured":
        steps = [*_other_reference(result), *steps]
    verdict = configuration.verdict
    if configuration.status == "measured" and verdict is not None and (verdict.is_open or verdict.kind not in _SETTLED):
        steps += named(task_command(result.command).next_steps_at)(result, configuration)
    if _is_beside_plain_kernels_alone(result, configuration):
        steps.append(_BESIDE_XNNPACK)
    return steps


def _other_reference(result: Result) -> Iterator[Note]:
    """The reference that runs, where that of the result does not: the tested one on the CPU with the fewest flags."""
    ran = [row for row in result.rows if row.role == "test" and row.flags and opens_on_cpu(row)]
    if ran:
        simplest = min(ran, key=lambda row: len(row.flags))
        flags = " ".join(flag.removeprefix("--") for flag in simplest.flags)
        yield next_step(f'compares with what runs: "{simplest.name}"', f'--reference="{flags}"')


def how_fast(result: Result) -> Iterator[Note]:
    """Where all is settled: what measures the first tested configuration in processes of its own, or on hardware."""
    measured = [row for row in result.measured_tests if not row.is_emulated and not row.fallback]
    if measured and not result.other_models:
        command = next_command("benchmark", result.model.file, measured[0].flags, result.environment.command)
        yield next_step(HOW_FAST, command)
    elif result.measured_tests and all(row.is_emulated for row in result.measured_tests):
        yield next_step(
            "the same command with --at=adb:SERIAL in place of the emulator tries it on a phone, with times"
        )


def _is_beside_plain_kernels_alone(result: Result, configuration: Row) -> bool:
    """Whether the speed of an accelerator is known only beside kernels that no app would use in its place."""
    cpu = fastest_on_cpu(result.rows, configuration.place)
    is_on_cpu = bool(configuration.fallback) or runs_on_cpu(configuration)
    return "latency_cpu_ratio" in configuration.figures and not is_on_cpu and cpu is not None and not cpu.delegates


def where_it_did_not_run(entry: Row, model_file: str, typed: Sequence[str], more: Iterable[str] = ()) -> Iterator[Note]:
    """What says why it did not run, not all of it, or crashed; of what the ``typed`` command ran on devices, there.

    A search gets the inputs that were typed, and ``more`` flags.
    """
    on_devices = ran_on_devices(typed)
    search = search_command(model_file, entry, typed, more)
    reason = entry.reason if entry.status != "measured" and entry.runtime is None else ""
    if not on_devices and any(text in reason for text in _REFUSED):
        yield next_step("says which operator it refuses", search)
    elif entry.fallback or any(text in reason for text in (*_OF_THE_MODEL, *_REFUSED)):
        yield next_step("says what delegates take of the model, and what not", next_command("inspect", model_file, []))
    elif not on_devices and _has_crashed(entry):
        yield next_step("says in which operator it crashes", search)
    elif entry.status != "measured" and entry.runtime is None:
        yield _DEVICES if on_devices else _DOCTOR


def _has_crashed(entry: Row) -> bool:
    """Whether its process died, while the model was loaded or in a run."""
    return bool(entry.crashes) or (entry.status != "measured" and any(text in entry.reason for text in _CRASHED))

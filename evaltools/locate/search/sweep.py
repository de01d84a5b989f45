"""Other settings of the same delegate, to tell what a fault comes from: precision, threads, or what its kernels do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec import Struct

from evaltools.configuration import Configuration
from evaltools.locate.parts.part import Outcome
from evaltools.locate.search.judge import Limit
from evaltools.result.locate import SweptOption


class Setting(Struct, frozen=True):
    """A flag of a delegate with another value, and what it means."""

    flag: str
    value: str
    delegate: str
    tells: str


_SETTINGS: Final = (
    Setting("xnnpack_force_fp16", "false", "XNNPACK", "float32 instead of float16"),
    Setting("gpu_precision_loss_allowed", "false", "GPU", "float32 instead of float16"),
    Setting("num_interpreter_threads", "4", "XNNPACK", "the work is shared among four threads"),
)


def variants(tested: Configuration) -> list[tuple[Setting, Configuration]]:
    """The settings that differ from those of a configuration, each with the configuration that has it.

    >>> half = Configuration.from_text("half", "use_xnnpack=true xnnpack_force_fp16=true num_threads=4")
    >>> [setting.tells for setting, _ in variants(half)]
    ['float32 instead of float16']
    """
    names = {delegate.name for delegate in tested.delegates.requested}
    flags = dict(flag.removeprefix("--").split("=", 1) for flag in tested.to_flags())
    found = []
    for setting in _SETTINGS:
        is_other = flags.get(setting.flag, "") != setting.value
        if setting.delegate not in names or not is_other or not _is_in_force(setting, tested):
            continue
        changed = {**flags, setting.flag: setting.value}
        found.append((setting, Configuration.from_flags(tested.name, list(changed.items()))))
    return found


def _is_in_force(setting: Setting, tested: Configuration) -> bool:
    """Whether the setting is a change: a flag of precision is one only where precision is given away."""
    if setting.value != "false":
        return True
    return tested.delegates.value(setting.flag) is True


def sweep(
    tested: Configuration, outcome_of: Callable[[Configuration], Outcome], limit: Limit
) -> tuple[SweptOption, ...]:
    """Whether a part is still wrong with each other setting; those that cannot be run are left out."""
    found = []
    for setting, configuration in variants(tested):
        outcome = outcome_of(configuration)
        if outcome.ran:
            wrong = any(map(limit.beyond, outcome.outputs))
            found.append(SweptOption(f"--{setting.flag}={setting.value}", wrong, setting.tells))
    return tuple(found)

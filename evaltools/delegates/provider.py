"""What a delegate is to evaltools: a set of parameters and a statement of where it can be created."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from evaltools.delegates.parameter import Parameter, Value

LITERT: Final = "litert"
TFLITE_RUNTIME: Final = "tflite_runtime"


@dataclass(frozen=True)
class Delegate:
    """One delegate and its flags.

    ``name`` is what the native logs call it, ``key`` what ``--delegate=`` accepts (empty: not accepted there).
    ``enabled_by`` names the flag that switches it on: a boolean set to true, or a string that is not empty.
    ``common`` names the common flags that it reads. ``runtimes`` are the Python runtimes that can create it;
    ``works_in`` says in words where it runs, for the error message elsewhere. ``unsupported`` maps a flag of its own to
    the reason why those runtimes cannot honour it. ``check`` looks at all its values together and raises
    :class:`~evaltools.errors.UsageError`.
    """

    name: str
    key: str
    enabled_by: str
    parameters: tuple[Parameter, ...]
    works_in: str
    runtimes: frozenset[str] = frozenset()
    common: frozenset[str] = frozenset()
    unsupported: Mapping[str, str] | None = None
    check: Callable[[Mapping[str, Value]], None] | None = None

    def is_enabled(self, values: Mapping[str, Value]) -> bool:
        """Whether ``values`` (flags by name) switch this delegate on."""
        return bool(values.get(self.enabled_by))

"""What a delegate is to evaltools: its parameters, and where it can be created."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from evaltools.parameter import NotNative, Parameter, Value

LITERT: Final = "litert"
TFLITE_RUNTIME: Final = "tflite_runtime"
COMPILED: Final = "compiled"
EMULATED: Final = "emulated"
ONLY_COMPILED: Final = NotNative("only ai-edge-litert's CompiledModel has it")


class Library(Struct, frozen=True):
    """A shared library that exports ``tflite_plugin_create_delegate``, and the options that it gets."""

    path: str
    options: Mapping[str, str] = field(default_factory=dict)


class Delegate(Struct, frozen=True):
    """One delegate and its flags.

    ``name`` is what the native logs call it, ``key`` what ``--delegate=`` accepts (empty: not accepted there).
    ``enabled_by`` names the flag that switches it on: a boolean set to true, or a string that is not empty.
    ``common`` names the common flags that it reads. ``runtimes`` maps each Python runtime that can create it to the
    flags that this runtime cannot honour, with the reason. ``works_in`` says in words where it runs, for the error
    message elsewhere. ``here`` says what the delegate of those runtimes is on a computer, and is not of a phone's.
    ``check`` looks at all its values together and raises :class:`~evaltools.errors.UsageError`.

    A delegate that ``owns_device`` gets one session, which all workers share, unless the flag named by
    ``per_worker_flag`` is set; others get a session per worker.

    ``library`` gives the library that the interpreters load it from, for its effective options; delegates without one
    are part of a runtime.

    Where the flag that enables it is repeatable, a configuration may have several, with a ``number`` each: 1, 2, ...
    """

    name: str
    key: str
    enabled_by: str
    parameters: tuple[Parameter, ...]
    works_in: str
    here: str = ""
    runtimes: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    common: frozenset[str] = frozenset()
    check: Callable[[Mapping[str, Value]], None] | None = None
    owns_device: bool = True
    per_worker_flag: str = ""
    library: Callable[[Mapping[str, Value]], Library] | None = None
    number: int = 1

    @property
    def is_repeatable(self) -> bool:
        """Whether a configuration may have several delegates of this kind."""
        return any(parameter.repeatable for parameter in self.parameters if parameter.name == self.enabled_by)

    def numbered(self, number: int) -> Delegate:
        """The delegate as the second, third, ... of several of its kind; number 1 is the delegate itself."""
        if number == self.number:
            return self
        return replace(self, name=f"{self.name}#{number}", number=number)

    def is_enabled(self, values: Mapping[str, Value]) -> bool:
        """Whether ``values`` (flags by name) switch this delegate on."""
        return bool(values.get(self.enabled_by))

"""What a delegate is to evaltools: its parameters, where it can be created, and where its library lies."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from evaltools.file_content import Unreadable, opened
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


_VARIABLE: Final = "DYLD_LIBRARY_PATH" if sys.platform == "darwin" else "LD_LIBRARY_PATH"
_FOLDERS: Final = ("/lib64", "/usr/lib64", "/lib", "/usr/lib", "/usr/local/lib")
_LDCONFIG: Final = "/sbin/ldconfig"
_HEADER_BYTES: Final = 20
_ELF: Final = b"\x7fELF"


def library_file(text: str) -> str:
    """The file of a library: the path itself, or for a name that is not a file here, where the loader finds it.

    That is, in this order, the folders of ``LD_LIBRARY_PATH``, what ``ldconfig`` lists, and the system's folders; a
    library for another machine is passed over. Where nothing is found it is the path itself.
    """
    if os.sep in text or os.path.exists(text):
        return text
    found = (path for path in _candidates(text) if path.is_file() and _is_for_this_machine(path))
    return str(next(found, text))


def why_missing(text: str) -> str:
    """Why :func:`library_file` has no file for a path or name, and what to do."""
    if os.path.exists(text):
        return "is not a file"
    if os.sep in text:
        return "no such file"
    return (
        f"no such file here, and the loader finds no such library ({_VARIABLE}, {_LDCONFIG} -p); install it, add its "
        f"folder to {_VARIABLE}, or give its path"
    )


def is_for_another_machine(library: Path) -> bool:
    """Whether an existing file is a library for another processor, word size or order of bytes than Python itself."""
    return _kind(library).startswith(_ELF) and not _is_for_this_machine(library)


def _candidates(name: str) -> Iterator[Path]:
    for folder in os.environ.get(_VARIABLE, "").split(os.pathsep):
        if folder:
            yield Path(folder, name)
    yield from _listed().get(name, ())
    for folder in _FOLDERS:
        yield Path(folder, name)


@cache
def _listed() -> dict[str, list[Path]]:
    """The libraries that ``ldconfig -p`` lists, by name; none where there is no such program."""
    try:
        listed = subprocess.run([_LDCONFIG, "-p"], capture_output=True, text=True, errors="replace", check=False)
    except OSError:
        return {}
    found: dict[str, list[Path]] = {}
    for line in listed.stdout.splitlines():
        name, _, path = line.strip().partition(" => ")
        if path:
            found.setdefault(name.partition(" ")[0], []).append(Path(path))
    return found


def _is_for_this_machine(library: Path) -> bool:
    """Whether a library is for machines of the kind that Python itself is for; true where neither is an ELF file."""
    own, other = _kind(Path(sys.executable)), _kind(library)
    return own == other or not own.startswith(_ELF)


def _kind(path: Path) -> bytes:
    """What the header of an ELF file says of the machine: its word size, its order of bytes, its processor."""
    try:
        with opened(path) as file:
            header = file.read(_HEADER_BYTES)
    except Unreadable:
        return b""
    return header[:6] + header[18:20]

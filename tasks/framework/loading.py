"""Finds a task by its name: ``FILE.py:NAME``, or an entry point of the group ``evaltools.tasks``."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, redirect_stdout
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from msgspec import Struct

from evaltools.errors import UsageError
from evaltools.extensions import TASKS, entries, imported, unusable
from evaltools.known_tasks import OWN, built_in_tasks, names_file
from evaltools.parameter import did_you_mean
from evaltools.tasks.framework.definition import Task, is_setting, is_task, name_of
from evaltools.tasks.framework.faults import FAULTS, sentence

_HOW: Final = "write FILE.py:NAME for one of your own"
_MODULES: Final = "evaltools_own_task_"
_BESIDE: Final[dict[Path, dict[str, Path]]] = {}
"""The modules beside the file of a task that it imported, by their names."""


class Origin(Struct, frozen=True):
    """Where another process finds the task again: an installed ``module``, or else the ``file``."""

    file: Path
    name: str
    module: str = ""

    def __str__(self) -> str:
        return self.in_file(str(self.file))

    def in_file(self, file: str) -> str:
        """What the task is called where its file is elsewhere."""
        return f"{file}:{self.name}"

    def load(self) -> Callable[..., Task]:
        """The task's function; raises :class:`UsageError`."""
        return _task_in(_imported(self.module) if self.module else _executed(self.file), self.name, str(self.file))

    @property
    def beside(self) -> tuple[Path, ...]:
        """The files of the modules beside it that it imported."""
        return tuple(_BESIDE.get(self.file, {}).values())

    @property
    def sha256(self) -> str:
        """That of the file, and of the modules beside it that it imported; empty where it is gone."""
        checksum = hashlib.sha256()
        try:
            for file in (self.file, *self.beside):
                checksum.update(file.read_bytes())
        except OSError:
            return ""
        return checksum.hexdigest()


class Loaded(Struct, frozen=True):
    """A task's function; ``origin`` is None where only this process has it, as in a notebook.

    ``installed`` is the name of its entry point, or of the task that comes with evaltools (``is_built_in``).
    """

    function: Callable[..., Task]
    origin: Origin | None
    installed: str = ""
    is_built_in: bool = False

    @property
    def name(self) -> str:
        """What the task is loaded by again: its installed name, or ``FILE.py:NAME``."""
        return self.installed or (str(self.origin) if self.origin else name_of(self.function))

    @property
    def setting_name(self) -> str:
        """The parameter of the function that takes the :class:`Setting`; empty where none does."""
        hints = {name: each.annotation for name, each in inspect.signature(self.function).parameters.items()}
        return next((name for name, hint in hints.items() if is_setting(hint)), "")

    @property
    def task(self) -> str:
        """What results call it."""
        return self.installed if self.is_built_in else OWN


def load_task(text: str) -> Loaded:
    """The task that ``FILE.py:NAME`` or the name of an installed one stands for.

    Raises :class:`UsageError`.
    """
    file, colon, name = text.rpartition(":")
    if colon and file.endswith(".py"):
        origin = Origin(Path(file).absolute(), name)
        return Loaded(origin.load(), origin)
    if text.endswith(".py"):
        raise UsageError(f"{text}: which task in it? Write {text}:NAME{_tasks_in(Path(text))}")
    entry = _entry(text)
    _installed(entry)
    module = _imported(entry.module)
    origin = Origin(Path(module.__file__ or ""), entry.attr, module.__name__)
    return Loaded(origin.load(), origin, text)


def files_beside(task: str) -> tuple[Path, ...]:
    """The files of the modules beside it that a task in a file imports; they must be sent along with it."""
    origin = load_task(task).origin if names_file(task) else None
    return () if origin is None else origin.beside


def _installed(entry: EntryPoint) -> Callable[..., Task]:
    """The function of an entry point; raises :class:`UsageError` for what is none."""
    with redirect_stdout(sys.stderr):
        found = imported(entry)
        if not is_task(found):
            raise unusable(entry, f"is a {type(found).__name__} and no task; put @evaltools.task above a function")
        return found


def _entry(name: str) -> EntryPoint:
    installed = {entry.name: entry for entry in entries(TASKS)}
    if name in installed:
        return installed[name]
    known = [*built_in_tasks(), *installed]
    raise UsageError(f"there is no task {name!r}.{did_you_mean(name, known)} There are {', '.join(known)}; or {_HOW}")


def located(function: Callable[..., Task]) -> Loaded:
    """The task of a function that this process has. It gets an origin if another process can import or load it."""
    module = sys.modules.get(function.__module__)
    name = getattr(function, "__qualname__", "")
    if module is None or module.__name__ == "__main__" or getattr(module, name, None) is not function:
        return Loaded(function, None)
    file = getattr(module, "__file__", None)
    if file is None or not Path(file).is_file():
        return Loaded(function, None)
    return Loaded(function, Origin(Path(file).absolute(), name, module.__name__ if module.__package__ else ""))


def _task_in(module: ModuleType, name: str, place: str) -> Callable[..., Task]:
    found: Any = module
    for part in name.split("."):
        found = getattr(found, part, None)
    if is_task(found):
        return found
    known = [each for each, value in vars(module).items() if is_task(value)]
    there_are = f"it has {', '.join(known)}" if known else "it has none; put @evaltools.task above a function"
    if found is None:
        raise UsageError(f"{place} has no task {name!r}.{did_you_mean(name, known)} As a task {there_are}")
    raise UsageError(f"{place}: {name} is not a task but a {type(found).__name__}; put @evaltools.task above it")


def _tasks_in(file: Path) -> str:
    try:
        known = [each for each, value in vars(_executed(file)).items() if is_task(value)]
    except UsageError:
        return ""
    return f"; it has {', '.join(known)}" if known else ""


def _imported(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except FAULTS as error:
        raise UsageError(sentence(error, f"the module {name} of a task cannot be imported", name)) from error


def _executed(file: Path) -> ModuleType:
    """The module of a file; the same object each time, as long as the file's content is the same."""
    try:
        content = file.read_bytes()
    except OSError as error:
        raise UsageError(f"{file}: the file of the task cannot be read: {error.strerror}") from None
    beside = [each.read_bytes() for each in _BESIDE.get(file, {}).values() if each.is_file()]
    key = b"\0".join([str(file).encode("utf-8", "surrogateescape"), content, *beside])
    name = _MODULES + hashlib.sha256(key).hexdigest()
    if name in sys.modules:
        return sys.modules[name]
    _forget_modules_beside_tasks()
    known = set(sys.modules)
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise UsageError(f"{file} is not a Python file; {_HOW}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        with _folder_on_path(file.parent), redirect_stdout(sys.stderr):
            spec.loader.exec_module(module)
    except BaseException as error:
        del sys.modules[name]
        if not isinstance(error, FAULTS):
            raise
        raise UsageError(sentence(error, "the file of the task cannot be loaded", str(file))) from error
    _BESIDE[file] = _modules_below(file.parent, sys.modules.keys() - known)
    return module


def _forget_modules_beside_tasks() -> None:
    """Forget modules beside tasks, so that every task imports its own: another task may have one of the same name."""
    known = [[*found, *_packages_of(found, file.parent)] for file, found in _BESIDE.items()]
    for name in {name for names in known for name in names}:
        sys.modules.pop(name, None)


def _packages_of(names: Iterable[str], folder: Path) -> list[str]:
    """The packages that modules are in, as far as they lie in a folder; one without an ``__init__`` has no file."""
    words = [name.split(".") for name in names]
    packages = {".".join(each[:length]) for each in words for length in range(1, len(each))}
    paths = {name: list(getattr(sys.modules.get(name), "__path__", ())) for name in packages}
    return [name for name, found in paths.items() if found and all(Path(each).is_relative_to(folder) for each in found)]


def _modules_below(folder: Path, names: Iterable[str]) -> dict[str, Path]:
    """Those of the modules whose files are in a folder, but for tasks themselves and installed packages."""
    found = {}
    for name in names:
        file = getattr(sys.modules[name], "__file__", None)
        if file is None or name.startswith((_MODULES, "evaltools.")):
            continue
        path = Path(file)
        if path.is_relative_to(folder) and not {"site-packages", "dist-packages"} & set(path.parts):
            found[name] = path
    return dict(sorted(found.items()))


@contextmanager
def _folder_on_path(folder: Path) -> Iterator[None]:
    """A context in which modules beside the file can be imported, as by a program."""
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))

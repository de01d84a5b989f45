"""``gates.toml``: what to run, and the limits that must be kept.

::

    [runs.mobilenet]
    command = "imagenet --model_file=mobilenet.tflite ... --config='xnnpack: use_xnnpack=true'"

    [[gates]]
    run = "mobilenet"
    configuration = "xnnpack"
    limits = ["top1 >= 0.70", "top1 drop <= 0.005 at 95 %", "delegated_nodes >= 0.98"]
"""

from __future__ import annotations

import fnmatch
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec
from msgspec import Struct

from evaltools.documents import toml_values
from evaltools.errors import DataError, UsageError
from evaltools.gates.criteria import Criterion, parse_criterion
from evaltools.parameter import did_you_mean
from evaltools.task_kind import OWN, kind_names, name_in_limits, tree_kinds

_PYPROJECT: Final = "pyproject.toml"


class RunSource(Struct, frozen=True):
    """Where a result comes from: the words of an evaltools ``command``, or a ``result`` file that exists."""

    name: str
    command: tuple[str, ...] = ()
    result: Path | None = None


class Gate(Struct, frozen=True):
    """Limits on the configurations that a pattern names, in the results of a run, a task or a model.

    Patterns are those of file names (``*`` stands for anything), or the name as it is; empty ones name everything.
    ``allow_failed_examples`` is how many examples of a configuration may be without an answer.
    """

    run: str
    task: str
    model: str
    configuration: str
    criteria: tuple[Criterion, ...]
    allow_failed_examples: int = 0

    def is_about(self, run: str, task: str, subject: str, model: str) -> bool:
        """Whether a result falls under this gate; ``subject`` is what the task is called, ``model`` the file's name."""
        is_about_task = _fits(task, self.task) or _fits(subject, self.task)
        return is_about_task and _fits(run, self.run) and _fits(model, self.model)

    def names(self, configuration: str) -> bool:
        """Whether a configuration falls under this gate."""
        return _fits(configuration, self.configuration)


def _fits(name: str, pattern: str) -> bool:
    return not pattern or name == pattern or fnmatch.fnmatchcase(name, pattern)


class GateFile(Struct, frozen=True):
    """A file of gates; relative paths in it are meant from its folder."""

    path: Path
    runs: tuple[RunSource, ...]
    gates: tuple[Gate, ...]


class _RunEntry(msgspec.Struct, forbid_unknown_fields=True):
    command: str = ""
    result: str = ""


class _Gate(msgspec.Struct, forbid_unknown_fields=True):
    limits: list[str]
    run: str = ""
    task: str = ""
    model: str = ""
    configuration: str = "*"
    allow_failed_examples: Annotated[int, msgspec.Meta(ge=0)] = 0


class _Document(msgspec.Struct, forbid_unknown_fields=True):
    gates: list[_Gate] = []
    runs: dict[str, _RunEntry] = {}


def read_gate_file(path: Path) -> GateFile:
    """Read ``gates.toml``, or the table ``tool.evaltools`` of a ``pyproject.toml``.

    Raises :class:`DataError` for a file that cannot be read or is no TOML, and :class:`UsageError` naming the place for
    anything that would not take effect.
    """
    document = _document(path)
    prefix = ""
    if path.name == _PYPROJECT:
        document, prefix = _own_table(document, path), "tool.evaltools."
    try:
        read = msgspec.convert(document, _Document)
    except msgspec.ValidationError as error:
        raise UsageError(f"{path}: {error}; see docs/gates.md for what a file of gates holds") from None
    if not read.gates:
        raise UsageError(f"{path} has no gates; add [[{prefix}gates]] with limits")
    runs = tuple(_run(name, run, path) for name, run in read.runs.items())
    gates = tuple(_gate(number, gate, runs, path) for number, gate in enumerate(read.gates, 1))
    for run in runs:
        if not any(_fits(run.name, gate.run) for gate in gates):
            raise UsageError(f"{path}: runs.{run.name}: no gate is about it; add one, or leave the run out")
    return GateFile(path, runs, gates)


def _document(path: Path) -> Any:
    try:
        return toml_values(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise DataError(f"{path} is no TOML: {error}") from error


def _own_table(document: Any, path: Path) -> Any:
    tools = document.get("tool")
    if not isinstance(tools, dict) or "evaltools" not in tools:
        raise UsageError(
            f"{path} has no table tool.evaltools; write [[tool.evaltools.gates]] there, or a file gates.toml; "
            "see docs/gates.md"
        )
    return tools["evaltools"]


def _run(name: str, run: _RunEntry, path: Path) -> RunSource:
    if bool(run.command) == bool(run.result):
        raise UsageError(f"{path}: runs.{name}: give either command or result")
    if "\0" in run.command + run.result:
        raise UsageError(f"{path}: runs.{name}: a NUL character can be in no command and no file name")
    try:
        words = tuple(shlex.split(run.command))
    except ValueError as error:
        raise UsageError(f"{path}: runs.{name}: {run.command!r} cannot be split into words: {error}") from None
    if words[:1] == ("evaltools",):
        words = words[1:]
    if words[:1] == ("gate",):
        raise UsageError(
            f"{path}: runs.{name}: {run.command!r} gives verdicts and no result, and may read this file again; write a "
            "command that gives a result, such as 'imagenet --model_file=...'"
        )
    if run.command and not words:
        raise UsageError(
            f"{path}: runs.{name}: {run.command!r} is no command; write such as 'imagenet --model_file=...'"
        )
    return RunSource(name, words, path.parent / run.result if run.result else None)


def _may_be_of_own_task(gate: _Gate, runs: Sequence[RunSource]) -> bool:
    """Whether a gate may be about the result of a task of one's own, whose metrics only that result knows.

    Without runs the results are given beside the file, and without a task in the gate they may be of any.
    """
    about = [run for run in runs if _fits(run.name, gate.run)]
    commands = {run.command[0] for run in about if run.command}
    is_known = bool(commands) and all(run.command for run in about) and commands <= _commands_of_tree()
    is_named = any(_fits(name, gate.task) for name in _own_tasks(runs)) or (not runs and gate.task not in tree_kinds())
    return is_named and not is_known and bool(gate.task or gate.run)


def _commands_of_tree() -> set[str]:
    """The commands of evaltools' own tasks, whose figures are known before they run."""
    return {command for kind in tree_kinds().values() for command in (kind.command, kind.alias) if command}


def _own_tasks(runs: Sequence[RunSource]) -> list[str]:
    """The names of tasks of one's own: those that are installed, and those of files that runs name."""
    named = [name_in_limits(run.command[1]) for run in runs if run.command[:1] == ("run",) and len(run.command) > 1]
    return [OWN, *(name for name in kind_names() if name not in tree_kinds()), *named]


def _gate(number: int, gate: _Gate, runs: tuple[RunSource, ...], path: Path) -> Gate:
    place = f"{path}: gate {number}"
    if not gate.limits:
        raise UsageError(f"{place} has no limits; add some, such as 'top1 >= 0.70'")
    names = [run.name for run in runs]
    if names and not any(_fits(name, gate.run) for name in names):
        hint = did_you_mean(gate.run, names)
        raise UsageError(f"{place}: there is no run {gate.run!r}; there are {', '.join(names)}.{hint}")
    tasks = list(dict.fromkeys([*tree_kinds(), *_own_tasks(runs)]))
    hint = did_you_mean(gate.task, tasks)
    may_be_given = not runs and not hint and gate.task.isidentifier()
    if not any(_fits(task, gate.task) for task in tasks) and not may_be_given:
        raise UsageError(f"{place}: there is no task {gate.task!r}; there are {', '.join(tasks)}.{hint}")
    try:
        of_own_task = _may_be_of_own_task(gate, runs)
        criteria = tuple(parse_criterion(text, of_own_task) for text in gate.limits)
    except UsageError as error:
        raise UsageError(f"{place}: {error}") from None
    return Gate(gate.run, gate.task, gate.model, gate.configuration, criteria, gate.allow_failed_examples)

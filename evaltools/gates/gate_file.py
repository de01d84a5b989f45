"""``gates.toml``: what to run, and the limits that must be kept.

::

    [variables]
    data = "--ground_truth_images_path=images --ground_truth_labels=labels.txt"

    [runs.mobilenet]
    models = ["v1.tflite", "v2.tflite"]
    command = "imagenet {data} --config='xnnpack: use_xnnpack=true'"

    [[gates]]
    run = "mobilenet"
    configuration = "xnnpack"
    limits = ["top1 >= 70 %", "top1 drop <= 0.5 points at 95 %", "delegated_share >= 98 %"]
"""

from __future__ import annotations

import fnmatch
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec
from msgspec import Struct

from evaltools.documents import toml_values
from evaltools.errors import DataError, UsageError
from evaltools.file_content import Unreadable, text_of
from evaltools.gates.criteria import Criterion, OfOwnTask, parse_criterion
from evaltools.gates.evidence import IN_GATE, MOST_LOAD, NOTHING_ALLOWED, Allowed
from evaltools.known_tasks import OWN, built_in_tasks, name_in_limits, task_names
from evaltools.parameter import did_you_mean

_PYPROJECT: Final = "pyproject.toml"
BENCHMARK: Final = "benchmark"
SUITE: Final = "suite"
_BRACES: Final = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")


class RunSource(Struct, frozen=True):
    """Where a result comes from: the words of an evaltools ``command``, or a ``result`` file that exists.

    ``model`` is that of several which was put into the command; empty where the command names its own. ``against`` is
    an earlier result to compare with, or the folder where one of the run's name lies.
    """

    name: str
    command: tuple[str, ...] = ()
    result: Path | None = None
    model: str = ""
    against: Path | None = None

    @property
    def file_name(self) -> str:
        """The name of its result's file in a folder of several."""
        return f"{self.name.replace('/', '_')}.json"

    @property
    def old(self) -> Path | None:
        """The file of the earlier result."""
        return self.against / self.file_name if self.against is not None and self.against.is_dir() else self.against


class Gate(Struct, frozen=True):
    """Limits on the configurations that a pattern names, in the results of a run, a task or a model.

    Patterns are those of file names (``*`` stands for anything), or the name as it is; empty ones name everything.
    ``NAME`` is also about the runs ``NAME/...``.
    ``allowed`` is how much of what else makes a result ``not measured`` the gate allows.
    """

    run: str
    task: str
    model: str
    configuration: str
    criteria: tuple[Criterion, ...]
    allowed: Allowed = NOTHING_ALLOWED

    def is_about(self, run: str, task: str, subject: str, model: str) -> bool:
        """Whether a result falls under this gate; ``subject`` is what the task is called, ``model`` the file's name."""
        is_about_task = _fits(task, self.task) or _fits(subject, self.task)
        return is_about_task and any(_fits(name, self.run) for name in _with_parents(run)) and _fits(model, self.model)

    def may_be_about(self, source: RunSource) -> bool:
        """Whether what a run gives falls under this gate if its task and model do."""
        return _may_be_of_run(source, self.run)

    def names(self, configuration: str) -> bool:
        """Whether a configuration falls under this gate."""
        return _fits(configuration, self.configuration)

    def chosen(self, configurations: Iterable[str]) -> list[str]:
        """Those of these that fall under this gate; its own pattern, for what nobody knows yet, where none does."""
        return list(filter(self.names, configurations)) or [self.configuration]


def _fits(name: str, pattern: str) -> bool:
    return not pattern or name == pattern or fnmatch.fnmatchcase(name, pattern)


def _with_parents(run: str) -> list[str]:
    """The run and those that it is a part of.

    >>> _with_parents("night/v1")
    ['night', 'night/v1']
    """
    parts = run.split("/")
    return ["/".join(parts[:count]) for count in range(1, len(parts) + 1)]


def _may_be_of_run(source: RunSource, pattern: str) -> bool:
    """Whether the name of a run fits a pattern, or, of one that may give several results, that of a part of it."""
    may_have_parts = source.result is not None or source.command[:1] in ((BENCHMARK,), (SUITE,))
    of_parts = _with_parents(pattern)[:-1] if may_have_parts else []
    return any(_fits(name, pattern) for name in _with_parents(source.name)) or any(
        _fits(source.name, parent) for parent in of_parts
    )


class GateFile(Struct, frozen=True):
    """A file of gates; relative paths in it are meant from its folder."""

    path: Path
    runs: tuple[RunSource, ...]
    gates: tuple[Gate, ...]


class _RunEntry(msgspec.Struct, forbid_unknown_fields=True):
    command: str = ""
    result: str = ""
    models: list[str] = []
    against: str = ""


_Count = Annotated[int, msgspec.Meta(ge=0)]


class _Gate(msgspec.Struct, forbid_unknown_fields=True):
    limits: list[str]
    run: str = ""
    task: str = ""
    model: str = ""
    configuration: str = "*"
    allow_failed_examples: _Count = 0
    allow_nan_outputs: _Count = 0
    allow_crashes: _Count = 0
    allow_load: Annotated[float, msgspec.Meta(ge=0)] = MOST_LOAD
    allow_missing: bool = False


class _Document(msgspec.Struct, forbid_unknown_fields=True):
    gates: list[_Gate] = []
    runs: dict[str, _RunEntry] = {}
    variables: dict[str, str] = {}


def read_gate_file(path: Path) -> GateFile:
    """Read ``gates.toml``, or the table ``tool.evaltools`` of a ``pyproject.toml``.

    Raises :class:`DataError` for a file that cannot be read or is not TOML, and :class:`UsageError` naming the place
    for anything that would not take effect.
    """
    document = _document(path)
    prefix = ""
    if path.name == _PYPROJECT:
        document, prefix = _own_table(document, path), "tool.evaltools."
    try:
        read = msgspec.convert(document, _Document)
    except msgspec.ValidationError as error:
        raise UsageError(f"{path}: {error}; see docs/gates.md for what a file of gates holds") from None
    if not read.gates and not any(run.against for run in read.runs.values()):
        raise UsageError(f"{path} has no gates; add [[{prefix}gates]] with limits, or against = 'OLD.json' to a run")
    _require_used(read.variables, read.runs.values(), path)
    runs = tuple(source for name, run in read.runs.items() for source in _sources(name, run, read.variables, path))
    _require_apart(runs, path)
    gates = tuple(_gate(number, gate, runs, path) for number, gate in enumerate(read.gates, 1))
    for run in runs:
        if run.against is None and not any(gate.may_be_about(run) for gate in gates):
            raise UsageError(f"{path}: runs.{run.name}: no gate is about it; add one, or leave the run out")
    return GateFile(path, runs, gates)


def _document(path: Path) -> Any:
    try:
        return toml_values(text_of(path))
    except Unreadable as error:
        raise DataError(f"{path} cannot be read: {error}") from error
    except ValueError as error:
        raise DataError(f"{path} is not TOML: {error}") from error


def _own_table(document: Any, path: Path) -> Any:
    tools = document.get("tool")
    if not isinstance(tools, dict) or "evaltools" not in tools:
        raise UsageError(
            f"{path} has no table tool.evaltools; write [[tool.evaltools.gates]] there, or a file gates.toml; "
            "see docs/gates.md"
        )
    return tools["evaltools"]


def _filled(text: str, variables: Mapping[str, str], place: str) -> str:
    """The text with shared texts in the place of their names; ``{{`` and ``}}`` stand for braces."""

    def text_of(found: re.Match[str]) -> str:
        name = found[1]
        if found[0] in ("{{", "}}"):
            return found[0][0]
        if name in variables:
            return variables[name]
        known = f"there are {', '.join(variables)}" if variables else "the file has no [variables]"
        hint = did_you_mean(name or "", variables)
        raise UsageError(f"{place}: {text!r}: no variable {found[0]}; {known}.{hint} Braces are written {{{{ and }}}}")

    return _BRACES.sub(text_of, text)


def _require_used(variables: Iterable[str], runs: Iterable[_RunEntry], path: Path) -> None:
    """Raise :class:`UsageError` for a variable that no run has."""
    texts = (text for run in runs for text in (run.command, run.result, run.against, *run.models))
    used = {found[1] for text in texts for found in _BRACES.finditer(text)}
    for name in variables:
        if name not in used:
            raise UsageError(f"{path}: variables.{name} is used in no run; write {{{name}}} there, or leave it out")


def _sources(name: str, run: _RunEntry, variables: Mapping[str, str], path: Path) -> list[RunSource]:
    """The run of an entry, or one for each of its models."""
    if not name.isprintable():
        raise UsageError(f"{path}: {name!r} is not a name for a run: use printable characters")
    place = f"{path}: runs.{name}"
    if bool(run.command) == bool(run.result):
        raise UsageError(f"{place}: give either command or result")
    if run.result and run.models:
        raise UsageError(f"{place}: models are put into a command; leave them out beside result")
    texts = (run.command, run.result, run.against, *run.models)
    command, result, against, *models = (_filled(text, variables, place) for text in texts)
    if "\0" in "".join((command, result, against, *models)):
        raise UsageError(f"{place}: a NUL character can be in no command and no file name")
    old = path.parent / against if against else None
    if result:
        return [RunSource(name, result=path.parent / result, against=old)]
    words = _words(command, place)
    if not models:
        return [RunSource(name, words, against=old)]
    return [RunSource(f"{name}/{Path(model).stem}", (*words, model), model=model, against=old) for model in models]


def _words(command: str, place: str) -> tuple[str, ...]:
    try:
        words = tuple(shlex.split(command))
    except ValueError as error:
        raise UsageError(f"{place}: {command!r} cannot be split into words: {error}") from None
    if words[:1] == ("evaltools",):
        words = words[1:]
    if words[:1] == ("gate",):
        raise UsageError(
            f"{place}: {command!r} gives verdicts and no result, and may read this file again; write a "
            "command that gives a result, such as 'imagenet --model_file=...'"
        )
    if not words:
        raise UsageError(f"{place}: {command!r} is not a command; write such as 'imagenet --model_file=...'")
    return words


def _require_apart(runs: Iterable[RunSource], path: Path) -> None:
    """Raise :class:`UsageError` where two models or runs would go by one name."""
    sources: dict[str, RunSource] = {}
    for run in runs:
        other = sources.setdefault(run.name, run)
        if other is not run:
            which = f"{other.model} and {run.model}" if other.model and run.model else "two runs"
            raise UsageError(f"{path}: {which} are both called {run.name!r}; give one of them a run of another name")


def _of_own_task(gate: _Gate, runs: Sequence[RunSource]) -> OfOwnTask:
    """Whether a gate is about the result of a task of one's own.

    Without runs the results are given beside the file, and without a task in the gate they may be of any.
    """
    known = {BENCHMARK, *(word for task in built_in_tasks().values() for word in (task.words, task.alias) if word)}
    about = [run for run in runs if _may_be_of_run(run, gate.run)]
    is_known = bool(about) and all(run.command and run.command[0] in known for run in about)
    if not (gate.task or gate.run) or gate.task in (*built_in_tasks(), BENCHMARK) or is_known:
        return "no"
    return "yes" if gate.task else "perhaps"


def _may_be_of_files(runs: Sequence[RunSource]) -> bool:
    """Whether a result may come from a file, which says itself of which task it is."""
    return not runs or any(not run.command for run in runs)


def _own_tasks(runs: Sequence[RunSource]) -> list[str]:
    """The names of tasks of one's own: those that are installed, and those of files that runs name."""
    named = [name_in_limits(run.command[1]) for run in runs if run.command[:1] == ("run",) and len(run.command) > 1]
    return [OWN, *(name for name in task_names() if name not in built_in_tasks()), *named]


def _gate(number: int, gate: _Gate, runs: tuple[RunSource, ...], path: Path) -> Gate:
    place = f"{path}: gate {number}"
    if not gate.limits:
        raise UsageError(f"{place} has no limits; add some, such as 'top1 >= 70 %'")
    names = [run.name for run in runs]
    if names and not any(_may_be_of_run(run, gate.run) for run in runs):
        hint = did_you_mean(gate.run, names)
        raise UsageError(f"{place}: there is no run {gate.run!r}; there are {', '.join(names)}.{hint}")
    tasks = list(dict.fromkeys([*built_in_tasks(), BENCHMARK, *_own_tasks(runs)]))
    hint = did_you_mean(gate.task, tasks)
    may_be_given = _may_be_of_files(runs) and not hint and gate.task.isidentifier()
    if not any(_fits(task, gate.task) for task in tasks) and not may_be_given:
        raise UsageError(f"{place}: there is no task {gate.task!r}; there are {', '.join(tasks)}.{hint}")
    try:
        of_own_task = _of_own_task(gate, runs)
        criteria = tuple(parse_criterion(text, of_own_task) for text in gate.limits)
    except UsageError as error:
        raise UsageError(f"{place}: {error}") from None
    allowed = Allowed(
        gate.allow_failed_examples,
        gate.allow_nan_outputs,
        gate.allow_crashes,
        gate.allow_load,
        gate.allow_missing,
        IN_GATE,
    )
    return Gate(gate.run, gate.task, gate.model, gate.configuration, criteria, allowed)

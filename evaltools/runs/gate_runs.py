"""From a run of ``gates.toml`` to its result: its request in a process of its own, or the file that exists."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from evaltools import exit_codes
from evaltools.errors import EvaltoolsError, OutputError, UsageError
from evaltools.gates.check import GateDecisions
from evaltools.gates.compare import compare_results, is_slower
from evaltools.gates.decide import Decision
from evaltools.gates.evidence import Baseline, RunRows, part_names, parts_of
from evaltools.gates.gate_file import BENCHMARK, Gate, RunSource
from evaltools.known_tasks import OWN, built_in_tasks, name_in_limits
from evaltools.request import Request
from evaltools.result.result import Result, Row
from evaltools.runs.folders import read_any_result
from evaltools.runs.handing_over import ending_in_words, run_in_own_process

OUTPUT_FLAG: Final = "output_file_path"
NO_WORSE: Final = "no worse than before"
_MOST_LINES: Final = 20
_ERROR: Final = "evaltools: "
_MODEL: Final = ("model_file", "graph")


class Run(Struct, frozen=True):
    """A run of a file of gates whose relative paths are meant from ``folder``.

    ``request`` is what its command asks for; None for a result that exists, and for commands that only put results
    together.
    """

    source: RunSource
    folder: Path
    request: Request | None

    @property
    def files_read(self) -> list[Path]:
        """The result, or what its command names, as far as that is known: what is not a file among it does no harm."""
        if self.source.result is not None:
            return [self.source.result]
        if self.request is None:
            return [self.folder / word for word in self.source.command]
        return [self.folder / path for path in self.request.files_read]

    @property
    def models(self) -> list[str]:
        """The models that its command names, as far as they are known."""
        options = None if self.request is None else self.request.options
        return [] if options is None else [text for name in _MODEL if name in options for text in options.texts(name)]

    @property
    def configurations(self) -> list[str]:
        """Those that its result will have, as far as they are known: on devices there may be one for each device."""
        if self.request is None or self.request.devices is not None or not self.models:
            return []
        return [entry.name for entry in self.request.tests]

    def places(self, gate: Gate) -> list[tuple[str, str]]:
        """The runs and configurations that a gate is about, as far as they are known before it is run.

        Where they are not, the pattern of the gate stands for the configurations.
        """
        if not self.models:
            return [(self.source.name, gate.configuration)] if gate.may_be_about(self.source) else []
        return [
            (run, configuration)
            for run, model in self._named_models
            if gate.is_about(run, *self._task, Path(model).name)
            for configuration in gate.chosen(self.configurations)
        ]

    def why(self, error: EvaltoolsError) -> str:
        """What the first line of its error says."""
        return str(error).partition("\n")[0].removeprefix(f"run {self.source.name}: ")

    def parts(self, found: Result | EvaltoolsError) -> dict[str, RunRows]:
        """What gates are compared with: its result, or why it gave none."""
        if isinstance(found, Result):
            return parts_of(self.source.name, found)
        failure = self.why(found)
        rows = [Row(name, status="not measured", reason=failure) for name in self.configurations]
        if not self.models:
            return {self.source.name: RunRows(rows=rows, failure=failure)}
        parts = {run: RunRows(*self._task, Path(model).name, rows, failure) for run, model in self._named_models}
        (first, *others) = parts
        is_base = self.request is not None and self.request.task == BENCHMARK and bool(others)
        return parts | {first: replace(parts[first], is_base=is_base)}

    @property
    def _task(self) -> tuple[str, str]:
        """What results call its task, and what limits call it."""
        task = self.request.task if self.request is not None else ""
        return (task if task in (BENCHMARK, *built_in_tasks()) else OWN, name_in_limits(task))

    @property
    def _named_models(self) -> list[tuple[str, str]]:
        return list(zip(part_names(self.source.name, self.models), self.models, strict=True))


def result_of(run: Run, output: Path) -> Result:
    """The result of a run; ``output`` is where its command writes it.

    Raises an :class:`EvaltoolsError` where it gives no result, whose first line says why and whose others are the end
    of what the command said, and what :func:`read_any_result` raises where a file is none.
    """
    source = run.source
    if source.result is not None:
        return read_any_result(source.result)
    try:
        output.unlink(missing_ok=True)
    except OSError as error:
        raise OutputError(f"run {source.name}: {output} cannot be written: {error.strerror}") from error
    asked: Request | tuple[str, ...] = (*source.command, f"--{OUTPUT_FLAG}={output.absolute()}")
    if run.request is not None:
        asked = run.request.stating(**{OUTPUT_FLAG: output.absolute()})
    ended = run_in_own_process(asked, run.folder)
    if ended.code in exit_codes.MEASURED and output.exists():
        return read_any_result(output)
    raise UsageError(_no_result(source, ended.code, ended.err))


def no_worse(
    run: Run,
    result: Result | EvaltoolsError,
    old: Baseline[Result],
    again: Path,
    on_again: Callable[[], object] = lambda: None,
) -> list[GateDecisions]:
    """Whether anything became worse in a run; ``not measured`` where it gave no ``result``, or one of another kind.

    A command that is slower is run again, unless its result is there already, ``again``; it is worse where it is slower
    twice.
    """
    name = run.source.name
    try:
        if isinstance(result, EvaltoolsError):
            raise result
        found = compare_results(name, result, old)
    except EvaltoolsError as error:
        reason = run.why(error)
        return [GateDecisions(name, "", (Decision("*", NO_WORSE, "not measured", reason=reason),))]
    if not is_slower(found) or run.source.result is not None:
        return found
    on_again()
    try:
        return compare_results(name, read_any_result(again) if again.exists() else result_of(run, again), old)
    except EvaltoolsError:
        return found


def _no_result(source: RunSource, code: int, text: str) -> str:
    lines = [line.rstrip() for line in text.splitlines() if line.strip()] or ["nothing on stderr"]
    why = next((line.removeprefix(_ERROR) for line in lines if line.startswith(_ERROR)), lines[-1])
    end = "\n".join(lines[-_MOST_LINES:])
    command = shlex.join(("evaltools", *source.command))
    return f"run {source.name}: no result ({ending_in_words(code)}): {why}\n{command} said:\n{end}"

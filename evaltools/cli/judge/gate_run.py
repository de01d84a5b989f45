"""``evaltools gate`` behind its flags: read or run, judge, write, print."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Mapping, Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace
from rich.console import Console

from evaltools import exit_codes
from evaltools.cli.judge.verdict_files import EXIT_CODE_OF, planned_files, write_verdicts
from evaltools.cli.shared.streams import complain, say
from evaltools.cli.shared.terminal import make_console, text_for_stdout
from evaltools.commands.gates import problems, read_run
from evaltools.errors import EvaltoolsError, OutputError, UsageError
from evaltools.gates.check import GateDecisions
from evaltools.gates.decide import worst_verdict
from evaltools.gates.gate_file import GateFile, RunSource, read_gate_file
from evaltools.gates.other_results import AnyResult, hold_all, unjudged
from evaltools.gates.outcome import outcome_of
from evaltools.report.files.output_file import require_output_file, write_file
from evaltools.report.page.content.sources import Sources
from evaltools.report.tables.gates import print_gates
from evaltools.request import require_apart
from evaltools.request.flags import GivenFlags
from evaltools.result.json_file import encode_json
from evaltools.runs.gate_runs import Result, Run, by_kind, parts_of, read_any_result, result_of

_KEEP: Final = "keep_results"
_DEFAULTS: Final = ("gates.toml", "pyproject.toml")


class _Carried(Struct):
    """What came of the runs, by their names; ``parts`` are what gates are held against, by those of runs and parts.

    ``seconds`` is how long each command took.
    """

    results: dict[str, Result] = field(default_factory=dict)
    parts: dict[str, AnyResult] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    not_kept: list[OutputError] = field(default_factory=list)


def gate(flags: GivenFlags, results: Sequence[str]) -> int:
    """Check results, or the runs of the gate file where no results are given, against its gates.

    Returns the exit code.
    """
    is_inconclusive_allowed = flags.is_on("allow_inconclusive")
    file = read_gate_file(_gate_file(flags))
    runs, read = _checked(file, _named(results, file) if results else _runs(file))
    inputs = [file.path, *(path for run in runs for path in run.files_read)]
    files = planned_files(flags, inputs)
    kept = _kept_files(flags, runs, inputs, files)
    console = make_console()
    carried = _carry_out(runs, read, kept, console)
    held = hold_all(file.gates, carried.parts)
    timed = [
        replace(report, elapsed_s=carried.seconds.get(report.run, report.elapsed_s))
        for report in held + unjudged(file.gates, carried.parts)
    ]
    outcome = outcome_of(version("evaltools"), str(file.path), timed)
    is_printed = say(f"{text_for_stdout(partial(print_gates, outcome))}\n{_summary(held)}")
    not_written = carried.not_kept + write_verdicts(
        outcome, files, Sources(**by_kind({**carried.parts, **carried.results}))
    )
    if not is_printed:
        not_written.append(OutputError("stdout cannot be written"))
    for error in not_written:
        console.print(f"evaltools: {error}", style="bold red")
    if not_written:
        return exit_codes.NOT_WRITTEN
    counting = [each for each in outcome.decisions if each.verdict != "inconclusive" or not is_inconclusive_allowed]
    return EXIT_CODE_OF[worst_verdict(counting)] if counting else exit_codes.OK


def _gate_file(flags: GivenFlags) -> Path:
    given = flags.path("gates")
    if given is not None:
        return given
    for name in _DEFAULTS:
        if os.path.exists(name):
            return Path(name)
    raise UsageError(
        f"there is neither {' nor '.join(_DEFAULTS)} in this folder; write one as docs/gates.md shows, or give "
        "--gates=FILE"
    )


def _runs(file: GateFile) -> tuple[RunSource, ...]:
    if not file.runs:
        raise UsageError(
            f"there is no result to judge: {file.path} has no [runs.NAME]; add some, or give the result files: "
            "evaltools gate RESULT.json"
        )
    return file.runs


def _named(results: Sequence[str], file: GateFile) -> list[RunSource]:
    """The given results by the name of the run that they belong to, or by their file's name where there is none."""
    runs = {os.path.realpath(run.result): run.name for run in file.runs if run.result is not None}
    files: dict[str, str] = {}
    for word in results:
        name = runs.get(os.path.realpath(word), Path(word).stem) if word else ""
        if not name or "\0" in word:
            raise UsageError(f"{word!r} is no name of a result file; give evaltools gate RESULT.json")
        if name in files:
            raise UsageError(
                f"{files[name]} and {word} are both taken for the run {name!r}; name one of them in {file.path}: "
                f"[runs.NAME] with result = {word!r}"
            )
        files[name] = word
    return [RunSource(name, result=Path(word)) for name, word in files.items()]


def _checked(file: GateFile, sources: Sequence[RunSource]) -> tuple[list[Run], dict[str, Result]]:
    """The runs, and the results that exist; raises :class:`UsageError` with everything that is wrong with them."""
    runs: list[Run] = []
    read: dict[str, Result] = {}
    wrong: list[str] = []
    for source in sources:
        try:
            runs.append(read_run(source, file.path.parent))
            if source.result is not None:
                read[source.name] = read_any_result(source.result)
        except EvaltoolsError as error:
            wrong.append(str(error))
    wrong += problems(file, runs)
    if len(wrong) > 1:
        raise UsageError("\n  ".join([f"{len(wrong)} mistakes, so nothing was run:", *wrong]))
    if wrong:
        raise UsageError(wrong[0])
    return runs, read


def _kept_files(
    flags: GivenFlags, runs: Sequence[Run], inputs: Sequence[Path], files: Mapping[str, Path]
) -> dict[str, Path]:
    """Where ``--keep_results`` puts the result of each run, by its name; checked before anything is run."""
    folder = flags.path(_KEEP)
    if folder is None:
        return {}
    kept = {run.source.name: folder / f"{run.source.name.replace('/', '_')}.json" for run in runs}
    written = [(f"--{name}", path) for name, path in files.items()]
    require_apart([*written, *((f"the result of {name}:", path) for name, path in kept.items())])
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise UsageError(f"--{_KEEP}={folder}: the folder cannot be made: {error.strerror}") from error
    for path in kept.values():
        require_output_file(path, f"--{_KEEP}, file", inputs)
    return kept


def _carry_out(runs: Sequence[Run], read: Mapping[str, Result], kept: Mapping[str, Path], console: Console) -> _Carried:
    """Carry out every run whose result is not ``read`` already; one that gives none stops no other."""
    carried = _Carried()
    with tempfile.TemporaryDirectory(prefix="evaltools-gate-") as scratch:
        for run in runs:
            name = run.source.name
            if name in kept:
                kept[name].unlink(missing_ok=True)
            if name in read:
                carried.results[name] = read[name]
                carried.parts |= parts_of(name, read[name])
            else:
                console.print(f"run {len(carried.seconds) + 1} of {len(runs) - len(read)}: {name} ...", end="")
                failure = _run(run, Path(scratch, f"{len(carried.seconds)}.json"), carried)
                console.print(f", {carried.seconds[name]:.0f} s")
                if failure:
                    complain(f"evaltools: {failure}")
            if name in kept and name in carried.results:
                try:
                    write_file(kept[name], encode_json(carried.results[name]))
                except OutputError as error:
                    carried.not_kept.append(error)
    return carried


def _run(run: Run, output: Path, carried: _Carried) -> str:
    """Carry one command out; returns what went wrong, empty where there is a result."""
    name, failure, start = run.source.name, "", time.perf_counter()
    try:
        result = result_of(run, output)
        carried.parts |= parts_of(name, result, run.runs_at(output))
        carried.results[name] = result
    except EvaltoolsError as error:
        failure = str(error)
        carried.parts |= run.failed(error)
    carried.seconds[name] = round(time.perf_counter() - start, 3)
    return failure


def _summary(held: Sequence[GateDecisions]) -> str:
    """The last line: how many limits there are, how many of them were measured, and how many are kept."""
    verdicts = [decision.verdict for report in held for decision in report.decisions]
    measured = len(verdicts) - verdicts.count("not measured")
    return f"{len(verdicts)} limit{'s' * (len(verdicts) != 1)}, {measured} measured, {verdicts.count('pass')} kept"

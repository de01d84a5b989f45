"""``evaltools gate`` behind its flags: read or run, judge, write, print."""

from __future__ import annotations

import math
import os
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace
from rich.console import Console

from evaltools import exit_codes
from evaltools.cli.judge.github import show_on_github
from evaltools.cli.judge.verdict_files import begin_files, planned_files, write_verdicts
from evaltools.cli.shared.streams import complain, say
from evaltools.cli.shared.terminal import make_console, text_for_stdout
from evaltools.commands.gates import problems, read_run
from evaltools.engine.sampling import LoadOverTime
from evaltools.errors import DataError, EvaltoolsError, OutputError, UsageError
from evaltools.gates.check import GateDecisions, earlier_parts, hold_all, unjudged
from evaltools.gates.compare import compare_results
from evaltools.gates.criteria import parse_criterion
from evaltools.gates.decide import IN_ONE_RUN
from evaltools.gates.evidence import BY_FLAG, MOST_LOAD, Allowed, Baseline, why_too_busy
from evaltools.gates.gate_file import Gate, GateFile, RunSource, read_gate_file
from evaltools.gates.outcome import exit_code_of, outcome_of
from evaltools.gates.units import amount_of_flag
from evaltools.metrics.between_runs import RUNS_APART
from evaltools.report.files.output_file import require_output_file, write_file
from evaltools.report.page.screens import print_result
from evaltools.request import require_apart
from evaltools.request.flags import GivenFlags
from evaltools.result.environment import describe_environment
from evaltools.result.json_file import encode_json
from evaltools.result.result import Result
from evaltools.runs.folders import read_any_result
from evaltools.runs.gate_runs import Run, no_worse, result_of

_KEEP: Final = "keep_results"
_LOOKS: Final = 10
_SECONDS_BETWEEN_LOOKS: Final = 0.1
"""How the machine is looked at before a run of which only times are asked."""
_DEFAULTS: Final = ("gates.toml", "pyproject.toml")


class _Carried(Struct):
    """What came of the runs, by their names: results, or why there is none, and how long each command took."""

    found: dict[str, Result | EvaltoolsError] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    not_kept: list[OutputError] = field(default_factory=list)


def gate(flags: GivenFlags, results: Sequence[str]) -> int:
    """Check results, or the runs of the gate file where no results are given, against limits and earlier results.

    Returns the exit code. From before anything is measured, no file tells of an earlier run.
    """
    started_at, start = datetime.now(timezone.utc).isoformat(timespec="seconds"), time.monotonic()
    file = _limits(flags, results)
    sources = [_compared(source, flags) for source in (_named(results, file) if results else _runs(file))]
    _require_one_each(sources)
    runs, read, old = _checked(file, sources, flags)
    inputs = [file.path, *(path for run in runs for path in run.files_read)]
    inputs += [source.old for source in sources if source.old is not None]
    files = planned_files(flags, inputs)
    kept = _kept_files(flags, runs, inputs, files)
    begin_files(files)
    console = make_console()
    for line in _open_before(file) if len(read) < len(runs) else []:
        console.print(line)
    carried = _run_all(runs, read, kept, console, partial(_why_at_once, file))
    against = {part: each for name, file in old.items() for part, each in earlier_parts(name, file).items()}
    parts = {name: part for run in runs for name, part in run.parts(carried.found[run.source.name]).items()}
    held = hold_all(file.gates, parts, against) + _since(runs, carried.found, old, console)
    left = {name: part for name, part in parts.items() if name.partition("/")[0] not in old and name not in old}
    timed = [
        replace(report, elapsed_s=carried.seconds.get(report.run, report.elapsed_s))
        for report in held + unjudged(file.gates, left)
    ]
    words = ["evaltools", "gate", *results, *(f"--{name}={text}" for name, text in flags.given)]
    environment = describe_environment(words, started_at, time.monotonic() - start)
    outcome = outcome_of(str(file.path), timed, environment, flags.is_on("allow_inconclusive"))
    found = {run.source.name: carried.found[run.source.name] for run in runs}
    judged = {name: each for name, each in found.items() if isinstance(each, Result)}
    is_printed = say(f"{text_for_stdout(partial(print_result, outcome))}\n{_summary(held)}")
    not_written = carried.not_kept + write_verdicts(outcome, files, judged)
    not_written += show_on_github(outcome, file)
    if not is_printed:
        not_written.append(OutputError("stdout cannot be written"))
    for error in not_written:
        console.print(f"evaltools: {error}", style="bold red")
    if not_written:
        return exit_codes.NOT_WRITTEN
    return exit_code_of(outcome)


def _open_before(file: GateFile) -> list[str]:
    """What is said before anything runs of limits on times that two runs of one speed do not decide."""
    limits = [limit for gate in file.gates for limit in gate.criteria if limit.kind == "ratio" and limit.of_old]
    return [
        f"{limit.text}: two runs of one speed decide limits from about {RUNS_APART:g} on, so it will be inconclusive "
        f"unless the new one is much faster or slower; {IN_ONE_RUN}"
        for limit in limits
        if 1 / RUNS_APART < limit.value <= RUNS_APART
    ]


def _why_at_once(file: GateFile, run: Run) -> str:
    """Why a run is not begun: all of its limits are on times, and the machine is too busy for any; else empty."""
    gates = [gate for gate in file.gates if run.places(gate)]
    limits = [limit for gate in gates for limit in gate.criteria]
    if not limits or run.source.old is not None or not all(limit.figure.startswith("latency") for limit in limits):
        return ""
    allowed = max((gate.allowed for gate in gates), key=lambda each: each.load)
    if math.isinf(allowed.load):
        return ""
    watched = LoadOverTime(lambda: [os.getpid()])
    for _ in range(_LOOKS):
        watched.sample()
        time.sleep(_SECONDS_BETWEEN_LOOKS)
    return why_too_busy(watched.load, allowed)


def _limits(flags: GivenFlags, results: Sequence[str]) -> GateFile:
    """The file of gates, and the limits of ``--limit``; without a file only these and ``--against``."""
    stated, limits = flags.path("gates"), flags.texts("limit")
    if (limits or "against" in flags) and stated is None and results:
        file = GateFile(Path(f"--{'limit' if limits else 'against'}"), (), ())
    else:
        file = read_gate_file(_gate_file(stated))
    if not limits:
        return file
    criteria = tuple(parse_criterion(text, "perhaps") for text in limits)
    return replace(file, gates=(*file.gates, Gate("", "", "", "*", criteria, _allowed(flags))))


def _allowed(flags: GivenFlags) -> Allowed:
    """What flags allow in the limits that are none of a file of gates."""
    return Allowed(load=math.inf if flags.is_on("allow_any_load") else MOST_LOAD, any_load_by=BY_FLAG)


def _gate_file(given: Path | None) -> Path:
    if given is not None:
        return given
    for name in _DEFAULTS:
        if os.path.exists(name):
            return Path(name)
    raise UsageError(
        f"there is neither {' nor '.join(_DEFAULTS)} in this folder; write one as docs/gates.md shows, or give "
        "--gates=FILE, --limit, or --against=OLD.json"
    )


def _compared(source: RunSource, flags: GivenFlags) -> RunSource:
    """A run with what ``--against`` says for all of them."""
    stated = flags.path("against")
    if stated is None:
        return source
    if source.against is not None:
        raise UsageError(f"--against={stated}: run {source.name} states against itself; leave one of the two out")
    return replace(source, against=stated)


def _require_one_each(sources: Sequence[RunSource]) -> None:
    """Raise :class:`UsageError` where several runs would be compared with one file."""
    used: dict[Path, str] = {}
    for source in sources:
        if source.old is not None and used.setdefault(source.old, source.name) != source.name:
            raise UsageError(
                f"{used[source.old]} and {source.name} would both be compared with {source.old}; give a folder with "
                f"{source.file_name} and the others, as --keep_results makes it"
            )


def _since(
    runs: Sequence[Run],
    found: Mapping[str, Result | EvaltoolsError],
    old: Mapping[str, Baseline[Result]],
    console: Console,
) -> list[GateDecisions]:
    """Whether anything became worse in the runs that have an earlier result."""
    reports: list[GateDecisions] = []
    with tempfile.TemporaryDirectory(prefix="evaltools-gate-") as scratch:
        for number, run in enumerate(runs):
            name = run.source.name
            if name in old:
                say_so = partial(console.print, f"run {name}: slower than in {old[name].name}, so measured again")
                reports += no_worse(run, found[name], old[name], Path(scratch, f"{number}.json"), say_so)
    return reports


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
            raise UsageError(f"{word!r} is not a name of a result file; give evaltools gate RESULT.json")
        if name in files:
            raise UsageError(
                f"{files[name]} and {word} are both taken for the run {name!r}; name one of them in {file.path}: "
                f"[runs.NAME] with result = {word!r}"
            )
        files[name] = word
    return [RunSource(name, result=Path(word)) for name, word in files.items()]


def _checked(
    file: GateFile, sources: Sequence[RunSource], flags: GivenFlags
) -> tuple[list[Run], dict[str, Result], dict[str, Baseline[Result]]]:
    """The runs, results that exist, and earlier ones; raises :class:`UsageError` with all that is wrong with them."""
    runs: list[Run] = []
    read: dict[str, Result] = {}
    old: dict[str, Baseline[Result]] = {}
    wrong: list[str] = []
    margin, has_unit = amount_of_flag("margin", flags.text("margin")) if "margin" in flags else (None, True)
    other_examples = flags.is_on("allow_other_examples")
    for source in sources:
        try:
            runs.append(read_run(source, file.path.parent))
            if source.result is not None:
                read[source.name] = read_any_result(source.result)
            if source.old is not None:
                earlier = read_any_result(source.old)
                old[source.name] = Baseline(str(source.old), earlier, other_examples, margin, has_unit, _allowed(flags))
                if source.name in read:
                    compare_results(source.name, read[source.name], old[source.name])
        except EvaltoolsError as error:
            wrong.append(str(error))
    wrong += problems(file, runs)
    if len(wrong) > 1:
        raise UsageError("\n  ".join([f"{len(wrong)} mistakes, so nothing was run:", *wrong]))
    if wrong:
        raise UsageError(wrong[0])
    return runs, read, old


def _kept_files(
    flags: GivenFlags, runs: Sequence[Run], inputs: Sequence[Path], files: Mapping[str, Path]
) -> dict[str, Path]:
    """Where ``--keep_results`` puts the result of each run, by its name; checked before anything is run."""
    folder = flags.path(_KEEP)
    if folder is None:
        return {}
    kept = {run.source.name: folder / run.source.file_name for run in runs}
    written = [(f"--{name}", path) for name, path in files.items()]
    require_apart([*written, *((f"the result of {name}:", path) for name, path in kept.items())])
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise UsageError(f"--{_KEEP}={folder}: the folder cannot be made: {error.strerror}") from error
    for path in kept.values():
        require_output_file(path, f"--{_KEEP}, file", inputs)
    return kept


def _run_all(
    runs: Sequence[Run],
    read: Mapping[str, Result],
    kept: Mapping[str, Path],
    console: Console,
    why_at_once: Callable[[Run], str],
) -> _Carried:
    """Carry out every run whose result is not ``read`` already; one that gives none stops no other.

    ``why_at_once`` says why one is not begun.
    """
    carried = _Carried(dict(read))
    for path in kept.values():
        path.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(prefix="evaltools-gate-") as scratch:
        for run in runs:
            name = run.source.name
            if name not in read:
                number, start = len(carried.seconds), time.perf_counter()
                console.print(f"run {number + 1} of {len(runs) - len(read)}: {name} ...", end="")
                try:
                    if busy := why_at_once(run):
                        raise DataError(f"run {name}: not begun: {busy}")
                    carried.found[name] = result_of(run, Path(scratch, f"{number}.json"))
                except EvaltoolsError as error:
                    carried.found[name] = error
                carried.seconds[name] = round(time.perf_counter() - start, 3)
                console.print(f", {carried.seconds[name]:.0f} s")
            found = carried.found[name]
            if isinstance(found, EvaltoolsError):
                complain(f"evaltools: {found}")
            elif name in kept:
                try:
                    write_file(kept[name], encode_json(found))
                except OutputError as error:
                    carried.not_kept.append(error)
    return carried


def _summary(held: Sequence[GateDecisions]) -> str:
    """The last line: how many limits there are, how many of them were measured, and how many are kept."""
    verdicts = [decision.verdict for report in held for decision in report.decisions]
    measured = len(verdicts) - verdicts.count("not measured") - verdicts.count("skipped")
    return f"{len(verdicts)} limit{'s' * (len(verdicts) != 1)}, {measured} measured, {verdicts.count('pass')} kept"

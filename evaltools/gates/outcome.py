"""The result of all gates: a row for each configuration of a run, in it one for each limit, and how they are shown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from evaltools.gates.check import GateDecisions
from evaltools.gates.decide import Decision
from evaltools.metrics.interval import Interval
from evaltools.report.words.facts import counted
from evaltools.result.facts import Environment, Model
from evaltools.result.figure import Figure
from evaltools.result.result import LIMIT, Result, Row, next_step, warning
from evaltools.result.section import Cell, Lines, Note, Section, Sentence, Table, Word
from evaltools.result.verdict import GateVerdict, Verdict, ending_of, worst_verdict
from evaltools.text import printable

COMMAND: Final = "gate"
_ALLOWED: Final = "allow_inconclusive"
_ANY: Final = "*"
_COUNTED: Final[Mapping[GateVerdict, str]] = {
    "fail": "failed",
    "not measured": "not measured",
    "inconclusive": "inconclusive",
    "pass": "passed",
    "skipped": "skipped",
}
"""How verdicts are counted, in this order."""


def outcome_of(
    gates: str, reports: Sequence[GateDecisions], environment: Environment, is_inconclusive_allowed: bool = False
) -> Result:
    """What came of the gates of a file, whose name is ``gates``; names are free of what commands a terminal.

    ``is_inconclusive_allowed``: what too few examples leave open is no error.
    """
    grouped: dict[tuple[str, str, str], list[tuple[GateDecisions, Decision]]] = {}
    for report in reports:
        for decision in report.decisions:
            key = (_name(report.run), _name(report.model), _name(decision.configuration))
            grouped.setdefault(key, []).append((report, decision))
    models = list(dict.fromkeys(model for _, model, _ in grouped)) or [_ANY]
    rows = [_row(run, models.index(model), name, found) for (run, model, name), found in grouped.items()]
    texts = (f"{_name(report.run)}: {_line(text)}" for report in reports for text in report.warnings)
    return Result(
        COMMAND,
        environment,
        [Model(name, "", 0, 0, [], []) for name in models],
        rows,
        subject="limits" if gates.startswith("--") else Path(gates).name,
        given={"gates": gates},
        options={_ALLOWED: True} if is_inconclusive_allowed else {},
        notes=[*map(warning, dict.fromkeys(texts)), *_steps(rows)],
        blocks=[Section("", [Sentence(_answer(rows)), *_limits(rows, models, gates)], "first")],
        limits_broken="fail" in _kinds(rows),
    )


def _row(run: str, model: int, name: str, found: Sequence[tuple[GateDecisions, Decision]]) -> Row:
    report, decision = found[0]
    times = {"elapsed_s": report.elapsed_s, "inference_s": report.own_s.get(decision.configuration, 0.0)}
    kinds = [each.verdict for _, each in found]
    return Row(
        name,
        job=run,
        model=model,
        figures={each: Figure(value, "s") for each, value in times.items() if value},
        verdicts=[Verdict(worst_verdict(kinds), "limits", texts=[_counts(kinds)])],
        rows=[_limit(each) for _, each in found],
    )


def _limit(decision: Decision) -> Row:
    found, reason = decision.found, _line(decision.reason)
    said = [] if found is None else [f"found {_line(found.text)}"]
    figure = "" if found is None else _line(found.figure)
    texts = {} if found is None else {"found": _line(found.number), "output": _line(found.output or "")}
    bounds = None if found is None or found.low is None or found.high is None else Interval(found.low, found.high)
    return Row(
        _line(decision.limit),
        LIMIT,
        "not measured" if decision.verdict == "not measured" else "measured",
        reason,
        counts={"examples": decision.examples} if decision.examples else {},
        texts={name: text for name, text in texts.items() if text},
        figures={} if found is None else {figure: Figure(found.value, found.unit, interval=bounds)},
        verdicts=[
            Verdict(
                decision.verdict,
                figure,
                examples_needed=decision.examples_needed,
                texts=[*said, *([reason] if reason else [])],
            )
        ],
    )


def _name(text: str) -> str:
    return _line(text) or _ANY


def _line(text: str) -> str:
    return printable(" ".join(text.split()))


def limits_of(rows: Sequence[Row]) -> Iterator[tuple[Row, Row, Verdict]]:
    """Each limit in the rows of configurations: that row, its own, and the verdict."""
    return ((row, limit, verdict) for row in rows for limit in row.rows for verdict in limit.verdicts)


def _kinds(rows: Sequence[Row]) -> list[str]:
    return [verdict.kind for _, _, verdict in limits_of(rows)]


def exit_code_of(outcome: Result) -> int:
    """That of the worst verdict."""
    return ending_of(worst_of(outcome), is_inconclusive_allowed(outcome)).exit_code


def worst_of(outcome: Result) -> GateVerdict:
    """The worst verdict of all."""
    kinds = _kinds(outcome.rows)
    return worst_verdict(kind for kind in _COUNTED if kind in kinds)


def is_inconclusive_allowed(outcome: Result) -> bool:
    """Whether what too few examples leave open is no error."""
    return bool(outcome.options.get(_ALLOWED))


def counts(outcome: Result) -> str:
    """How many limits came out how: what is broken first, then what nobody knows."""
    return _counts(_kinds(outcome.rows))


def _counts(kinds: Sequence[str]) -> str:
    """The same of the kinds of verdicts.

    >>> _counts(["pass", "not measured"])
    '1 not measured, 1 passed'
    """
    return ", ".join(f"{kinds.count(kind)} {word}" for kind, word in _COUNTED.items() if kind in kinds)


def _answer(rows: Sequence[Row]) -> str:
    """How many limits are kept, and what the others are."""
    kinds = _kinds(rows)
    if not kinds:
        return "No limit was checked."
    kept = kinds.count("pass")
    if kept == len(kinds):
        return f"All {kept} limits are kept." if kept > 1 else "The limit is kept."
    if len(kinds) == 1:
        return f"The limit is {'broken' if kinds[0] == 'fail' else kinds[0]}."
    verb = "is" if kept < 2 else "are"
    answer = f"{kept or 'none'} of {counted(len(kinds), 'limit')} {verb} kept: {_counts(kinds)}."
    if "fail" not in kinds:
        return f"No limit is broken, {'but' if kept else 'and'} {answer}"
    return answer[0].upper() + answer[1:]


def _steps(rows: Sequence[Row]) -> Iterator[Note]:
    """What shows why limits are broken, and what decides those that are open."""
    kinds = _kinds(rows)
    if "fail" in kinds:
        yield next_step("shows which examples changed", "evaltools report RESULT.json --output=FILE.html")
    if "inconclusive" in kinds:
        yield next_step("measure more: the remark on each inconclusive limit says what decides it")


def _limits(rows: Sequence[Row], models: Sequence[str], gates: str) -> Iterator[Table | Lines]:
    """The table of all limits, and why some did not pass; those of a run with the same reason share one remark."""
    cells: list[Sequence[Cell]] = []
    why: dict[tuple[str, str], list[tuple[Row, Row, Verdict]]] = {}
    for row, limit, verdict in limits_of(rows):
        names = (row.job, Path(models[row.model]).name, row.name, limit.name)
        examples = str(limit.counts["examples"]) if limit.counts else ""
        cells.append((*names, limit.texts.get("found", ""), examples, Word(verdict.kind, verdict.tone)))
        if verdict.kind != "pass":
            why.setdefault((row.job, f"{verdict.kind}: {verdict.why}"), []).append((row, limit, verdict))
    if cells:
        columns = ("run", "model", "configuration", "limit", "found", "examples", "verdict")
        table = Table(f"Limits of {gates}", columns, cells, names=5, ranks=(0, 2, 0, 0, 0, 1, 0))
        is_named = all(_ANY not in row[:2] for row in cells)
        yield table.with_facts({"run": "run {}", "model": "{}"}) if is_named else table
    if why:
        yield Lines([Note(_place(run, found), text, found[0][-1].tone) for (run, text), found in why.items()])


def _place(run: str, found: Sequence[tuple[Row, Row, Verdict]]) -> str:
    """The run, the names of all configurations, and the limit, or how many there are."""
    limits = list(dict.fromkeys(limit.name for _, limit, _ in found))
    names = dict.fromkeys(row.name for row, _, _ in found)
    return ", ".join([run, *names, limits[0] if len(limits) == 1 else f"{len(limits)} limits"])

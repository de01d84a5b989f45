"""Results of searches made by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from evaltools.locate.conclude import conclude, found
from evaltools.locate.rows import ACCUMULATED, SINGLE, decibels, figure, figures, operator_row
from evaltools.metrics.interval import Interval
from evaltools.operators.answer import Answer, OperatorStatus
from evaltools.result.facts import Environment, Model
from evaltools.result.figure import Figure
from evaltools.result.result import Result, Row
from evaltools.result.verdict import Verdict

INPUTS = ("seed 1",)
AT_FAULT = "operator at fault"


def errors(name: str, worst: float, relative: float, unit: str = "") -> dict[str, Figure]:
    return {
        name: figure(worst, unit),
        f"{name}_relative": figure(relative),
        **figures("dB", **{f"{name}_sqnr_db": decibels(relative)}),
    }


def operator(
    place: int,
    name: str,
    tensor: str,
    status: OperatorStatus,
    single: tuple[float, float] | None = None,
    accumulated: tuple[float, float] | None = None,
    unit: str = "",
    ran_on: str = "",
    **values: float,
) -> Row:
    """``single`` and ``accumulated`` are the largest error and the relative one."""
    row = operator_row(place, name, tensor, status, ran_on=ran_on)
    of_errors = {SINGLE: single, ACCUMULATED: accumulated}
    known = [errors(kind, *pair, unit) for kind, pair in of_errors.items() if pair is not None]
    all_of_them = {name: each for of_kind in known for name, each in of_kind.items()} | figures(**values)
    status_of_row: Any = "measured" if known else "not measured"
    return replace(row, figures=all_of_them, status=status_of_row, reason="" if known else row.reason)


def suspected(row: Row, texts: Sequence[str], *parts: Row) -> Row:
    place = row.counts["index"]
    verdict = Verdict(
        "confirmed",
        "operators",
        texts=[f"{row.name} -> {row.texts['tensor']!r}: confirmed: wrong by itself and in the model", *texts],
    )
    return replace(row, verdicts=[verdict], counts={**row.counts, "first": place, "last": place}, rows=list(parts))


def evidence(method: str, part: str, beyond: int, runs: int) -> Row:
    return Row(method, "evidence", counts={"beyond": beyond, "runs": runs}, texts={"part": part, "agrees": "yes"})


def in_float(row: Row, sqnr_db: float, gain_db: float, rank: int = 0, interval: Interval | None = None) -> Row:
    gains = {**figures("dB", in_float_sqnr_db=sqnr_db), "in_float_gain_db": figure(gain_db, "dB", interval)}
    ranked = {"keep_in_float": rank} if rank else {}
    return replace(row, figures={**row.figures, **gains}, counts={**row.counts, **ranked})


def tried_in_float(measured_in: str, sqnr_db: float, candidates: int, tried: int) -> Row:
    counts = {"candidates": candidates, "tried": tried}
    return Row(
        "in float", "in_float", counts=counts, texts={"measured_in": measured_in}, figures=figures(sqnr_db=sqnr_db)
    )


def not_decided(why: str) -> Answer:
    return Answer("not decided", f"not decided: {why}")


def by_name(text: str) -> Answer:
    return Answer("compared by name", f"compared by name: {text}")


def search(
    configuration: Row,
    model: Model,
    environment: Environment,
    operators: Sequence[Row],
    answer: Answer | None = None,
    **more: Any,
) -> Result:
    """One that found the last operator at fault, where nothing else is said."""
    counts = {"inputs": 5, "compiles": len(operators)}
    last = operators[-1] if operators else Row("")
    at_fault = Answer(AT_FAULT, f"{AT_FAULT}: {last.name}", "bad", (last.counts.get("index", 0),))
    entry = replace(configuration, counts=counts)
    return found(entry, model, environment, answer or at_fault, operators, INPUTS, **more)


def concluded(result: Result) -> Result:
    return conclude(result, INPUTS)

"""Puts what a search found together: a row for each operator, and how sure suspects are."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from evaltools.locate.explain import Explained
from evaltools.locate.rows import (
    ACCUMULATED,
    SINGLE,
    figures,
    index_of,
    operator_row,
    present,
    with_errors,
)
from evaltools.model.cut import CuttableModel
from evaltools.operators.answer import is_undecided, outputs_of, status_of
from evaltools.operators.judge import FP32, LOWER, furthest, least_limit, size_of
from evaltools.operators.part import TensorRuns
from evaltools.operators.state import Evidence, Found, SearchState, SuspectStatus, is_taken
from evaltools.result.result import Row
from evaltools.result.verdict import Verdict
from evaltools.text import steps

_BIASED: Final = "its values are off to one side by at least {} on average: no rounding"


_SURE: Final[Mapping[SuspectStatus, str]] = {
    "confirmed": "confirmed: wrong by itself and in the model",
    "confirmed in context": "confirmed: its operators are right one by one and wrong together (fusion or memory)",
    "only in context": "only in context: its operators are right one by one and wrong together (fusion or memory)",
    "only by itself": "only by itself: in the model it is right, so that the delegate does something else there",
    "not confirmed": "not confirmed: only one method shows it",
    "unclear": "unclear: beyond its tolerance by so little that a lower precision may be all that is wrong",
    "crashes by itself": "by itself it ends in a crash, a hang or an error",
    "crashes in context": "together they end in a crash, a hang or an error; one by one they do not",
}


_NOT_THERE: Final = "in the model the delegate does not run it"


def operators(state: SearchState, model: CuttableModel, places: Iterable[int], explained: Explained) -> list[Row]:
    """A row for each operator that was to be looked at; suspects have a verdict, and as parts what shows it.

    ``single`` is the error of the operator by itself, ``accumulated`` that in the whole model. ``gain`` is what it
    makes of the error of its inputs: the relative error of its output, divided by the largest of its inputs. ``size``
    is its own error as the rule of verdicts counts it, ``tolerance`` the largest that the rule accepts, which is left
    out where rounding moves the values too far to say.
    """
    accumulated = _accumulated(state)
    suspects = {found.place: found for found in state.suspects}
    rows = []
    for place in places:
        row = _operator(place, state, model, accumulated)
        found = suspects.get(place)
        rows.append(row if found is None else _suspected(row, found, explained.parts.get(place, []), model))
    return rows


def _operator(place: int, state: SearchState, model: CuttableModel, accumulated: dict[int, TensorRuns]) -> Row:
    made, name, outcome = model.made_by(place), model.operators[place], state.singles.get(place)
    whole = next((accumulated[tensor] for tensor in made if tensor in accumulated), None)
    status, why = status_of(place, state, model), _reason(place, state)
    if not is_taken(place, state, model):
        return operator_row(place, name, model.name(made[0]) if made else "", status, _NOT_THERE)
    if outcome is None or not outcome.ran:
        row = operator_row(place, name, model.name(made[0]) if made else "", status, why)
        return _with_accumulated(row, whole, state, model, accumulated)
    limits = state.limits.get(place) or {runs.tensor: least_limit(runs, state.precision) for runs in outcome.outputs}
    runs = furthest(outcome.outputs, limits)
    limit = limits[runs.tensor]
    why = why or (
        _BIASED.format(steps(f"{runs.bias:.2g}")) if runs.bias and not limit.steps and limit.beyond(runs) else ""
    )
    row = operator_row(place, name, runs.name, status, why, ", ".join(outcome.delegates) or "CPU")
    row = with_errors(row, SINGLE, runs, limit, runs.unit == "steps")
    sizes = figures(size=size_of(runs, limit.steps), tolerance=_finite(limit.size))
    row = replace(row, figures={**row.figures, **sizes})
    return _with_accumulated(row, accumulated.get(runs.tensor, whole), state, model, accumulated)


def _with_accumulated(
    row: Row,
    runs: TensorRuns | None,
    state: SearchState,
    model: CuttableModel,
    accumulated: dict[int, TensorRuns],
) -> Row:
    if runs is None:
        return row
    place = index_of(row)
    fed = [accumulated[tensor].relative for tensor in model.fed_to(place) if tensor in accumulated]
    largest = max(fed, default=0.0)
    limit = state.limits.get(place, {}).get(runs.tensor) or least_limit(runs, state.precision)
    gain = runs.relative / largest if largest and math.isfinite(largest) else None
    row = with_errors(row, ACCUMULATED, runs, limit, runs.unit == "steps")
    return replace(row, figures={**row.figures, **figures(gain=gain)})


def _suspected(row: Row, found: Found, explained: Sequence[Row], model: CuttableModel) -> Row:
    """The row with how sure it is that the operator is at fault, what shows it, why, and what to do."""
    place = str(found.first) if found.first == found.last else f"{found.first}-{found.last}"
    texts = [f"#{place} {model.operators[found.place]} -> {model.name(found.tensor)!r}: {_SURE[found.status]}"]
    texts += map(_evidence_in_words, found.evidence)
    reaches = {} if found.reaches_output is None else {"reaches_output": "yes" if found.reaches_output else "no"}
    if reaches:
        texts.append(f"its error {'reaches' if found.reaches_output else 'does not reach'} the model's outputs")
    texts += [
        f"with {each.name}: {each.texts['found']} ({each.texts['meaning']})"
        for each in explained
        if each.role == "setting"
    ]
    for cause in (each for each in explained if each.role == "cause"):
        link = f" ({cause.texts['link']})" if "link" in cause.texts else ""
        texts.append(f"cause: {cause.name}: {cause.texts['shown_by']}")
        texts.append(f"what to do: {cause.texts['remedy']}{link}")
    return replace(
        row,
        counts={**row.counts, "first": found.first, "last": found.last},
        texts={**row.texts, **reaches},
        verdicts=[Verdict(found.status, "operators", texts=texts)],
        rows=[*map(_evidence, found.evidence), *explained],
    )


def _evidence(found: Evidence) -> Row:
    texts = {"part": found.part, "agrees": "yes" if found.agrees else "no", "note": found.note}
    return Row(found.method, "evidence", counts={"beyond": found.beyond, "runs": found.runs}, texts=present(texts))


def _evidence_in_words(found: Evidence) -> str:
    where = f"operator{'s' * ('-' in found.part)} {found.part}"
    runs = f"{found.beyond} of {found.runs} runs beyond the tolerance" if found.runs else "could not be run"
    return f"{found.method}, {where}: {runs}{f' ({found.note})' if found.note else ''}"


def _finite(size: float) -> float | None:
    return size if math.isfinite(size) else None


def _accumulated(state: SearchState) -> dict[int, TensorRuns]:
    """The tensors of the whole model: copies, and its outputs as they are."""
    looked_at = [outcome for outcome in (state.taps, state.whole) if outcome is not None and outcome.ran]
    return {runs.tensor: runs for outcome in looked_at for runs in outcome.outputs}


def _reason(place: int, state: SearchState) -> str:
    outcome = state.singles.get(place)
    if outcome is None:
        return ""
    undecided = "rounding by itself moves what it gives too far to say" if is_undecided(place, state) else ""
    return outcome.died or outcome.refused or outcome.resists or outcome.note or undecided


def outputs(state: SearchState, model: CuttableModel) -> list[Row]:
    """The model's outputs as parts of a row; ``explained`` is what their operators give one by one."""
    rows = []
    for seen in outputs_of(state, model):
        runs, limit = seen.runs, seen.limit
        row = with_errors(Row(runs.name, "output"), ACCUMULATED, runs, limit, runs.unit == "steps")
        more = figures(tolerance=_finite(limit.size), explained=seen.explained)
        rows.append(replace(row, figures={**row.figures, **more}))
    return rows


def assumed(state: SearchState) -> str:
    """In which precision the delegate was taken to compute; empty where flags state that, and where nothing ran."""
    if state.stated or not state.limits:
        return ""
    places = [place for place in state.limits if state.singles[place].delegated]
    found = Counter(
        max((limit.precision for limit in state.limits[place].values()), key=LOWER.index, default=FP32)
        for place in places
    )
    texts = [f"{found[name]} of {len(places)} operators in {name}" for name in LOWER if found[name]]
    return ", ".join(texts)

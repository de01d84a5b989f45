"""Puts what a search found together: a row for each operator, how sure suspects are, the answer."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from evaltools.gates.verdict import ODD_REFERENCE
from evaltools.locate.explain import Explained
from evaltools.locate.judge import FP32, INT8, LOWER, furthest, least_limit, size_of
from evaltools.locate.part import TensorRuns
from evaltools.locate.rows import (
    ACCUMULATED,
    SINGLE,
    OperatorStatus,
    figures,
    index_of,
    operator_row,
    present,
    with_errors,
)
from evaltools.locate.state import Evidence, Found, SearchState, SuspectStatus
from evaltools.model.cut import CuttableModel
from evaltools.result.result import Row
from evaltools.result.section import Tone
from evaltools.result.verdict import Verdict

_MOST_NAMED: Final = 4
_PRECISIONS: Final = {
    FP32: "float32",
    "fp16": "float16",
    "bf16": "bfloat16",
    INT8: "int8 what 8-bit weights multiply",
}
_SHIFTED: Final = "nearly all values are a step off to the same side"


_SURE: Final[Mapping[SuspectStatus, str]] = {
    "confirmed": "confirmed: wrong by itself and in the model",
    "confirmed in context": "confirmed: its operators are right one by one and wrong together (fusion or memory)",
    "only in context": "only in context: its operators are right one by one and wrong together (fusion or memory)",
    "only by itself": "only by itself: in the model it is right, so that the delegate does something else there",
    "not confirmed": "not confirmed: only one method shows it",
    "crashes by itself": "by itself it ends in a crash, a hang or an error",
    "crashes in context": "together they end in a crash, a hang or an error; one by one they do not",
}


class Answer(Struct, frozen=True):
    """What was found: a ``kind`` in a few words, and the sentence. ``operators`` are those at fault, by number."""

    kind: str
    text: str
    tone: Tone = "open"
    operators: tuple[int, ...] = ()


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
    status, why = _status(place, state, model), _reason(place, state)
    if outcome is None or not outcome.ran:
        row = operator_row(place, name, model.name(made[0]) if made else "", status, why)
        return _with_accumulated(row, whole, state, model, accumulated)
    limits = state.limits.get(place) or {runs.tensor: least_limit(runs, state.precision) for runs in outcome.outputs}
    runs = furthest(outcome.outputs, limits)
    limit = limits[runs.tensor]
    why = why or (_SHIFTED if runs.is_shifted and limit.beyond(runs) else "")
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
    undecided = "rounding by itself moves what it gives too far to say" if _is_undecided(place, state) else ""
    return outcome.died or outcome.refused or outcome.resists or outcome.note or undecided


def _is_undecided(place: int, state: SearchState) -> bool:
    return any(math.isinf(limit.size) for limit in state.limits.get(place, {}).values())


def _status(place: int, state: SearchState, model: CuttableModel) -> OperatorStatus:
    if place in model.folded:
        return "computes from constants"
    outcome = state.singles.get(place)
    if outcome is None:
        return "not tried"
    if outcome.died:
        return "crashes by itself"
    if outcome.refused:
        return "refused by itself"
    if outcome.resists:
        return "cannot be cut out"
    if not outcome.is_evidence:
        return "no evidence"
    if _is_undecided(place, state):
        return "no evidence"
    limits = state.limits.get(place, {})
    if any(limits[runs.tensor].beyond(runs) for runs in outcome.outputs if runs.tensor in limits):
        return "wrong"
    shown = _precision_shown(place, state)
    if shown == INT8 or (shown != FP32 and outcome.delegated):  # what a loop runs may be delegated, and it is not
        return "precision"
    return "right" if outcome.delegated else "stays on the CPU"


def _precision_shown(place: int, state: SearchState) -> str:
    """The lower precision that an operator needs to be right by itself; fp32 where it is exact."""
    limits, outputs = state.limits.get(place, {}), state.singles[place].outputs
    off = [runs.tensor for runs in outputs if least_limit(runs, FP32).beyond(runs)]
    return max((limits[tensor].precision for tensor in off if tensor in limits), key=LOWER.index, default=FP32)


def outputs(state: SearchState, model: CuttableModel) -> list[Row]:
    """The model's outputs as parts of a row; ``explained`` is what their operators give one by one."""
    rows = []
    for runs in state.whole.outputs:
        maker = model.makers.get(runs.tensor, -1)
        least = least_limit(runs, state.precision, len(model.operators))
        limit = state.limits.get(maker, {}).get(runs.tensor, least).at_least(least.size)
        single = state.singles.get(maker)
        own = [each for each in (single.outputs if single else ()) if each.tensor == runs.tensor]
        explained = max((each.chained[0] for each in own if each.chained), default=None)
        row = with_errors(Row(runs.name, "output"), ACCUMULATED, runs, limit, runs.unit == "steps")
        more = figures(tolerance=_finite(limit.size), explained=explained)
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


def answer(state: SearchState, model: CuttableModel) -> Answer:
    """The answer that this state of the search allows."""
    by_status: dict[str, list[int]] = {}
    for found in sorted(state.suspects, key=lambda each: each.place):
        by_status.setdefault(found.status, []).append(found.place)

    def of(kind: str, words: str, tone: Tone, *statuses: str) -> Answer | None:
        places = [place for status in statuses for place in by_status.get(status, ())]
        return Answer(kind, f"{words} {named(places, model)}", tone, tuple(places)) if places else None

    if state.dies_at_once:
        return Answer("crash", f"the delegate crashes before it takes any node: {state.whole.died}", "bad")
    if state.odd_reference:
        kept = "with all tensors kept its own kernels give what the test gives"
        return Answer(ODD_REFERENCE, f"{ODD_REFERENCE}: {state.odd_reference}; {kept}")
    at_fault = (
        of("operator at fault", "operator at fault:", "bad", "confirmed")
        or of("crash", "the delegate fails on", "bad", "crashes by itself", "crashes in context")
        or of(
            "fault in context",
            "wrong in the model, right by itself:",
            "bad",
            "confirmed in context",
            "only in context",
        )
    )
    if at_fault is not None:
        return at_fault
    if state.does_not_run or not state.whole.ran:
        return _does_not_run(state, model)
    suspected = of("suspected", "suspected, not confirmed:", "open", "not confirmed", "only by itself")
    if suspected is not None:
        return suspected
    if state.unexplained:
        return not_decided(_why_unexplained(state))
    return not_decided(state.stopped) if state.stopped else _without_suspect(state, model)


def not_decided(why: str) -> Answer:
    """That there is no answer, and why."""
    return Answer("not decided", f"not decided: {why}")


def named(places: Sequence[int], model: CuttableModel) -> str:
    """The operators with their numbers, of more than four the first three."""
    shown = places if len(places) <= _MOST_NAMED else places[: _MOST_NAMED - 1]
    more = f" and {len(places) - len(shown)} more" if len(shown) < len(places) else ""
    return ", ".join(f"#{place} {model.operators[place]}" for place in shown) + more


def _does_not_run(state: SearchState, model: CuttableModel) -> Answer:
    """The operators that the delegate refuses, where it takes others, or leaves them to the CPU."""
    reason = state.does_not_run or state.whole.died or state.whole.refused or state.stopped
    refused = tuple(place for place, outcome in state.singles.items() if outcome.refused)
    if not refused or not any(outcome.ran for outcome in state.singles.values()):
        return not_decided(reason)
    text = f"the delegate refuses {named(refused, model)}, and therefore the model: {reason}"
    return Answer("refused", text, "bad", refused)


def _why_unexplained(state: SearchState) -> str:
    untried = sorted(place for place, outcome in state.singles.items() if not outcome.ran or not outcome.is_evidence)
    if untried:
        return f"operators that cannot be run by themselves: {', '.join(map(str, untried))}"
    return "the outputs are further off than the operators one by one explain, but no part shows it"


def _without_suspect(state: SearchState, model: CuttableModel) -> Answer:
    off = [row for row in outputs(state, model) if row.value(f"{ACCUMULATED}_beyond")]
    only_together = [row.name for row in off if row.value("explained") == 0]
    if only_together:
        return not_decided(
            f"output {only_together[0]!r} is off, though its operators one by one give 0, and no part shows where"
        )
    shown = [_precision_shown(place, state) for place in state.singles if _status(place, state, model) == "precision"]
    if shown:
        precision = _PRECISIONS[max(shown, key=LOWER.index)]
        computes = f"the delegate computes in {precision}, and its errors are those of that precision"
        return Answer("precision", f"no operator is at fault; {computes}", "good")
    if off:
        kind = "small differences add up"
        return Answer(kind, f"no operator is at fault; {kind}", "good")
    return Answer("no difference", "no difference: every operator and every output is within its tolerance", "good")

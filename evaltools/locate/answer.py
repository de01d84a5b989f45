"""Puts what a search found together: figures of operators, suspects, the answer."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from msgspec.structs import replace

from evaltools.gates.verdict import ODD_REFERENCE
from evaltools.locate.findings import Answer, Operator, OperatorStatus, OutputErrors, Suspect, Unit
from evaltools.locate.judge import FP32, INT8, LOWER, errors, furthest, least_limit, size_of
from evaltools.locate.part import TensorRuns
from evaltools.locate.state import Found, SearchState
from evaltools.model.cut import CuttableModel
from evaltools.result.section import Tone

_MOST_NAMED: Final = 4
_PRECISIONS: Final = {
    FP32: "float32",
    "fp16": "float16",
    "bf16": "bfloat16",
    INT8: "int8 what 8-bit weights multiply",
}
_SHIFTED: Final = "nearly all values are a step off to the same side"


def operators(state: SearchState, model: CuttableModel, places: Iterable[int]) -> tuple[Operator, ...]:
    """One entry for each operator that was to be looked at."""
    accumulated = _accumulated(state)
    return tuple(_operator(place, state, model, accumulated) for place in places)


def _operator(place: int, state: SearchState, model: CuttableModel, accumulated: dict[int, TensorRuns]) -> Operator:
    made = model.made_by(place)
    name, first = model.operators[place], model.name(made[0]) if made else ""
    outcome = state.singles.get(place)
    whole = next((accumulated[tensor] for tensor in made if tensor in accumulated), None)
    base = Operator(place, name, first, _unit(whole), _status(place, state, model), reason=_reason(place, state))
    if outcome is None or not outcome.ran:
        return _with_accumulated(base, whole, state, model, accumulated)
    limits = state.limits.get(place) or {runs.tensor: least_limit(runs, state.precision) for runs in outcome.outputs}
    runs = furthest(outcome.outputs, limits)
    limit = limits[runs.tensor]
    found = replace(
        base,
        tensor=runs.name,
        unit=_unit(runs),
        ran_on=", ".join(outcome.delegates) or "CPU",
        local=errors(runs, limit),
        size=size_of(runs, limit.steps),
        tolerance=_finite(limit.size),
        reason=base.reason or (_SHIFTED if runs.is_shifted and limit.beyond(runs) else ""),
    )
    return _with_accumulated(found, accumulated.get(runs.tensor, whole), state, model, accumulated)


def _with_accumulated(
    found: Operator,
    runs: TensorRuns | None,
    state: SearchState,
    model: CuttableModel,
    accumulated: dict[int, TensorRuns],
) -> Operator:
    if runs is None:
        return found
    fed = [accumulated[tensor].relative for tensor in model.fed_to(found.index) if tensor in accumulated]
    largest = max(fed, default=0.0)
    limit = state.limits.get(found.index, {}).get(runs.tensor) or least_limit(runs, state.precision)
    gain = runs.relative / largest if largest and math.isfinite(largest) else None
    return replace(found, accumulated=errors(runs, limit), gain=gain)


def _finite(size: float) -> float | None:
    return size if math.isfinite(size) else None


def _unit(runs: TensorRuns | None) -> Unit:
    return "steps" if runs is not None and runs.unit == "steps" else "absolute"


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


def suspects(state: SearchState, model: CuttableModel) -> tuple[Suspect, ...]:
    """Those found, in the order of the model."""
    return tuple(_suspect(found, model) for found in sorted(state.suspects, key=lambda found: found.place))


def _suspect(found: Found, model: CuttableModel) -> Suspect:
    return Suspect(
        place=found.place,
        first=found.first,
        last=found.last,
        name=model.operators[found.place],
        tensor=model.name(found.tensor),
        status=found.status,
        evidence=found.evidence,
        reaches_output=found.reaches_output,
    )


def outputs(state: SearchState, model: CuttableModel) -> tuple[OutputErrors, ...]:
    """The model's outputs, each with what its operators one by one explain."""
    entries = []
    for runs in state.whole.outputs:
        maker = model.makers.get(runs.tensor, -1)
        least = least_limit(runs, state.precision, len(model.operators))
        limit = state.limits.get(maker, {}).get(runs.tensor, least).at_least(least.size)
        single = state.singles.get(maker)
        own = [each for each in (single.outputs if single else ()) if each.tensor == runs.tensor]
        explained = max((each.chained[0] for each in own if each.chained), default=None)
        entries.append(OutputErrors(runs.name, _unit(runs), errors(runs, limit), _finite(limit.size), explained))
    return tuple(entries)


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
    off = [entry for entry in outputs(state, model) if entry.errors.beyond]
    only_together = [entry.name for entry in off if entry.explained == 0]
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

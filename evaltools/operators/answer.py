"""What a search says: the status of each operator, how far off the outputs are, and the answer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, Literal

from msgspec import Struct

from evaltools.gates.verdict import ODD_REFERENCE
from evaltools.model.cut import CuttableModel
from evaltools.operators.judge import FP32, INT8, LOWER, Limit, least_limit
from evaltools.operators.part import TensorRuns
from evaltools.operators.state import SearchState, is_taken
from evaltools.result.section import Tone

FAULTS: Final = ("operator at fault", "crash", "fault in context")
"""The answers that name operators which are wrong."""
_MOST_NAMED: Final = 4
_PRECISIONS: Final = {
    FP32: "float32",
    "fp16": "float16",
    "bf16": "bfloat16",
    INT8: "int8 what 8-bit weights multiply",
}
OperatorStatus = Literal[
    "right",
    "wrong",
    "unclear",
    "precision",
    "crashes by itself",
    "refused by itself",
    "stays on the CPU",
    "cannot be cut out",
    "no evidence",
    "computes from constants",
    "not tried",
    "compared",
]
"""What a single operator shows.

right: within its tolerance. wrong: beyond it. unclear: beyond it by so little that the lower precision of the delegate
may be all that is wrong. precision: as far off as rounding to a lower precision explains. crashes by itself, refused by
itself: the delegate died of it, or did not open it. stays on the CPU: the delegate does not take it, or not in the
model. no evidence: the part differs from the model already on the CPU, so that it shows nothing. compared: compared
with the tensor of that name elsewhere, which says nothing of the single operator.
"""


class Answer(Struct, frozen=True):
    """What was found: a ``kind`` in a few words, and the sentence. ``operators`` are those at fault, by number.

    ``short`` is what a first screen says of a long sentence, empty for all of it.
    """

    kind: str
    text: str
    tone: Tone = "open"
    operators: tuple[int, ...] = ()
    short: str = ""


class OutputSeen(Struct, frozen=True):
    """An output of the whole model: its ``runs``, how far it may be off, and what its operators give one by one.

    ``explained`` is the largest difference of an element there, None where that was not run.
    """

    runs: TensorRuns
    limit: Limit
    explained: float | None


def outputs_of(state: SearchState, model: CuttableModel) -> list[OutputSeen]:
    """The model's outputs, where the whole model ran."""
    seen = []
    for runs in state.whole.outputs:
        maker = model.makers.get(runs.tensor, -1)
        least = least_limit(runs, state.precision, len(model.operators))
        limit = state.limits.get(maker, {}).get(runs.tensor, least).at_least(least.size)
        single = state.singles.get(maker)
        own = [each for each in (single.outputs if single else ()) if each.tensor == runs.tensor]
        explained = max((each.chained[0] for each in own if each.chained), default=None)
        seen.append(OutputSeen(runs, limit, explained))
    return seen


def status_of(place: int, state: SearchState, model: CuttableModel) -> OperatorStatus:
    """What an operator by itself shows."""
    if place in model.folded:
        return "computes from constants"
    outcome = state.singles.get(place)
    if outcome is None:
        return "not tried"
    if not is_taken(place, state, model):
        return "stays on the CPU"
    if outcome.died:
        return "crashes by itself"
    if outcome.refused:
        return "refused by itself"
    if outcome.resists:
        return "cannot be cut out"
    if not outcome.is_evidence:
        return "no evidence"
    if is_undecided(place, state):
        return "no evidence"
    limits = state.limits.get(place, {})
    if any(limits[runs.tensor].beyond(runs) for runs in outcome.outputs if runs.tensor in limits):
        return "wrong" if state.is_clear(place) else "unclear"
    shown = precision_shown(place, state)
    if shown == INT8 or (shown != FP32 and outcome.delegated):  # what a loop runs may be delegated, and it is not
        return "precision"
    return "right" if outcome.delegated else "stays on the CPU"


def is_undecided(place: int, state: SearchState) -> bool:
    """Whether rounding by itself moves what an operator gives too far to say."""
    return any(math.isinf(limit.size) for limit in state.limits.get(place, {}).values())


def precision_shown(place: int, state: SearchState) -> str:
    """The lower precision that an operator needs to be right by itself; fp32 where it is exact."""
    limits, outputs = state.limits.get(place, {}), state.singles[place].outputs
    off = [runs.tensor for runs in outputs if least_limit(runs, FP32).beyond(runs)]
    return max((limits[tensor].precision for tensor in off if tensor in limits), key=LOWER.index, default=FP32)


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
        of(FAULTS[0], "operator at fault:", "bad", "confirmed")
        or of(FAULTS[1], "the delegate fails on", "bad", "crashes by itself", "crashes in context")
        or of(
            FAULTS[2],
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
    suspected = of("suspected", "suspected, not confirmed:", "open", "unclear", "not confirmed", "only by itself")
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
    off = [each for each in outputs_of(state, model) if each.limit.beyond(each.runs)]
    only_together = [each.runs.name for each in off if each.explained == 0]
    if only_together:
        return not_decided(
            f"output {only_together[0]!r} is off, though its operators one by one give 0, and no part shows where"
        )
    shown = [precision_shown(place, state) for place in state.singles if status_of(place, state, model) == "precision"]
    if shown:
        precision = _PRECISIONS[max(shown, key=LOWER.index)]
        computes = f"the delegate computes in {precision}, and its errors are those of that precision"
        return Answer("precision", f"no operator is at fault; {computes}", "good")
    if off:
        kind = "small differences add up"
        return Answer(kind, f"no operator is at fault; {kind}", "good")
    return Answer("no difference", "no difference: every operator and every output is within its tolerance", "good")

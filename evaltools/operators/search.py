"""The search: every operator by itself, the whole model, what confirms a suspect, what is wrong only together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from msgspec.structs import replace

from evaltools.gates.verdict import AMPLIFIED, FAR, TIMES
from evaltools.operators.bench import GivenUp
from evaltools.operators.child import UNSEEN
from evaltools.operators.judge import (
    FP32,
    LOWER,
    Limit,
    found_precisions,
    furthest,
    limit_of,
    precision_needed,
    usual_share,
    variants_of,
)
from evaltools.operators.part import Outcome, Part, TensorRuns
from evaltools.operators.state import (
    Evidence,
    Found,
    Subject,
    SuspectStatus,
    evidence_of,
    is_taken,
    repeatability,
    status,
    times_to_see,
)

_MOST_CONFIRMED: Final = 12
_ISLAND: Final = 3
_SECONDS_FOR_RARE: Final = 10.0
_MANY_TIMES: Final = 2.0
"""The tolerance, in the model on exact inputs: so much no rounding makes that is within it by itself."""
_WINDOWS: Final = ((1, 0), (0, 1), (2, 0), (1, 1), (0, 2))
"""How many operators before and behind one make a part with it."""


def search(subject: Subject) -> None:
    """Look for the operators at fault; where a limit is reached, what was found until then stays."""
    try:
        subject.state.whole = subject.bench.measure(subject.whole)
        _suspect_reference(subject)
        measure_alone(subject)
        _copy_all_tensors(subject)
        confirm_suspects(subject)
        look_in_context(subject)
    except GivenUp as error:
        subject.state.stopped = str(error)


def _suspect_reference(subject: Subject) -> None:
    """Where looking at its tensors changes what the CPU gives, and the test agrees with what it gives then."""
    state = subject.state
    if not subject.bench.changes_outputs or not state.whole.ran:
        return
    plain = subject.bench.measure(replace(subject.whole, against=UNSEEN))
    far = [runs for runs in plain.outputs if runs.relative > AMPLIFIED]
    agrees = all(runs.relative <= AMPLIFIED / FAR for runs in state.whole.outputs)
    if far and agrees:
        worst = max(far, key=lambda runs: runs.relative)
        apart = f"differs by up to {worst.worst:.3g}" if worst.worst else "is NaN in one of the two"
        state.odd_reference = f"output {worst.name!r} {apart}"


def _copy_all_tensors(subject: Subject) -> None:
    """A copy of every tensor, in one compile, where the model as it is can be run."""
    if not subject.state.whole.ran:
        return
    model = subject.model
    tensors = [
        tensor
        for place in subject.places
        for tensor in model.made_by(place)
        if model.holds_numbers(tensor) and tensor not in model.graph_outputs
    ]
    if tensors:
        subject.state.taps = subject.bench.measure(replace(subject.part(0, subject.last), taps=tuple(tensors)))


def measure_alone(subject: Subject) -> None:
    """Every operator on the reference's tensors, and on what the operators before it gave; then their limits.

    Those that were measured until a limit of the search was reached have limits, too.
    """
    try:
        for place in subject.places:
            variants = variants_of(subject.arithmetic(place), subject.state.stated)
            part = replace(subject.part(place, place), variants=variants)
            subject.state.singles[place] = subject.bench.measure(part)
    finally:
        _set_limits(subject)


def _set_limits(subject: Subject) -> None:
    state, precisions = subject.state, _precisions(subject)
    state.precision = max([FP32, *precisions.values()], key=LOWER.index)
    for place, outcome in state.singles.items():
        precision = precisions.get(place, FP32)
        state.limits[place] = {
            runs.tensor: limit_of(runs, subject.arithmetic(place), precision) for runs in outcome.outputs
        }
    for unit in ("absolute", "steps"):
        _widen(subject, unit, [place for place, precision in precisions.items() if precision != FP32])


def _precisions(subject: Subject) -> dict[int, str]:
    """The precision of each operator: the one stated, else what those that the delegate ran one by one show."""
    ran = {place: outcome for place, outcome in subject.state.singles.items() if _is_delegated(subject, outcome)}
    if subject.state.stated:
        return dict.fromkeys(subject.state.singles, subject.state.stated)
    floats = {
        place: [runs for runs in outcome.outputs if runs.unit == "absolute" and "float32" in runs.variants]
        for place, outcome in ran.items()
    }
    floats = {place: outputs for place, outputs in floats.items() if outputs}
    needed = {place: _needed(subject, place, outputs) for place, outputs in floats.items()}
    return found_precisions(floats, needed)


def _needed(subject: Subject, place: int, outputs: Sequence[TensorRuns]) -> str:
    """The lowest precision that any output of an operator needs, empty where one is explained by none."""
    needed = [precision_needed(runs, subject.arithmetic(place)) for runs in outputs]
    return max(needed, key=LOWER.index) if all(needed) else ""


def _is_delegated(subject: Subject, outcome: Outcome) -> bool:
    """Whether a delegate that was asked for ran it."""
    asked_for = {delegate.name for delegate in subject.configuration.delegates.requested}
    return outcome.is_evidence and bool(asked_for & set(outcome.delegates))


def _widen(subject: Subject, unit: str, places: Sequence[int]) -> None:
    """Allow operators in a lower precision what most of them do, in floats or in steps."""
    limits, singles = subject.state.limits, subject.state.singles
    seen = [
        (place, runs)
        for place in places
        if _is_delegated(subject, singles[place])
        for runs in singles[place].outputs
        if runs.unit == unit
    ]
    factor = usual_share([limits[place][runs.tensor].share(runs) for place, runs in seen])
    for place, runs in seen:
        limit = limits[place][runs.tensor]
        limits[place][runs.tensor] = replace(limit, size=factor * limit.size)


def suspects(subject: Subject) -> list[int]:
    """The operators that are beyond their limit by themselves, and run on the delegate in the model; worst first."""
    shares = {}
    for place, outcome in subject.state.singles.items():
        limits = subject.state.limits.get(place, {})
        if outcome.is_evidence and outcome.ran and is_taken(place, subject.state, subject.model):
            shares[place] = max(limits[runs.tensor].share(runs) for runs in outcome.outputs)
    return sorted((place for place, share in shares.items() if share > 1), key=lambda place: -shares[place])


def confirm_suspects(subject: Subject) -> None:
    """What crashes by itself is a suspect; what is wrong by itself is looked at in a short part around it."""
    if subject.state.dies_at_once:
        return
    for place, outcome in subject.state.singles.items():
        if outcome.died and is_taken(place, subject.state, subject.model):
            evidence = Evidence("single", str(place), True, 1, 1, outcome.died)
            tensor = subject.model.made_by(place)[0]
            subject.state.suspects.append(Found(place, place, place, tensor, "crashes by itself", (evidence,)))
    found = suspects(subject)
    for number, place in enumerate(found):
        subject.state.suspects.append(_confirmed(subject, place, found, number < _MOST_CONFIRMED))


def _confirmed(subject: Subject, place: int, others: Sequence[int], look_further: bool) -> Found:
    """A suspect with what short parts around it say, and whether its error reaches the model's outputs."""
    outcome, limits = subject.state.singles[place], subject.state.limits[place]
    runs = furthest(outcome.outputs, limits)
    tensor, limit = runs.tensor, limits[runs.tensor]
    single = replace(evidence_of("single", (place, place), runs, limit), note=repeatability(outcome))
    if not look_further:
        return Found(place, place, place, tensor, "not confirmed", (single,))
    evidence = [single, *_around(subject, _often_enough(subject.whole, single), place, others, tensor, limit)]
    reaches = _reaches_output(subject, place, others, single.beyond == single.runs)
    sure = status(evidence)
    if sure == "confirmed" and not subject.state.is_clear(place):
        sure = "unclear"
    return Found(place, place, place, tensor, sure, tuple(evidence), reaches)


def _around(
    subject: Subject, often: Part, place: int, others: Sequence[int], tensor: int, limit: Limit
) -> list[Evidence]:
    """A suspect behind the operators before it, and before those behind it; both on clean tensors.

    Where neither confirms it, it is compared with what the CPU makes of what it was fed, which may be wrong itself.
    Only what is wrong then says anything: with other values there, a fault may not show.
    """
    found: list[Evidence] = []
    start = max([0, place - _ISLAND, *(other + 1 for other in others if other < place)])
    if start < place:
        part = replace(often, first=start, last=place, exposed=(tensor,))
        found += subject.look("island", part, tensor, limit, subject.cpu_noise(start, place, tensor))
    last = min(place + _ISLAND, subject.last)
    if last > place:
        found += subject.look("taps", replace(often, first=place, last=last, taps=(tensor,)), tensor, limit)
    if not found and len(subject.model.operators) - len(subject.model.folded) == 1:
        found.append(evidence_of("whole model", (place, place), subject.state.whole.of(tensor), limit))
    before = max(0, place - _ISLAND)
    fed = tuple(each for each in subject.model.fed_to(place) if subject.model.makers.get(each, -1) >= before)
    if fed and not any(each.agrees for each in found):
        part = replace(often, first=before, last=place, taps=fed, as_fed=True)
        seen = subject.look("as fed", part, tensor, limit)
        note = "compared with what the CPU makes of what it was fed there"
        found += [replace(each, note=note) for each in seen if each.agrees]
    return found


def _often_enough(whole: Part, single: Evidence) -> Part:
    """A part that is run so often that a fault which is not there in each run is missed in one case of 20."""
    needed = times_to_see(single)
    if needed <= whole.runs and single.beyond == single.runs:
        return whole
    return replace(whole, runs=max(whole.runs, needed), seconds=max(whole.seconds, _SECONDS_FOR_RARE))


def _reaches_output(subject: Subject, place: int, others: Sequence[int], always: bool) -> bool | None:
    """Whether the model from that operator on is off at its outputs, and from the next one on less.

    It does not reach them where they are right, though it was there in every run. Else it is not known: where it was
    not tried, where one behind it is wrong as well, or where errors of others are as large, these may hide it.
    """
    if place == subject.last:
        return True
    own = subject.bench.measure(subject.part(place, subject.last))
    rest = subject.bench.measure(subject.part(place + 1, subject.last))
    if not (own.ran and rest.ran):
        return None
    off = any(subject.least(runs).beyond(runs) for runs in own.outputs)
    if off and own.worst > 2 * rest.worst:
        return True
    return False if always and not off and max(others) <= place else None


def look_in_context(subject: Subject) -> None:
    """Where the model is further off than its operators one by one explain, find those that are it together."""
    state, last = subject.state, subject.last
    if state.whole.died and not any(outcome.died for outcome in state.singles.values()):
        _find_death(subject)
        return
    if not state.whole.ran:
        return
    suspect = None
    if subject.unexplained(state.whole, 0, last):
        state.unexplained = True
        suspect = _shrunk(subject) if subject.fails(0, last) is not None else None
    if suspect is None:
        suspect = _wrong_on_exact_inputs(subject)
    if suspect is not None and not _is_known(suspect, state.suspects):
        state.suspects.append(suspect)


def _wrong_on_exact_inputs(subject: Subject) -> Found | None:
    """The first operator that is right by itself, and in the model far off on inputs that are exact there.

    A part of two or three operators may show it as well.
    """
    state, model = subject.state, subject.model
    looked_at = [outcome for outcome in (state.taps, state.whole) if outcome is not None and outcome.ran]
    seen = {runs.tensor: runs for outcome in looked_at for runs in outcome.outputs}
    for place in subject.places:
        single = state.singles.get(place)
        fed = [tensor for tensor in model.fed_to(place) if tensor not in model.graph_inputs]
        if single is None or not single.ran or not single.is_evidence:
            continue
        if any(tensor not in seen or seen[tensor].worst for tensor in fed):
            continue
        for runs in single.outputs:
            limit = state.limits[place][runs.tensor]
            copy = seen.get(runs.tensor)
            if copy is not None and not limit.beyond(runs) and limit.share(copy) > _MANY_TIMES:
                return _window(subject, place, copy, limit)
    return None


def _window(subject: Subject, place: int, copy: TensorRuns, limit: Limit) -> Found:
    """The smallest part around an operator that shows what its copy in the whole model does, else only that."""
    in_model = replace(evidence_of("taps", (0, subject.last), copy, limit), note="what it is fed is exact there")
    for before, behind in _WINDOWS:
        first, last = place - before, place + behind
        if first >= 0 and last <= subject.last:
            part = replace(subject.part(first, last), exposed=(copy.tensor,))
            seen = subject.look("range", part, copy.tensor, limit)
            if any(each.agrees for each in seen):
                return Found(place, first, last, copy.tensor, "only in context", (*seen, in_model))
    return Found(place, place, place, copy.tensor, "not confirmed", (in_model,))


def _is_known(found: Found, suspects: list[Found]) -> bool:
    """Whether an operator that is wrong by itself lies in the part."""
    return any(found.first <= known.place <= found.last for known in suspects)


def _find_death(subject: Subject) -> None:
    """The smallest part of which the delegate's process dies, or which it cannot run."""

    def dies(first: int, end: int) -> bool:
        return bool(subject.bench.measure(subject.part(first, end)).died)

    if not dies(0, subject.last):
        return
    start, end, _ = _smallest(subject, dies)
    outcome = subject.bench.measure(subject.part(start, end))
    evidence = Evidence("range", f"{start}-{end}", True, 1, 1, outcome.died)
    tensor = subject.model.made_by(end)[0]
    subject.state.suspects.append(Found(end, start, end, tensor, "crashes in context", (evidence,)))


def _smallest(subject: Subject, fails: Callable[[int, int], object]) -> tuple[int, int, int | None]:
    """The smallest part that fails: its end by bisection, then its beginning, and the one that passes behind it."""
    ends = subject.places
    low, high = -1, len(ends) - 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if fails(0, ends[middle]) else (middle, high)
    end = ends[high]
    starts = [place for place in ends if place <= end]
    low, high = 0, len(starts)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fails(starts[middle], end) else (low, middle)
    return starts[low], end, starts[low + 1] if low + 1 < len(starts) else None


def _shrunk(subject: Subject) -> Found | None:
    """The smallest part that is further off than explained, and what speaks for it."""
    start, end, behind = _smallest(subject, subject.fails)
    runs = subject.fails(start, end)
    if runs is None:
        return None
    limit, outputs = subject.least(runs), subject.state.whole.outputs
    known = next((each for each in outputs if each.tensor == runs.tensor), max(outputs, key=lambda each: each.relative))
    evidence = [
        evidence_of("range", (start, end), runs, limit),
        evidence_of("whole model", (0, subject.last), known, subject.least(known)),
    ]
    is_confirmed = behind is not None and all(each.agrees for each in evidence)
    if behind is not None:
        count = len(runs.largest)
        evidence.append(Evidence("range", f"{behind}-{end}", True, 0, count, "without the first: right"))
    copied = replace(subject.part(start, end), taps=(runs.tensor,))
    for seen in subject.look("taps", copied, runs.tensor, limit.at_least(runs.relative / 2)):
        how = "wrong, too" if seen.agrees else "right: fusion or memory"
        evidence.append(replace(seen, note=f"a copy of the tensor is {how}"))
    status: SuspectStatus = "confirmed in context" if is_confirmed else "only in context"
    tensor = _first_wrong_copy(subject, start, end) or runs.tensor
    return Found(subject.model.makers[tensor], start, end, tensor, status, tuple(evidence))


def _first_wrong_copy(subject: Subject, start: int, end: int) -> int | None:
    """The first tensor in a part whose copy in the whole model is off, though the operators before it are not."""
    state = subject.state
    if state.taps is None or not state.taps.ran:
        return None
    copies = {runs.tensor: runs for runs in state.taps.outputs}
    for place in range(start, end + 1):
        limits = state.limits.get(place, {})
        for tensor in (each for each in subject.model.made_by(place) if each in copies):
            limit = limits.get(tensor, subject.least(copies[tensor]))
            if limit.at_least(TIMES * subject.chain_noise(tensor)).beyond(copies[tensor]):
                return tensor
    return None

"""Operators that are right one by one and wrong together: the smallest part of the model that shows it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec.structs import replace

from evaltools.gates.verdict import TIMES
from evaltools.locate.findings import Found, Subject, evidence_of
from evaltools.locate.judge import Limit
from evaltools.locate.part import TensorRuns
from evaltools.result.locate import Evidence, SuspectStatus

_MANY_TIMES: Final = 2.0
"""The tolerance, in the model on exact inputs: so much no rounding makes that is within it by itself."""
_WINDOWS: Final = ((1, 0), (0, 1), (2, 0), (1, 1), (0, 2))
"""How many operators before and behind one make a part with it."""


def look_in_context(subject: Subject) -> None:
    """Where the model is further off than its operators one by one explain, find those that are it together."""
    found, last = subject.found, subject.last
    if found.whole.died and not any(outcome.died for outcome in found.singles.values()):
        _find_death(subject)
        return
    if not found.whole.ran:
        return
    suspect = None
    if subject.unexplained(found.whole, 0, last):
        found.unexplained = True
        suspect = _shrunk(subject) if subject.fails(0, last) is not None else None
    if suspect is None:
        suspect = _wrong_on_exact_inputs(subject)
    if suspect is not None and not _is_known(suspect, found.suspects):
        found.suspects.append(suspect)


def _wrong_on_exact_inputs(subject: Subject) -> Found | None:
    """The first operator that is right by itself, and in the model far off on inputs that are exact there.

    A part of two or three operators may show it as well.
    """
    found, model = subject.found, subject.model
    looked_at = [outcome for outcome in (found.taps, found.whole) if outcome is not None and outcome.ran]
    seen = {runs.tensor: runs for outcome in looked_at for runs in outcome.outputs}
    for place in subject.places:
        single = found.singles.get(place)
        fed = [tensor for tensor in model.fed_to(place) if tensor not in model.graph_inputs]
        if single is None or not single.ran or not single.is_evidence:
            continue
        if any(tensor not in seen or seen[tensor].worst for tensor in fed):
            continue
        for runs in single.outputs:
            limit = found.limits[place][runs.tensor]
            copy = seen.get(runs.tensor)
            if copy is not None and not limit.beyond(runs) and limit.share(copy) > _MANY_TIMES:
                return _around(subject, place, copy, limit)
    return None


def _around(subject: Subject, place: int, copy: TensorRuns, limit: Limit) -> Found:
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
    subject.found.suspects.append(Found(end, start, end, tensor, "crashes in context", (evidence,)))


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
    limit, outputs = subject.least(runs), subject.found.whole.outputs
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
    found = subject.found
    if found.taps is None or not found.taps.ran:
        return None
    copies = {runs.tensor: runs for runs in found.taps.outputs}
    for place in range(start, end + 1):
        for tensor, limit in found.limits.get(place, {}).items():
            noise = TIMES * subject.chain_noise(tensor)
            if tensor in copies and limit.at_least(noise).beyond(copies[tensor]):
                return tensor
    return None

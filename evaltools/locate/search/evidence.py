"""What one look says of a culprit, and how sure several looks make it."""

from __future__ import annotations

from collections.abc import Sequence

from evaltools.locate.parts.part import Outcome, TensorRuns
from evaltools.locate.search.judge import Limit
from evaltools.result.locate import CulpritStatus, Evidence


def evidence_of(method: str, part: tuple[int, int], runs: TensorRuns, limit: Limit) -> Evidence:
    """The runs of a tensor that are beyond a limit, in the operators ``part``, the first and the last of them."""
    first, last = part
    where, beyond = str(first) if first == last else f"{first}-{last}", limit.beyond(runs)
    return Evidence(method, where, beyond > 0, beyond, len(runs.largest), to_one_side(runs, limit))


def to_one_side(runs: TensorRuns, limit: Limit) -> str:
    """Why a tensor is wrong of which no single element is too far off; empty for others."""
    side = limit.only_to_one_side(runs)
    return (
        f"no element is too far off, but nearly all are to one side: {side:+.2g} steps or more on average"
        if side
        else ""
    )


def times_to_see(alone: Evidence) -> int:
    """How many runs show a fault with 95 % that was there in ``beyond`` of ``runs``: the rule of three.

    >>> times_to_see(Evidence("single", "3", True, beyond=1, runs=25))
    75
    """
    return -(-3 * alone.runs // max(1, alone.beyond))


def status(evidence: Sequence[Evidence]) -> CulpritStatus:
    """What the first evidence, the operator alone, and all others say together."""
    alone, others = evidence[0], [each for each in evidence[1:] if each.runs]
    if any(each.agrees for each in others):
        return "confirmed"
    seen_enough = any(each.runs >= times_to_see(alone) for each in others)
    return "only alone" if seen_enough else "not confirmed"


def repeatability(outcome: Outcome) -> str:
    """Whether the delegate keeps a state: the same inputs should give the same outputs again."""
    if not outcome.unlike:
        return ""
    return (
        f"{outcome.unlike} input{'s' if outcome.unlike > 1 else ''} gave other outputs the next time: it keeps a state"
    )

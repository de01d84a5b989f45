"""Every operator alone: its error on the reference's tensors, how far that may be, and which are suspects."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from evaltools.locate.parts.part import TensorRuns
from evaltools.locate.search.arithmetic import is_hybrid, sum_length, usual_bias
from evaltools.locate.search.judge import FP32, Limit, found_precision, limit_of, ordinary
from evaltools.locate.search.subject import Subject


def measure_alone(subject: Subject) -> None:
    """Every operator on the reference's tensors, and on what the operators before it gave; then their tolerances."""
    found = subject.found
    floors = "cpu" if subject.stated == FP32 else "cpu and fp16"
    for place in subject.places:
        part = replace(subject.part(place, place), floors=floors, chain=True)
        found.singles[place] = subject.bench.measure(part)
    if not subject.stated:
        found.precision = found_precision(_floats(subject))
    is_low = found.precision != FP32
    wider = {unit: ordinary(list(_shares(subject, unit))) if is_low else 1.0 for unit in ("absolute", "steps")}
    for place, outcome in found.singles.items():
        found.limits[place] = {
            runs.tensor: _limit(subject, runs, place).times(wider[runs.unit]) for runs in outcome.outputs
        }


def suspects(subject: Subject) -> list[int]:
    """The operators that are beyond their tolerance alone, worst first."""
    shares = {}
    for place, outcome in subject.found.singles.items():
        limits = subject.found.limits.get(place, {})
        if outcome.is_evidence and outcome.ran:
            shares[place] = max(limits[runs.tensor].share(runs) for runs in outcome.outputs)
    return sorted((place for place, share in shares.items() if share > 1), key=lambda place: -shares[place])


def _shares(subject: Subject, unit: str) -> Iterable[float]:
    """The errors of outputs of a delegate that was asked for, each divided by its tolerance."""
    for runs, place in _asked_for(subject, unit):
        limit = _limit(subject, runs, place).largest
        if limit:
            yield runs.worst / limit


def _floats(subject: Subject) -> list[tuple[list[TensorRuns], str, int]]:
    """What found_precision needs: float outputs by operator, its name and the length of its sums."""
    outputs: dict[int, list[TensorRuns]] = {}
    for runs, place in _asked_for(subject, "absolute"):
        outputs.setdefault(place, []).append(runs)
    graph = subject.graph
    return [
        (found, graph.nodes[place].operator, sum_length(graph, graph.nodes[place])) for place, found in outputs.items()
    ]


def _asked_for(subject: Subject, unit: str) -> Iterable[tuple[TensorRuns, int]]:
    """The outputs of what a delegate that was asked for ran alone, each with the number of its operator.

    ``unit`` is "absolute" for floats, "steps" for quantised tensors.
    """
    asked_for = {delegate.name for delegate in subject.configuration.delegates.requested}
    for place, outcome in subject.found.singles.items():
        if outcome.is_evidence and asked_for & set(outcome.delegates):
            for runs in outcome.outputs:
                if runs.unit == unit and (unit == "steps" or "float32" in runs.floors):
                    yield runs, place


def _limit(subject: Subject, runs: TensorRuns, place: int) -> Limit:
    graph = subject.graph
    node = graph.nodes[place]
    sums, hybrid, bias = sum_length(graph, node), is_hybrid(graph, node), usual_bias(graph, node)
    return limit_of(runs, node.operator, subject.found.precision, sums, hybrid, bias)

"""Single looks at parts of the model, one for each ``--method``: none of them confirms what it finds."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from msgspec.structs import replace

from evaltools.locate.parts.part import TensorRuns
from evaltools.locate.search.alone import measure_alone, suspects
from evaltools.locate.search.evidence import evidence_of
from evaltools.locate.search.findings import Found
from evaltools.locate.search.judge import furthest
from evaltools.locate.search.subject import Subject

_RANGES: Final = 8


def single(subject: Subject) -> None:
    """Every operator alone."""
    measure_alone(subject)
    _name_suspects(subject)


def tap(subject: Subject) -> None:
    """A copy of every tensor, in one compile, where the model as it is can be run."""
    if not subject.found.whole.ran:
        return
    model = subject.model
    tensors = [
        tensor
        for place in subject.places
        for tensor in model.made_by(place)
        if model.holds_numbers(tensor) and tensor not in model.graph_outputs
    ]
    if tensors:
        subject.found.taps = subject.bench.measure(replace(subject.part(0, subject.last), taps=tuple(tensors)))


def prefix(subject: Subject) -> None:
    """The shortest beginning of the model that fails."""
    place, runs = _first_to_fail(subject.places, lambda place: subject.fails(0, place))
    if runs is not None:
        _suspect(subject, "prefix", (0, place), place, runs)


def suffix(subject: Subject) -> None:
    """The shortest end of the model that fails on the reference's tensors."""
    place, runs = _first_to_fail(subject.places[::-1], lambda place: subject.fails(place, subject.last))
    if runs is not None:
        _suspect(subject, "suffix", (place, subject.last), place, runs)


def equal_ranges(subject: Subject) -> None:
    """Eight parts of the model on clean tensors, each for itself."""
    places = subject.places
    length = -(-len(places) // _RANGES)
    parts = [places[start : start + length] for start in range(0, len(places), length)]
    _ranges(subject, [(part[0], part[-1]) for part in parts])


def islands(subject: Subject) -> None:
    """The delegate's partitions on clean tensors, beside every operator alone, which tells where they are."""
    measure_alone(subject)
    parts = _partitions(subject)
    _name_suspects(subject)
    known = {found.place for found in subject.found.culprits}
    _ranges(subject, [part for part in parts if not known & set(range(part[0], part[1] + 1))])


def _name_suspects(subject: Subject) -> None:
    """The operators that are wrong alone."""
    for place in suspects(subject):
        limits = subject.found.limits[place]
        runs = furthest(subject.found.singles[place].outputs, limits)
        evidence = evidence_of("single", (place, place), runs, limits[runs.tensor])
        subject.found.culprits.append(Found(place, place, place, runs.tensor, "not confirmed", (evidence,)))


def _ranges(subject: Subject, ranges: Iterable[tuple[int, int]]) -> None:
    for first, last in ranges:
        runs = subject.fails(first, last)
        if runs is not None:
            _suspect(subject, "range", (first, last), subject.model.makers[runs.tensor], runs)


def _suspect(subject: Subject, method: str, part: tuple[int, int], place: int, runs: TensorRuns) -> None:
    evidence = evidence_of(method, part, runs, subject.least(runs))
    subject.found.culprits.append(Found(place, *part, runs.tensor, "not confirmed", (evidence,)))


def _first_to_fail(places: tuple[int, ...], fails: Callable[[int], TensorRuns | None]) -> tuple[int, TensorRuns | None]:
    """By halving, the first place at which something fails where it also fails at all behind; None if nowhere."""
    low, high = -1, len(places)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if fails(places[middle]) else (middle, high)
    return (places[high], fails(places[high])) if high < len(places) else (places[-1], None)


def _partitions(subject: Subject) -> list[tuple[int, int]]:
    """Operators in a row that the delegate takes when they are alone: its partitions, as far as can be told."""
    found: list[list[int]] = []
    for place in subject.places:
        if not subject.found.singles[place].delegated:
            continue
        if found and found[-1][-1] == place - 1:
            found[-1].append(place)
        else:
            found.append([place])
    return [(part[0], part[-1]) for part in found]

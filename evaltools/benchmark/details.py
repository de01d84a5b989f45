"""What a benchmark shows beside the figures of its rows: memory and warmth, operators, what disturbed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from evaltools.metrics.latency import drift, is_clear
from evaltools.metrics.op_profile import OpProfile, explained_share, op_figures, slowdown, top_on_cpu, total_us
from evaltools.report.content import first_lines, some_of
from evaltools.report.page.figures import moments, temperatures
from evaltools.report.words.facts import counted, label, latency_of
from evaltools.report.words.numbers import milliseconds, three_digits
from evaltools.result.facts import Model
from evaltools.result.result import Row
from evaltools.result.rounds import Conditions, Measured, Round
from evaltools.result.section import Axis, Block, Chart, Lines, Mark, Note, Section

_MOST_NAMED: Final = 4
_MOST_DRAWN: Final = 8
_MOST_OPERATORS: Final = 12
_MOST_LISTED: Final = 5
_MOST_LEFT: Final = 5
_MOST_DISTURBANCES: Final = 4
_MB: Final = 1024
_LOW_SHARE: Final = 0.8
_MUCH_SLOWER: Final = 1.5


def details(rows: Sequence[Row], measured: Sequence[Measured], models: Sequence[Model]) -> list[Section]:
    """Memory and warmth of the rows that have a time, what disturbed; operators."""
    timed = {label(models, row): each for row, each in zip(rows, measured, strict=True) if latency_of(row) is not None}
    blocks: list[Block] = [chart for chart in (_memory(timed), _warmth(timed)) if chart is not None]
    disturbed = list(dict.fromkeys(text for each in measured for text in _disturbances(each)))
    blocks += [_disturbed(disturbed)] if timed and disturbed else []
    profiles = {name: each.profile for name, each in timed.items() if each.profile is not None and each.profile.ops}
    shown = list(profiles.items())[:_MOST_DRAWN]
    operators: list[Block] = [Lines(_left_on_cpu(profiles))] if profiles else []
    operators += [_operators(name, profile) for name, profile in shown if profile.runs]
    left = some_of(len(shown), len(profiles), "configurations")
    operators += [Lines([left])] if left else []
    found = [Section("", blocks, "speed"), Section("Operators", operators, "speed", is_brief=True)]
    return [section for section in found if section.blocks]


def notes_of(rows: Sequence[Row], measured: Sequence[Measured], models: Sequence[Model]) -> Iterator[Note]:
    """What was not profiled, and what was not quiet."""
    for row, each in zip(rows, measured, strict=True):
        if each.profile_failure:
            yield Note(label(models, row), f"operators are not profiled: {each.profile_failure}", "open")
    disturbed = [
        (_change(each), label(models, row), texts)
        for row, each in zip(rows, measured, strict=True)
        if row.status == "measured" and (texts := _disturbances(each))
    ]
    disturbed.sort(key=lambda found: -found[0])
    said: set[str] = set()
    for _, name, (text, *_) in disturbed[:_MOST_NAMED]:
        fact, _, advice = text.partition(": ")
        what_to_do = f": {advice}" if advice and advice not in said else ""
        says_nothing = "" if said else "; small differences of times say nothing"
        said.add(advice)
        yield Note(name, f"not quiet: {fact}{what_to_do}{says_nothing}", "open")
    if len(disturbed) > _MOST_NAMED:
        others = counted(len(disturbed) - _MOST_NAMED, "other configuration")
        yield Note("not quiet", f"{others}, whose times changed less", "open")


def _change(measured: Measured) -> float:
    """By how much the times rose or fell in the round in which they did most."""
    return max(map(_change_in, measured.rounds), default=0.0)


def _change_in(measured: Round) -> float:
    """The same of one round, 0 where they clearly did neither."""
    found = drift(measured.regular.invokes_us)
    return abs(found.change) if found is not None and is_clear(found) else 0.0


def _disturbances(measured: Measured) -> list[str]:
    """All disturbances, each once, first those of the round whose times changed most."""
    ordered = sorted(measured.rounds, key=lambda each: -_change_in(each))
    return list(dict.fromkeys(text for each in ordered for text in each.disturbances))


def _left_on_cpu(profiles: Mapping[str, OpProfile]) -> list[Note]:
    """The operators on plain CPU kernels that take longest, and where the times of operators say little."""
    notes = []
    for name, profile in profiles.items():
        notes += [Note(name, doubt, "open") for doubt in _doubts(profile)]
        total, left = total_us(profile), top_on_cpu(profile, _MOST_LEFT)
        texts = []
        for op in left:
            time_us = sum(op.times_us)
            share = f", {100 * time_us / total:.1f} %" if total else ""
            node = "" if op.node is None else f" node {op.node}"
            texts.append(f"{op.type}{node} {milliseconds(time_us / profile.runs)}{share}")
        whole = f"top operators left on the CPU, of {milliseconds(total / profile.runs)} per run: {'; '.join(texts)}"
        notes.append(Note(name, whole if left else "no operator is left on plain CPU kernels"))
    return notes


def _doubts(profile: OpProfile) -> Iterator[str]:
    """Where the operators' times say little about the runs that were measured."""
    share, factor = explained_share(profile), slowdown(profile)
    if share is not None and share < _LOW_SHARE:
        yield (
            f"the operators' times make up only {100 * share:.0f} % of a run, which is short beside the runtime's own "
            "work; judge this model by its latency"
        )
    if factor is not None and factor > _MUCH_SLOWER:
        yield f"profiled runs took {factor:.1f} times as long as others: trust shares, not times"


def _disturbed(disturbances: Sequence[str]) -> Lines:
    """The first few, as later ones differ only in their numbers."""
    shown = [f"not quiet: {text}" for text in disturbances[:_MOST_DISTURBANCES]]
    left = some_of(len(shown), len(disturbances), "disturbances")
    return Lines([*shown, *([left] if left else [])])


def _memory(timed: Mapping[str, Measured]) -> Chart | None:
    """Resident memory of the first round of each row: before and after opening, after the runs, at the peak."""
    found: dict[str, dict[str, float]] = {}
    for name, each in timed.items():
        for memory in (first.memory for first in each.rounds[:1]):
            sizes = {
                "start": memory.start_kb,
                "opened": memory.init_kb,
                "after the runs": memory.steady_kb,
                "peak": memory.peak_kb,
            }
            known = {moment: kb / _MB for moment, kb in sizes.items() if kb is not None}
            found |= {name: known} if len(known) > 1 else {}
    if not found:
        return None
    texts = [f"{name}: {', '.join(f'{moment} {mb:.1f} MB' for moment, mb in by.items())}" for name, by in found.items()]
    return moments("Memory of the process", found, "MB", texts, "configurations")


def _warmth(timed: Mapping[str, Measured]) -> Chart | None:
    """The hottest sensor before and after the rounds, where there are sensors."""
    rounds = {name: each.rounds for name, each in timed.items() if each.rounds}
    found = {name: (_hottest(each[0].before), _hottest(each[-1].after)) for name, each in rounds.items()}
    return temperatures(found, "configurations")


def _hottest(conditions: Conditions) -> float | None:
    return max(conditions.temperatures.values(), default=None)


def _operators(name: str, profile: OpProfile) -> Chart:
    """The operators that take longest, with their times per run, as the profiler or the delegate itself gave them."""
    ranked = sorted(op_figures(profile.ops), key=lambda each: -each.sum_us)
    times: dict[str, float] = {}
    for each in ranked[:_MOST_OPERATORS]:
        place = f" (node {each.op.node})" if each.op.node is not None else " (delegate)" if each.op.internal else ""
        operator = f"{each.op.type}{place}"
        times[operator] = times.get(operator, 0.0) + each.sum_us / profile.runs / 1000
    share = explained_share(profile)
    text = "" if share is None else f"All operators together are {100 * share:.0f} % of a run."
    lines = first_lines([f"{operator}: {three_digits(ms)} ms" for operator, ms in times.items()], _MOST_LISTED)
    marks = [Mark(ms, operator) for operator, ms in times.items()]
    return Chart(f"Operators that take longest: {name}", "bars", marks, text, Axis("ms per run"), lines=lines)

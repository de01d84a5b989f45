"""How a classifier's answers are shown on a page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from evaltools.metrics.words import change
from evaltools.report.content import some_of
from evaltools.report.words.numbers import p_value
from evaltools.result.section import Cell, Gallery, Note, Number, Picture, Table, Tone
from evaltools.tasks.framework.topk_result import ChangedAnswer, Comparison, TopKPart

_MOST_SHOWN: Final = 24
_SHOWN_K: Final = (1, 5)
_TONES: Final[dict[str, Tone]] = {"lost": "bad", "gained": "good", "neither": ""}


def changed_answers(part: TopKPart) -> list[Note]:
    """How many answers changed, a line for each configuration that changed one."""
    return [
        Note(entry.other, _changed(entry))
        for entry in _against_the_first(part)
        if entry.agreement.same_top1 < entry.agreement.example_count
    ]


def lost_and_gained(part: TopKPart) -> list[Table]:
    """Paired counts of each comparison."""
    return [_paired(part)] if part.comparisons else []


def galleries(part: TopKPart, folder: str) -> list[Gallery]:
    """What changed of each configuration; the pictures of the examples lie in ``folder``."""
    return [_gallery(folder, entry) for entry in _against_the_first(part) if entry.changed]


def _against_the_first(part: TopKPart) -> list[Comparison]:
    return [entry for entry in part.comparisons if entry.baseline == part.comparisons[0].baseline]


def _changed(comparison: Comparison) -> str:
    """How many of the changed first answers were right before, are right now, or neither, and how many are ties."""
    found = comparison.agreement
    lost, gained, count = found.right_to_wrong, found.wrong_to_right, found.example_count - found.same_top1
    text = f"{count} of {found.example_count} answers changed: {lost} lost, {gained} gained"
    text += f", {count - lost - gained} wrong both ways" if count > lost + gained else ""
    ties = f"{comparison.ties} {'is an exact tie' if comparison.ties == 1 else 'are exact ties'}"
    return f"{text}; {ties}" if comparison.ties else text


def _paired(part: TopKPart) -> Table:
    rows: list[Sequence[Cell]] = []
    for place, comparison in enumerate(part.comparisons):
        path, agreement = f"part/topk/comparisons/{place}", comparison.agreement
        share = agreement.share
        for number, found in enumerate(comparison.topk):
            if found.k not in _SHOWN_K:
                continue
            of = f"{path}/topk/{number}"
            interval = found.interval
            rows.append(
                [
                    f"{comparison.other} against {comparison.baseline}",
                    f"top-{found.k}",
                    Number(str(found.lost), found.lost, f"{of}/lost"),
                    Number(str(found.gained), found.gained, f"{of}/gained"),
                    Number(change(found.change, interval.low, interval.high, True), found.change, f"{of}/change"),
                    Number(p_value(found.p_value), found.p_value, f"{of}/p_value"),
                    Number(str(comparison.ties), comparison.ties, f"{path}/ties"),
                    Number(str(comparison.identical), comparison.identical, f"{path}/identical"),
                    "-" if share is None else Number(f"{100 * share:.4g} %", share),
                ]
            )
    columns = (
        "configuration", "figure", "lost", "gained", "change [95 %]", "McNemar", "ties", "identical",
        "same first answer",
    )  # fmt: skip
    below = "ties: another first answer, but one that has the best score as well on one of the sides"
    return Table("Pictures that changed sides", columns, rows, below, 2)


def _gallery(folder: str, comparison: Comparison) -> Gallery:
    changed = comparison.worst_first
    count = comparison.agreement.example_count - comparison.agreement.same_top1
    shown = [_picture(folder, comparison, found) for found in changed[:_MOST_SHOWN]]
    below = some_of(len(shown), count, "pictures")
    if len(changed) < count:
        below = f"{len(shown)} of {count} pictures shown, the first {len(changed)} in the JSON result"
    return Gallery(f"{count} pictures with another first answer: {comparison.other}", shown, below)


def _picture(folder: str, comparison: Comparison, found: ChangedAnswer) -> Picture:
    return Picture(
        folder=folder,
        name=found.example,
        effect=found.effect_in_words,
        tone=_TONES[found.effect],
        lines=(
            f"right: {found.truth}",
            f"{comparison.baseline}: {found.baseline.in_words}",
            f"{comparison.other}: {found.other.in_words}",
        ),
    )

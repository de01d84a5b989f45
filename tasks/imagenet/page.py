"""The sections of an ImageNet evaluation on a page: what was lost and gained, and the pictures that changed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from evaltools.report.page.content.page import some_of
from evaltools.report.tables.cells import p_value
from evaltools.result.evaluation import EvaluationResult
from evaltools.result.section import Block, Cell, Gallery, Number, Picture, Section, Table, Tone
from evaltools.tasks.imagenet.changes import (
    against_the_first,
    answer_in_words,
    effect_in_words,
    worst_first,
)
from evaltools.tasks.imagenet.result import ChangedAnswer, Comparison, ImagenetPart

_MOST_SHOWN: Final = 24
_SHOWN_K: Final = (1, 5)
_TONES: Final[dict[str, Tone]] = {"lost": "bad", "gained": "good", "neither": ""}


def sections(result: EvaluationResult) -> list[Section]:
    """Paired counts of each comparison, and for each a gallery of what changed."""
    part: ImagenetPart = result.part
    galleries: list[Block] = [_gallery(part, comparison) for comparison in against_the_first(part)]
    paired: list[Block] = [_paired(part)] if part.comparisons else []
    return [
        Section("Lost and gained", paired, "accuracy"),
        Section("What changed", galleries, "changes"),
    ]


def _paired(part: ImagenetPart) -> Table:
    rows: list[Sequence[Cell]] = []
    for place, comparison in enumerate(part.comparisons):
        path, agreement = f"part/comparisons/{place}", comparison.agreement
        share = agreement.share
        for number, change in enumerate(comparison.topk):
            if change.k not in _SHOWN_K:
                continue
            of = f"{path}/topk/{number}"
            rows.append(
                [
                    f"{comparison.other} against {comparison.baseline}",
                    f"top-{change.k}",
                    Number(str(change.lost), change.lost, f"{of}/lost"),
                    Number(str(change.gained), change.gained, f"{of}/gained"),
                    Number(f"{100 * change.change:+.2f} points", change.change, f"{of}/change"),
                    f"[{100 * change.interval.low:+.2f}, {100 * change.interval.high:+.2f}]",
                    Number(p_value(change.p_value), change.p_value, f"{of}/p_value"),
                    Number(str(comparison.ties), comparison.ties, f"{path}/ties"),
                    Number(str(comparison.identical), comparison.identical, f"{path}/identical"),
                    "-" if share is None else Number(f"{100 * share:.4g} %", share),
                ]
            )
    columns = (
        "configuration", "figure", "lost", "gained", "change", "95 % interval", "McNemar", "ties", "identical",
        "same first answer",
    )  # fmt: skip
    below = "ties: another first answer, but one that has the best score as well on one of the sides"
    return Table("Pictures that changed sides", columns, rows, below)


def _gallery(part: ImagenetPart, comparison: Comparison) -> Gallery:
    changed = worst_first(comparison)
    count = comparison.agreement.example_count - comparison.agreement.same_top1
    shown = [_picture(part, comparison, found) for found in changed[:_MOST_SHOWN]]
    below = some_of(len(shown), count, "pictures")
    if len(changed) < count:
        below = f"{len(shown)} of {count} pictures shown, the first {len(changed)} in the JSON result"
    return Gallery(f"{count} pictures with another first answer: {comparison.other}", shown, below)


def _picture(part: ImagenetPart, comparison: Comparison, found: ChangedAnswer) -> Picture:
    return Picture(
        folder=part.data.images,
        name=found.example,
        effect=effect_in_words(found),
        tone=_TONES[found.effect],
        lines=(
            f"right: {found.truth}",
            f"{comparison.baseline}: {answer_in_words(found.baseline)}",
            f"{comparison.other}: {answer_in_words(found.other)}",
        ),
    )

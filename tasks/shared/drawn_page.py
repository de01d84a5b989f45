"""What the page says of drawn examples."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from evaltools.result.sampling import SampledFigure, Sampling
from evaltools.result.section import Cell, Number, Section, Table, path_to


def drawn_section(sampling: Sampling | None, in_percent: Collection[str] = ()) -> Section:
    """What is known of all examples by those that were drawn; empty where all were run in order.

    Of the figures those ``in_percent`` are shown alone, if there are any.
    """
    return Section("Which examples were run", [] if sampling is None else [_table(sampling, in_percent)], "accuracy")


def _table(sampling: Sampling, in_percent: Collection[str]) -> Table:
    rows: list[Sequence[Cell]] = []
    for name, answer in sampling.answers.items():
        after = Number(
            str(answer.decided_after), answer.decided_after, path_to("sampling", "answers", name, "decided_after")
        )
        told = [
            _told(figure, of, bool(in_percent))
            for figure, of in answer.figures.items()
            if figure in in_percent or not in_percent
        ]
        untold = "nothing is known" if sampling.is_part else "all were run"
        rows.append([name, answer.answer, after, "; ".join(told) or untold])
    run = f"{len(sampling.drawn)} of {sampling.examples} examples were run"
    shards = f", by each of {sampling.shards} shards from its own examples" if sampling.shards > 1 else ""
    how = f"drawn by the leads of the reference with seed {sampling.seed}{shards}"
    below = f"{run}, {how}; sampling/drawn lists them in order"
    unit = ", in % with bounds of 95 % each" if in_percent else ", with bounds of 95 % each"
    columns = ("configuration", "limit", "known after", f"of all examples{unit}")
    return Table(f"Limit: {sampling.limit}", columns, rows, below)


def _told(name: str, of: SampledFigure, in_percent: bool) -> str:
    if in_percent:
        return f"{name} {100 * of.value:.2f} [{100 * of.low:.2f}, {100 * of.high:.2f}]"
    return f"{name} {of.value:.4g} [{of.low:.4g}, {of.high:.4g}]"

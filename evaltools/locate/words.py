"""The sentences about what a search found."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from evaltools.locate.rows import ACCUMULATED, COMPARED_BY_NAME, FLOAT_LAYER, IN_FLOAT, RANK, SINGLE
from evaltools.result.result import Result, Row
from evaltools.text import shortened, steps

CAUSE: Final = "cause: "
"""How a line begins that says why a layer is off."""
_MOST_EXPLAINED: Final = 4
_MOST_IN_FLOAT: Final = 5
_LONGEST_QUOTED: Final = 60
_QUOTED: Final = re.compile(f"(?<!\\w)'([^']{{{_LONGEST_QUOTED},}})'")


def operators_of(result: Result) -> list[Row]:
    """The rows of operators, behind that of the configuration."""
    return result.rows[1:]


def is_by_name(result: Result) -> bool:
    """Whether tensors were compared with others of the same name."""
    return result.rows[0].verdicts[0].kind == COMPARED_BY_NAME


def parts_of(row: Row, role: str) -> list[Row]:
    """The parts of a row that have a role."""
    return [part for part in row.rows if part.role == role]


def answer_lines(result: Result) -> list[str]:
    """The answer, and what it rests on."""
    configuration, operators = result.rows[0], operators_of(result)
    inputs, seconds = configuration.counts["inputs"], f"{result.environment.elapsed_s:.0f} s"
    lines = [*configuration.verdicts[0].texts]
    looked_at = [row.texts["status"] for row in operators if SINGLE in row.figures]
    if looked_at and not is_by_name(result):
        within = sum(status in ("right", "precision") for status in looked_at)
        on_cpu = looked_at.count("stays on the CPU")
        stays = f", {on_cpu} {'stays' if on_cpu == 1 else 'stay'} on the CPU" if on_cpu else ""
        all_of_them = result.models[0].node_count
        of = f" (the model has {all_of_them})" if len(operators) < all_of_them else ""
        lines.append(
            f"{len(looked_at)} of {len(operators)} operators{of} were run one by one: {within} within their tolerance"
            f"{stays}; {inputs} inputs, {configuration.counts['compiles']} compiles, {seconds}"
        )
    if is_by_name(result):
        lines.append(
            f"{inputs} input{'' if inputs == 1 else 's'}, {seconds}; errors add up from layer to layer, so that a "
            "large one accuses nobody: look where it grows"
        )
        lines += _of_causes([configuration, *worst_first(operators)])
        lines += [line for tried in parts_of(configuration, "in_float") for line in in_float_lines(tried, operators)]
        lines += _copy_in_float(configuration, operators)
    outputs = parts_of(configuration, "output")
    lines += [_of_output(max(outputs, key=_relative))] if outputs else []
    if "assumed" in configuration.texts:
        lines.append(f"precision assumed: {configuration.texts['assumed']}; --delegate_precision states it")
    lines += [f"stopped early: {result.stopped}"] if result.stopped else []
    return lines + result.warnings


def suspect_lines(result: Result) -> list[str]:
    """How far off, how sure, why and what to do, for the first suspects; of others how sure."""
    suspects = [row for row in operators_of(result) if row.verdicts]
    lines = [line for row in suspects[:_MOST_EXPLAINED] for line in ("", *of_suspect(row))]
    return lines + [row.verdicts[0].texts[0] for row in suspects[_MOST_EXPLAINED:]]


def of_suspect(row: Row) -> list[str]:
    """Everything that is said of one suspect."""
    head, *texts = row.verdicts[0].texts
    return [head, *(f"  {text}" for text in texts)]


def best_in_float(operators: Sequence[Row]) -> Row | None:
    """The first to keep in float, else what gains most; None where no copy could be run."""
    tried = [row for row in operators if IN_FLOAT in row.figures]
    return min(tried, key=lambda row: (row.counts.get(RANK, math.inf), -(row.value(IN_FLOAT) or 0.0)), default=None)


def worst_first(operators: Iterable[Row]) -> list[Row]:
    """Those that are furthest off by themselves first."""
    return sorted(operators, key=lambda row: -(row.value(f"{SINGLE}_relative") or 0.0))


def _of_causes(rows: Sequence[Row]) -> list[str]:
    """Why layers of one model are off, and what to do: of each kind the first, and how many others there are."""
    by_name: dict[str, list[Row]] = {}
    for cause in (part for row in rows for part in parts_of(row, "cause")):
        by_name.setdefault(cause.name, []).append(cause)
    lines = []
    for name, (first, *others) in by_name.items():
        more = f"; and so in {len(others)} more layer{'s' if len(others) > 1 else ''}" if others else ""
        lines += [f"{CAUSE}{name}: {first.texts['shown_by']}{more}", f"what to do: {first.texts['remedy']}"]
    return lines


def in_float_lines(tried: Row, operators: Sequence[Row]) -> list[str]:
    """The layers that are worth keeping in float, and how much that is measured to gain."""
    counts = tried.counts
    where = f"SQNR at {tried.texts['measured_in']}: {tried.value('sqnr_db'):.1f} dB"
    how = f"{counts['tried']} of {counts['candidates']} quantised layers tried, one at a time"
    if not counts["tried"]:
        return [f"{where}; none of {counts['candidates']} quantised layers was tried in float"]
    kept = sorted((row for row in operators if RANK in row.counts), key=lambda row: row.counts[RANK])
    if not kept:
        return [f"{where}; no single layer in float makes it clearly better ({how})"]
    lines = [f"{where}; keep these in float, best first ({how}):", *map(_of_layer, kept[:_MOST_IN_FLOAT])]
    more = len(kept) - _MOST_IN_FLOAT
    return lines + ([f"  and {more} more, which gain less"] if more > 0 else [])


def _of_layer(row: Row) -> str:
    found = row.figures[IN_FLOAT]
    known = found.interval
    how_sure = "" if known is None else f" (95 %: {known.low:.1f} to {known.high:.1f})"
    gain = f"{row.value('in_float_sqnr_db'):.1f} dB, {found.value:.1f} dB better{how_sure}"
    return f"  {row.name} -> {row.texts['tensor']!r}: {gain}"


def _copy_in_float(configuration: Row, operators: Sequence[Row]) -> list[str]:
    """Where the copy of the model is that has a layer in float."""
    best, bundles = best_in_float(operators), parts_of(configuration, "bundle")
    if best is None or not bundles:
        return []
    return [f"{Path(bundles[0].texts['folder']) / FLOAT_LAYER}: the model with {best.name} in float"]


def _relative(row: Row) -> float:
    found = row.value(f"{ACCUMULATED}_relative")
    return math.inf if found is None else found


def _of_output(row: Row) -> str:
    worst, explained = row.figures[ACCUMULATED], row.figures.get("explained")
    in_words = steps if worst.unit == "steps" else str
    size = math.inf if worst.value is None else worst.value
    text = f"output {row.name!r}: off by up to {in_words(f'{size:.3g}')}"
    if explained is not None and explained.value is not None and size:
        text += f"; its operators one by one give {in_words(f'{explained.value:.3g}')}"
    return text


def with_short_names(line: str) -> str:
    """A line in which long names, which stand in quotes, are shortened."""
    return _QUOTED.sub(lambda quoted: f"'{shortened(quoted[1], _LONGEST_QUOTED)}'", line)

"""The rows of tables over configurations, of one result or of several, with their verdicts and colours."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from evaltools.known_tasks import task_command
from evaltools.metrics.metric import SHARE, Better
from evaltools.report.words.facts import latency_of
from evaltools.result.figure import Figure
from evaltools.result.metrics import METRICS
from evaltools.result.places import reference_of
from evaltools.result.result import ACCURACY, ANSWERS_CHANGED, FRONT, Result, Row
from evaltools.result.row_word import errors_of, is_clean, tone_of, word_of
from evaltools.result.section import Tone
from evaltools.result.verdict import Verdict, kind_in_words
from evaltools.text import distinct

_OF_OUTPUTS: Final = "outputs"
_SIZE: Final = "relative_rms"
"""The figure that says how far outputs are apart."""
WORST_FIRST: Final[tuple[Tone, ...]] = ("bad", "", "missing", "open", "near", "good")
"""The colours of verdicts; none is that of one which is mixed."""
_OF_ANY: Final = frozenset(metric.name for metric in METRICS)
"""The figures of any configuration, whatever the task."""


class ModelRow(Struct, frozen=True):
    """One model in one configuration; ``model`` is its name. That of a reference may be another than the result's."""

    model: str
    result: Result
    row: Row

    @property
    def size_bytes(self) -> int:
        """The size of the model's file."""
        return (self.row.other_model or self.result.models[self.row.model]).size_bytes

    @property
    def latency_ms(self) -> float:
        """The median time in milliseconds, else the average; NaN where there is none of what was asked for."""
        time_ms = latency_of(self.row)
        return math.nan if time_ms is None or self.row.fallback else time_ms

    @property
    def errors(self) -> int:
        """In how many runs it was given an input and gave no answer."""
        return errors_of(self.result, self.row)

    @property
    def is_clean(self) -> bool:
        """Whether it ran as asked: on its delegate, without a crash or an error."""
        return is_clean(self.result, self.row)

    @property
    def word(self) -> str:
        """What became of it in a word or two; empty where nothing was judged."""
        return kind_in_words(word_of(self.result, self.row)).replace("expected precision of ", "")

    @property
    def tone(self) -> Tone:
        """The colour of that word."""
        return tone_of(self.result, self.row)

    @property
    def answers_changed(self) -> bool:
        """Whether some of its answers are others; without a text about it, where a share is not all.

        That is one that the reference itself has none of.
        """
        if ANSWERS_CHANGED in self.row.texts:
            return True
        reference = reference_of(self.row, self.result.rows)
        not_of_it = self.row.figures.keys() - _OF_ANY - (reference.figures.keys() if reference is not None else set())
        return any(_is_part(self.row.figures[name]) for name in not_of_it)

    def verdict_on(self, figure: str | None) -> Verdict | None:
        """The verdict on one figure against the reference."""
        return next((each for each in self.row.verdicts if each.metric == figure), None)

    def figure(self, name: str | None) -> Figure | None:
        """The figure of that name, where it has a number."""
        found = None if name is None else self.row.figures.get(name)
        return None if found is None or found.value is None else found

    def value(self, name: str | None) -> float:
        """The number of a figure; NaN where there is none."""
        found = self.figure(name)
        return math.nan if found is None or found.value is None else found.value


class ModelRows(Struct, frozen=True):
    """The rows of all models, and the figure that they are judged by; of outputs how far they are apart.

    Without verdicts it is the accuracy of the task, or the first metric of a task of one's own.
    """

    rows: Sequence[ModelRow]
    figure: str | None

    @classmethod
    def of(cls, results: Mapping[str, Result]) -> ModelRows:
        """The rows of results of one task, which are given by the name of the model."""
        rows = list(_rows(results))
        verdicts = [verdict.metric for row in rows for verdict in row.row.verdicts]
        known = [_SIZE if metric == _OF_OUTPUTS else metric for metric in verdicts] or map(_main_figure, rows)
        return cls(rows, next(filter(None, known), None))

    @property
    def with_short_names(self) -> ModelRows:
        """The same with names of models that say only what the models differ in, for charts."""
        names = list(dict.fromkeys(row.model for row in self.rows))
        short = dict(zip(names, distinct(names), strict=True))
        return ModelRows([replace(row, model=short[row.model]) for row in self.rows], self.figure)

    @property
    def are_outputs(self) -> bool:
        """Whether outputs are compared, and not answers with a truth."""
        return self.figure == _SIZE

    @property
    def any_figure(self) -> Figure | None:
        """The figure in the first row that has it: what it is called, and which direction is better."""
        return next((found for row in self.rows if (found := row.row.figures.get(self.figure or ""))), None)

    @property
    def heading(self) -> str:
        """The name of the figure in the table's heading."""
        if self.are_outputs:
            return "relative RMS"
        return (self.any_figure.heading if self.any_figure is not None else "") or self.figure or ""

    @property
    def on_front(self) -> list[bool] | None:
        """Whether no other one is as good and as fast, and better in one of the two.

        None where nothing says which figure is better.
        """
        if self.figure is None or self.better is None or self.are_outputs:
            return None
        if any(FRONT in row.row.counts for row in self.rows):
            return [bool(row.row.counts.get(FRONT)) for row in self.rows]
        from evaltools.metrics.pareto import pareto_front

        sign = 1 if self.better == "higher" else -1
        return pareto_front([(row.latency_ms, sign * row.value(self.figure)) for row in self.rows])

    def best(self, rows: Sequence[ModelRow]) -> ModelRow | None:
        """The row with the best figure; None where fewer than two have one, or nothing says which is better."""
        known = [row for row in rows if row.figure(self.figure) is not None]
        if len(known) < 2 or self.better is None:
            return None
        pick = max if self.better == "higher" else min
        return pick(known, key=lambda row: row.value(self.figure))

    @property
    def better(self) -> Better | None:
        """The direction of the figure."""
        return None if self.any_figure is None else self.any_figure.better


def _is_part(found: Figure) -> bool:
    """Whether it is a share, or the mean of shares, below 1."""
    is_of_shares = found.is_share or (found.spread is not None and found.spread.bounds == SHARE)
    return is_of_shares and found.better == "higher" and found.value is not None and found.value < 1


def worst_first(rows: Iterable[ModelRow]) -> list[ModelRow]:
    """By the colours of their verdicts, else in their order."""
    return sorted(rows, key=lambda row: WORST_FIRST.index(row.tone))


def is_lost(row: ModelRow) -> bool:
    """Whether there is no figure of a configuration."""
    return row.row.status == "not measured"


def _rows(results: Mapping[str, Result]) -> Iterator[ModelRow]:
    """A row for each configuration. The model that others are compared with is there once."""
    known = {result.model.sha256 for result in results.values()}
    for name, result in results.items():
        for entry in result.rows:
            other = entry.other_model
            if other is None:
                yield ModelRow(name, result, entry)
            elif other.sha256 not in known:
                known.add(other.sha256)
                yield ModelRow(Path(other.file).stem, result, entry)


def _main_figure(row: ModelRow) -> str | None:
    """What a measured configuration is judged by where it is compared with nothing."""
    figures = row.row.figures
    if not row.result.is_of_examples:
        return row.row.texts.get(ACCURACY)
    accuracy = task_command(row.result.command).accuracy
    means = [name for name, found in figures.items() if found.spread is not None]
    known = [accuracy.figure] if accuracy is not None else means
    return next((name for name in known if name in figures), None)


def is_share(entry: Row, verdict: Verdict) -> bool:
    """Whether a verdict on a configuration is about a share, whose changes are in points."""
    figure = entry.figures.get(verdict.metric)
    return figure is not None and figure.is_share

"""One row of a result in Python: its figures are attributes, by the names of limits."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from evaltools.api.frames import model_name, with_intervals
from evaltools.metrics.latency import NativeTimes
from evaltools.parameter import did_you_mean
from evaltools.report.words.facts import describe_configuration
from evaltools.result.facts import DelegationProof
from evaltools.result.figure import Figure
from evaltools.result.metrics import of_task
from evaltools.result.obstacles import why_not_measured
from evaltools.result.result import Result as Whole
from evaltools.result.result import Row, standing_alone
from evaltools.result.row_word import verdict_of, word_of
from evaltools.result.verdict import Verdict, kind_in_words

_LATENCIES: Final = ("latency_ms", "latency_ratio")
_DIGITS: Final = 4


class Measured:
    """One configuration: ``top1``, ``ap``, ``iou``, ``latency_ms``: every figure that limits can name.

    Shares are 0..1, names that end in ``_ms`` are milliseconds and in ``_mb`` MB, and what is not known is None.
    ``latency_ms`` is the median; ``latency_ratio`` is by that of the reference, of a benchmark by that of the first
    configuration of the model, whose own is by the first model's in that configuration. ``entry`` is all of it, typed.
    """

    def __init__(self, result: Whole, place: int) -> None:
        self._result: Final = result
        self._place: Final = place
        self.entry: Final[Row] = result.rows[place]

    @property
    def name(self) -> str:
        """The name that it was given."""
        return self.entry.name

    @property
    def title(self) -> str:
        """Its name, in a suite after those of the model and the job; with the model where it ran another one."""
        other, job = self.entry.other_model, self.entry.job
        name = self.name if other is None else f"{self.name} ({Path(other.file).name})"
        return f"{self._result.model_names[self.entry.model]}, {job}, {name}" if job else name

    @property
    def is_measured(self) -> bool:
        """Whether it has figures; :attr:`reason` says why not."""
        return self.entry.status == "measured"

    @property
    def reason(self) -> str | None:
        """Why it was not measured."""
        return self.entry.reason or None

    @property
    def latency(self) -> NativeTimes | None:
        """Times of ``invoke`` in whole microseconds, as the native tools sum them up."""
        return self.entry.latency

    @property
    def delegation(self) -> DelegationProof | None:
        """Proof of what ran where: ``delegated_nodes`` of ``total_nodes``."""
        return self.entry.delegation

    @property
    def crashes(self) -> int:
        """How often one of its processes crashed, or hung and was ended; :attr:`first_crash` says why it first did."""
        return self.entry.crashes

    @property
    def first_crash(self) -> str:
        """Why one of its processes first crashed, empty where none did."""
        return self.entry.first_crash

    @property
    def verdict(self) -> Verdict | None:
        """What was concluded against the reference: ``kind`` and its numbers; None where nothing was judged.

        The ``kind`` of a configuration that did not run as asked says so: ``not clean``, ``fell back``.
        """
        return verdict_of(self._result, self.entry)

    @property
    def in_words(self) -> list[str]:
        """What ran it, with proof of its delegates, then each verdict: the sentences of the command line."""
        return [describe_configuration(self.entry), *(verdict.sentence for verdict in self.entry.verdicts)]

    @cached_property
    def why_no_figures(self) -> str:
        """Why no figure of it counts; empty where they do."""
        rows = standing_alone(self._result) if self._result.is_of_examples else self._result.rows
        row = rows[self._place]
        beside = [each for each in rows if (each.job, each.model) == (row.job, row.model)]
        return why_not_measured(row, beside)

    @property
    def doubt(self) -> str:
        """Why its figures are not those that were asked for, or its verdict is open."""
        verdict = self.entry.verdict
        is_open = verdict is not None and verdict.is_open
        return self.entry.fallback or self.entry.not_clean or (verdict.sentence if verdict and is_open else "")

    @cached_property
    def figures(self) -> Mapping[str, float | None]:
        """Every figure by its name; none where no figure counts."""
        return {name: figure.value for name, figure in self._known.items()}

    @property
    def main_figures(self) -> Mapping[str, float | None]:
        """Those that the command line has a column for, or all of the task where there are none; latencies."""
        if not self._result.is_of_examples:
            return self.figures
        of_task = [name for name in self._of_task if name in self.figures]
        main = [name for name in of_task if self.entry.figures[name].heading] or of_task
        return {name: self.figures[name] for name in (*main, *_LATENCIES) if name in self.figures}

    @property
    def columns(self) -> Mapping[str, float | None]:
        """Every figure by its name, each with the ends of its interval, and the change of the one that was judged."""
        return with_intervals(self._known, self.entry)

    @property
    def facts(self) -> Mapping[str, str | None]:
        """What stands before the figures in a table."""
        runtime = self.entry.runtime
        return {
            "model": model_name(self._result, self.entry),
            **({"job": self.entry.job} if self.entry.job else {}),
            "role": self.entry.role,
            "status": self.entry.status,
            "runtime": runtime.package if runtime else None,
            "verdict": word_of(self._result, self.entry) or None,
        }

    @property
    def _of_task(self) -> Mapping[str, Figure]:
        return of_task(self.entry)

    @property
    def _known(self) -> Mapping[str, Figure]:
        return {} if self.why_no_figures else self.entry.figures

    if not TYPE_CHECKING:  # which figures a row has, is in the types of what gives it

        def __getattr__(self, name: str) -> Any:
            """A figure by its name."""
            if name.startswith("_") or not self.__dict__:
                raise AttributeError(name)
            known = self.figures
            if name not in known:
                there_are = ", ".join(known) or f"none: {self.why_no_figures or 'nothing was measured'}"
                raise AttributeError(
                    f"{self.name} has no figure {name!r}.{did_you_mean(name, known)} It has {there_are}"
                )
            return known[name]

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.figures]

    def __repr__(self) -> str:
        if not self.is_measured:
            return f"<{self.title}: not measured: {self.reason}>"
        judged = kind_in_words(self.verdict.kind) if self.verdict is not None and self.entry.job else ""
        figures = [f"{name}={shown(value)}" for name, value in self.main_figures.items()]
        texts = ", ".join(filter(None, [judged, *figures]))
        return f"<{self.title}: {texts or f'no figures: {self.why_no_figures}'}>"


def shown(value: object) -> str:
    """A figure with four digits, a dash for None."""
    if value is None:
        return "-"
    return f"{value:.{_DIGITS}g}" if isinstance(value, float) else str(value)

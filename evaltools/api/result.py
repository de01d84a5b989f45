"""The result of an evaluation in Python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final

from evaltools.api.frames import (
    changed_frame,
    changed_rows,
    data_frame,
    example_rows,
    model_name,
    with_intervals,
)
from evaltools.api.locating import Located
from evaltools.api.results_in_common import Entries, Entry, html_of_table, html_table
from evaltools.gates.evidence import Evidence, evidence_of
from evaltools.gates.run_rows import parts_of
from evaltools.metrics.latency import Latency
from evaltools.report.content import Sources
from evaltools.report.page.sections.summary import summary_of
from evaltools.report.words.facts import describe_configuration
from evaltools.result.evaluation import ConfigurationResult, EvaluationResult
from evaltools.result.figure import Figure
from evaltools.result.verdict import Verdict

if TYPE_CHECKING:
    import pandas

    from evaltools import Figures
    from evaltools.api.changed_frame import ChangedFrame
else:
    Figures = object

_LATENCIES: Final = ("latency_ms", "latency_ratio")


class Measured(Entry[EvaluationResult, ConfigurationResult], Figures):
    """One configuration: ``top1``, ``ap``, ``iou``, ``latency_ms``: every figure that limits can name."""

    @property
    def title(self) -> str:
        """Its name, with the model where that is another than the result's."""
        other = self.entry.other_model
        return self.name if other is None else f"{self.name} ({Path(other.file).name})"

    @property
    def latency(self) -> Latency | None:
        """Times of ``invoke`` in microseconds."""
        return self.entry.inference_latency

    @property
    def crashes(self) -> int:
        """How often one of its processes crashed, or hung and was ended; :attr:`first_crash` says why it first did."""
        return self.entry.crashes

    @property
    def first_crash(self) -> str:
        """Why one of its processes first crashed, empty where none did."""
        return self.entry.first_crash

    @property
    def facts(self) -> Mapping[str, str | None]:
        """What stands before the figures in a table."""
        runtime = self.entry.runtime
        verdict = self.entry.verdict
        return {
            "model": model_name(self._result, self.entry),
            "role": self.entry.role,
            "status": self.entry.status,
            "runtime": runtime.package if runtime else None,
            "verdict": verdict.kind if verdict else None,
        }

    @property
    def verdict(self) -> Verdict | None:
        """What was concluded against the reference: ``kind`` and its numbers; None where nothing was judged."""
        return self.entry.verdict

    @property
    def in_words(self) -> list[str]:
        """What ran it, with proof of its delegates, then each verdict: the sentences of the command line."""
        return [describe_configuration(self.entry), *(verdict.sentence for verdict in self.entry.verdicts)]

    @property
    def why_no_figures(self) -> str:
        """Why there are none, where that is so."""
        return _evidence(self._result, self.entry.name).not_measured or super().why_no_figures

    @property
    def main_figures(self) -> Mapping[str, float | None]:
        """Those that the command line has a column for, or all of the task where there are none; latencies."""
        of_task = [name for name in self.entry.figures if name in self.figures]
        main = [name for name in of_task if self.entry.figures[name].heading] or of_task
        return {name: self.figures[name] for name in (*main, *_LATENCIES) if name in self.figures}

    @property
    def columns(self) -> Mapping[str, float | None]:
        """Every figure by its name, each with the ends of its interval, and the change of the one that was judged."""
        return with_intervals(self._known, self.entry)

    def _figures(self) -> Mapping[str, float | None]:
        """Those of limits, and how many times as long as the reference it takes."""
        return {name: figure.value for name, figure in self._known.items()}

    @cached_property
    def _known(self) -> Mapping[str, Figure]:
        evidence = _evidence(self._result, self.entry.name)
        ratio = evidence.ratio
        own = {} if ratio is None else {"latency_ratio": Figure(ratio.ratio, interval=ratio.interval)}
        return {**evidence.figures, **own}


def _evidence(result: EvaluationResult, name: str) -> Evidence:
    found = parts_of("", result)[""]
    return next(evidence_of(found, row) for row in found.rows if row.name == name)


class Result(Entries[EvaluationResult, Measured]):
    """What was measured: ``result["gpu"].top1``; ``result.result`` is the whole of it, typed.

    A configuration that could not be measured is there, too, with its reason. ``located`` has, by configuration, what
    ``locate=True`` found of those that differ.
    """

    def __init__(self, result: EvaluationResult, located: Mapping[str, Located] | None = None) -> None:
        super().__init__(result)
        self.located: Final = dict(located or {})

    @property
    def complete(self) -> bool:
        """Whether every example was run; else ``result.stopped`` says why not."""
        return self.result.complete

    @property
    def warnings(self) -> list[str]:
        """What needs attention: also what was not measured, ended early, failed, or did not end cleanly."""
        names = [entry.name for entry in self.result.configurations]
        found = [f"{name}: {why}" for name in names if (why := _evidence(self.result, name).not_measured)]
        return list(dict.fromkeys([*self.result.warnings, *found]))

    def examples(self) -> pandas.DataFrame:
        """One row per example, model and configuration, with the answer; needs pandas and ``record_examples=True``."""
        return data_frame(example_rows(self.result))

    def changed(self) -> ChangedFrame:
        """One row per answer that is another than the reference's; its ``.gallery()`` shows the pictures.

        Needs pandas, and ``record_examples=True`` for tasks other than :func:`evaltools.imagenet`.
        """
        return changed_frame(changed_rows(self.result), [self.result])

    def _table(self) -> str:
        table = summary_of({Path(self.result.model.file).stem: self.result})
        return html_table(self.rows) if table is None else html_of_table(table)

    def _sources(self) -> Sources:
        name = Path(self.result.model.file).stem
        return Sources({name: self.result}, located={name: [found.result for found in self.located.values()]})

    def _entries(self) -> Sequence[Measured]:
        return [Measured(self.result, entry) for entry in self.result.configurations]

"""Many models in many configurations from Python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from evaltools.api.configurations import AnyPath, Tests, read_tests
from evaltools.api.frames import data_frame
from evaltools.api.options import options_of, with_options
from evaltools.api.progress import shown_progress
from evaltools.api.results_in_common import Saved, html_list, html_table
from evaltools.gates.suite_result import SuiteEntry, SuiteResult
from evaltools.gone import METHODS_GONE
from evaltools.report.content import Sources
from evaltools.report.files.suite import values_of
from evaltools.report.page.sections.suite import lines_of, reasons_of, summary_of
from evaltools.suite.command import COMMAND, request_of_options
from evaltools.suite.run import OnEntry, run_suite

if TYPE_CHECKING:
    import pandas


class Suite(Saved[SuiteResult]):
    """What became of every model: ``entries``, each with a row per configuration; ``result`` is the whole of it."""

    @property
    def entries(self) -> Sequence[SuiteEntry]:
        """Each job with each model: ``state``, ``reason``, ``rows``."""
        return self.result.entries

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> None:
            instead = METHODS_GONE.get(f"{type(self).__name__}.{name}")
            raise AttributeError(f"{name} is gone: {instead}" if instead else f"a suite has no {name}")

    def to_dataframe(self) -> pandas.DataFrame:
        """One row per model, job and configuration, references as well; needs pandas."""
        rows = [
            {"model": entry.model, "job": entry.job, **values_of(row)} for entry in self.entries for row in entry.rows
        ]
        rows += [
            {"model": entry.model, "job": entry.job, "status": entry.state, "reason": entry.reason}
            for entry in self.entries
            if not entry.rows
        ]
        return data_frame(rows)

    @property
    def warnings(self) -> list[str]:
        """What needs attention: what was not measured or not decided and why, and whether it ended early."""
        stopped = [f"the suite ended early: {self.result.stopped}"] if self.result.stopped else []
        reasons = reasons_of(lines_of(self.result))
        return [*stopped, *(f"{', '.join(of)}: {reason}" for reason, of in reasons.items())]

    def _repr_html_(self) -> str:
        """A table for a notebook."""
        rows = [
            {
                "model": line.entry.model,
                "job": line.entry.job,
                "configuration": line.configuration,
                "verdict": line.found,
                "accuracy": line.accuracy,
                "latency": line.time,
                "speed": line.speed,
                "delegated": line.delegated,
            }
            for line in lines_of(self.result)
        ]
        return html_list([summary_of(self.result)]) + html_table(rows) + html_list(self.warnings)

    def _sources(self) -> Sources:
        return Sources(suites={"suite": self.result})

    def __repr__(self) -> str:
        lines = [
            f"  {line.entry.model}, {line.entry.job}, {line.configuration}: {line.found}"
            for line in lines_of(self.result)
        ]
        return "\n".join([f"<Suite: {summary_of(self.result)}", *lines, ">"])


@with_options(COMMAND.parameters)
def suite(
    models: AnyPath | Sequence[AnyPath],
    *,
    tests: Tests = None,
    jobs: Mapping[str, str] | None = None,
    progress: bool | OnEntry | None = None,
    **options: Any,
) -> Suite:
    """Every model of a folder, of a list or of a suite.toml, in every configuration.

    ``jobs`` maps names to commands such as ``"diff --num_runs=20"``; without them each model's outputs are compared.
    ``options`` are those of ``evaltools suite`` by their names, such as ``run_dir="run"``.
    ``progress`` is True for a bar, or is called with the number of runs done and that of all. Prints nothing else; a
    model that cannot be run costs only its own entry. Raises :class:`~evaltools.errors.UsageError` and its kinds
    before anything runs.
    """
    texts = [f"{name}: {command}" for name, command in (jobs or {}).items()]
    stated = options_of(
        {"model_paths": models, "job": texts}, COMMAND.parameters, options, ("models", "tests", "jobs", "progress")
    )
    request = request_of_options(stated, () if tests is None else read_tests(tests))
    with shown_progress(progress, "runs") as on_step:
        return Suite(run_suite(request, on_step))

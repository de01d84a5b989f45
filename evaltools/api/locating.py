"""From Python: which operator makes the difference."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evaltools.api.configurations import AnyPath, OneConfiguration, read_tests
from evaltools.api.frames import data_frame
from evaltools.api.options import flags_of, with_options
from evaltools.api.progress import shown_progress
from evaltools.api.results_in_common import Saved, html_list
from evaltools.errors import UsageError
from evaltools.locate.command import COMMAND, search_request, searches_after
from evaltools.locate.request import read_request
from evaltools.locate.run import expected_parts
from evaltools.locate.run import locate as search
from evaltools.report.content import Sources
from evaltools.report.words.locate import answer_lines, suspect_lines
from evaltools.request import Request
from evaltools.result.evaluation import EvaluationResult
from evaltools.result.locate import KeepInFloat, LocateResult, Operator, Suspect, Verdict

if TYPE_CHECKING:
    import pandas

OnPart = Callable[[int, int], object]


class Located(Saved[LocateResult]):
    """What was found: ``verdict``, ``suspects``, and figures of every operator in ``operators``."""

    @property
    def verdict(self) -> Verdict:
        """The answer: ``kind``, the numbers of the ``operators`` at fault, ``reason``."""
        return self.result.verdict

    @property
    def suspects(self) -> tuple[Suspect, ...]:
        """Each operator that was suspected, with status, evidence and causes."""
        return self.result.suspects

    @property
    def operators(self) -> tuple[Operator, ...]:
        """Every operator with its errors."""
        return self.result.operators

    @property
    def keep_in_float(self) -> KeepInFloat | None:
        """Of a quantised model compared with another: which layers to keep in float, and what each gains."""
        return self.result.keep_in_float

    @property
    def in_words(self) -> list[str]:
        """The sentences of the command line."""
        return [*answer_lines(self.result), *(line for line in suspect_lines(self.result) if line)]

    @property
    def warnings(self) -> list[str]:
        """What needs attention."""
        return list(self.result.warnings)

    def to_dataframe(self) -> pandas.DataFrame:
        """One row per operator; needs pandas."""
        return data_frame([_row(operator) for operator in self.operators]).set_index("index")

    def _sources(self) -> Sources:
        return Sources(searches={Path(self.result.model.file).stem: self.result})

    def __repr__(self) -> str:
        return f"<Located: {self.in_words[0]}>"

    def _repr_html_(self) -> str:
        return html_list([*self.in_words, *self.warnings])


def _row(operator: Operator) -> dict[str, Any]:
    errors = {"single": operator.local, "accumulated": operator.accumulated}
    figures = {name: None if found is None else found.worst for name, found in errors.items()}
    return {
        "index": operator.index,
        "operator": operator.name,
        "tensor": operator.tensor,
        "status": operator.status,
        "ran_on": operator.ran_on,
        "unit": operator.unit,
        **figures,
        "sqnr_db": operator.accumulated.sqnr_db if operator.accumulated else None,
        "alone_sqnr_db": operator.local.sqnr_db if operator.local else None,
        "weights_sqnr_db": operator.weights_sqnr_db,
        "size": operator.size,
        "tolerance": operator.tolerance,
        "gain": operator.gain,
    }


def located_after(request: Request, result: EvaluationResult) -> dict[str, Located]:
    """What ``locate=True`` of a diff finds, by configuration; nothing without it."""
    if "locate" not in request.options or not request.options.is_on("locate"):
        return {}
    return {name: Located(search(read_request(each))) for name, each in searches_after(request, result).items()}


@with_options(COMMAND.parameters)
def locate(
    model: AnyPath, *, test: OneConfiguration | None = None, progress: bool | OnPart | None = None, **options: Any
) -> Located:
    """Which operator makes the difference between a configuration and the CPU.

    ``test`` is the configuration, default kernels with XNNPACK without one; ``options`` are those of ``evaltools
    locate`` by their names, such as ``operators="0-4"`` or ``bundle="report"``. ``progress`` is True for a bar, or is
    called with the number of parts measured and that of all, as far as is known. Prints nothing else. Raises
    :class:`~evaltools.errors.UsageError` and its kinds before anything runs.
    """
    configurations = read_tests(test)
    if len(configurations) != 1:
        raise UsageError(f"test: one configuration at a time is looked into, got {len(configurations)}")
    flags = flags_of({"model_file": str(model)}, COMMAND.parameters, options, ("model", "test", "progress"))
    request = read_request(search_request(flags.options(), configurations[0], Path.cwd()))
    with shown_progress(progress, "operators", expected_parts(request)) as on_step:
        return Located(search(request, on_step))

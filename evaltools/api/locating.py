"""From Python: which operator makes the difference."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evaltools.api.configurations import AnyPath, OneConfiguration, read_tests
from evaltools.api.frames import data_frame
from evaltools.api.options import options_of, with_options
from evaltools.api.progress import shown_progress
from evaltools.api.results_in_common import Saved, html_list
from evaltools.errors import UsageError
from evaltools.locate.command import COMMAND, search_request, searches_after
from evaltools.locate.request import read_request
from evaltools.locate.run import expected_parts
from evaltools.locate.run import locate as search
from evaltools.report.content import Sources
from evaltools.request import Request
from evaltools.result.result import Result, Row
from evaltools.result.section import Lines
from evaltools.result.verdict import Verdict

if TYPE_CHECKING:
    import pandas

OnPart = Callable[[int, int], object]


class Located(Saved):
    """What was found: the ``verdict``, a row with figures for each of the ``operators``, and those suspected."""

    @property
    def verdict(self) -> Verdict:
        """The answer: its ``kind``, the sentence in ``texts``, and in ``output`` the operators at fault."""
        return self.result.rows[0].verdicts[0]

    @property
    def operators(self) -> list[Row]:
        """Every operator with its errors in ``figures``."""
        return [row for row in self.result.rows if row.role == "operator"]

    @property
    def suspects(self) -> list[Row]:
        """Each operator that was suspected: ``verdict`` says how sure that is, ``rows`` are evidence and causes."""
        return [row for row in self.operators if row.verdict is not None]

    @property
    def keep_in_float(self) -> list[Row]:
        """Of a quantised model compared with another: the operators to keep in float, best first."""
        worth_it = [row for row in self.operators if "keep_in_float" in row.counts]
        return sorted(worth_it, key=lambda row: row.counts["keep_in_float"])

    @property
    def in_words(self) -> list[str]:
        """The sentences of the command line."""
        lines = next(section.blocks[0] for section in self.result.blocks if section.place == "task")
        assert isinstance(lines, Lines)
        return [str(line) for line in lines.lines if line]

    @property
    def warnings(self) -> list[str]:
        """What needs attention."""
        return self.result.warnings

    def to_dataframe(self) -> pandas.DataFrame:
        """One row per operator; needs pandas."""
        return data_frame([_row(operator) for operator in self.operators]).set_index("index")

    def _sources(self) -> Sources:
        return Sources(results={Path(self.result.models[0].file).stem: self.result})

    def __repr__(self) -> str:
        return f"<Located: {self.in_words[0]}>"

    def _repr_html_(self) -> str:
        return html_list([*self.in_words, *self.warnings])


def _row(operator: Row) -> dict[str, Any]:
    figures = {name: figure.value for name, figure in operator.figures.items()}
    return {"index": operator.counts["index"], **operator.texts, **figures}


def located_after(request: Request, result: Result) -> dict[str, Located]:
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
    options_stated = options_of({"model_file": model}, COMMAND.parameters, options, ("model", "test", "progress"))
    request = read_request(search_request(options_stated, configurations[0], Path.cwd()))
    with shown_progress(progress, "operators", expected_parts(request)) as on_step:
        return Located(search(request, on_step))

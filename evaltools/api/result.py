"""Results in Python: figures by name, a table in a notebook, files."""

from __future__ import annotations

import html
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from evaltools.errors import UsageError
from evaltools.gates.hold import evidence_of
from evaltools.metrics.latency import Latency
from evaltools.parameter import did_you_mean
from evaltools.report.output_file import write_file
from evaltools.result.evaluation import ConfigurationResult, DelegationProof, EvaluationResult
from evaltools.result.json_file import to_json

if TYPE_CHECKING:
    import pandas

_DIGITS: Final = 4


class Measured:
    """One configuration of a result: ``top1``, ``ap``, ``iou``, ``latency_ms``: every figure that limits can name."""

    def __init__(self, result: EvaluationResult, entry: ConfigurationResult) -> None:
        self._result = result
        self.entry: Final = entry

    @property
    def name(self) -> str:
        """The name that it was given."""
        return self.entry.name

    @property
    def is_measured(self) -> bool:
        """Whether it has figures of its own; :attr:`reason` says why not."""
        return self.entry.status == "measured"

    @property
    def reason(self) -> str | None:
        """Why it was not measured."""
        return self.entry.reason

    @property
    def delegation(self) -> DelegationProof | None:
        """Proof of what ran where: ``delegated_nodes`` of ``total_nodes``."""
        return self.entry.delegation

    @property
    def latency(self) -> Latency | None:
        """Times of ``invoke`` in microseconds."""
        return self.entry.inference_latency

    @cached_property
    def figures(self) -> dict[str, float | None]:
        """Every figure by the name that limits call it; of several outputs the worst."""
        evidence = evidence_of(self._result, self.entry)
        found = dict(evidence.figures)
        for _, values in evidence.outputs:
            for name, value in values.items():
                worst = min if name == "snr_db" else max
                known = found.get(name)
                found[name] = value if known is None or value is None else worst(known, value)
        if evidence.ratio is not None:
            found["latency_ratio"] = evidence.ratio[0]
        return found

    def __getattr__(self, name: str) -> Any:
        """A figure by its name."""
        if name.startswith("_") or name not in self.figures:
            known = () if name.startswith("_") else self.figures
            there_are = ", ".join(known) or f"none: {self.reason}"
            raise AttributeError(f"{self.name} has no figure {name!r}.{did_you_mean(name, known)} It has {there_are}")
        return self.figures[name]

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.figures]

    def __repr__(self) -> str:
        if not self.is_measured:
            return f"<{self.name}: not measured: {self.reason}>"
        shown = ", ".join(f"{name}={_shown(value)}" for name, value in self.figures.items())
        return f"<{self.name}: {shown}>"


class Result:
    """What was measured: ``result["gpu"].top1``; ``result.result`` is the whole of it, typed.

    A configuration that could not be measured is there, too, with its reason.
    """

    def __init__(self, result: EvaluationResult) -> None:
        self.result: Final = result

    def __getitem__(self, name: str) -> Measured:
        """The configuration of that name; raises :class:`KeyError`."""
        for measured in self:
            if measured.name == name:
                return measured
        names = [entry.name for entry in self.result.configurations]
        raise KeyError(f"no configuration is named {name!r}.{did_you_mean(name, names)} There are {', '.join(names)}")

    def __iter__(self) -> Iterator[Measured]:
        return (Measured(self.result, entry) for entry in self.result.configurations)

    def __len__(self) -> int:
        return len(self.result.configurations)

    @property
    def complete(self) -> bool:
        """Whether every example was run; else ``result.result.stopped`` says why not."""
        return self.result.complete

    @property
    def warnings(self) -> list[str]:
        """What needs attention."""
        return self.result.warnings

    def save(self, path: str | Path) -> None:
        """Write the result as JSON, as ``evaltools --output_file_path`` does; :func:`evaltools.load` reads it.

        Raises :class:`~evaltools.errors.OutputError`.
        """
        write_file(Path(path), to_json(self.result))

    def to_dataframe(self) -> pandas.DataFrame:
        """One row per configuration, one column per figure; needs pandas."""
        try:
            import pandas
        except ImportError as error:
            raise UsageError("to_dataframe needs pandas: pip install pandas") from error
        return pandas.DataFrame(self._rows()).set_index("configuration")

    def _rows(self) -> list[dict[str, Any]]:
        return [
            {
                "configuration": measured.name,
                "role": measured.entry.role,
                "status": measured.entry.status,
                "runtime": measured.entry.runtime.package if measured.entry.runtime else None,
                **measured.figures,
            }
            for measured in self
        ]

    def __repr__(self) -> str:
        return "\n".join([f"<{self.result.task} of {self.result.model.file}:", *(f"  {each!r}" for each in self), ">"])

    def _repr_html_(self) -> str:
        """A table for a notebook."""
        rows = self._rows()
        columns = list(dict.fromkeys(column for row in rows for column in row))
        head = "".join(f"<th>{html.escape(column)}</th>" for column in columns)
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(_shown(row.get(column)))}</td>" for column in columns) + "</tr>"
            for row in rows
        )
        notes = "".join(
            f"<p>{html.escape(f'{measured.name} was not measured: {measured.reason}')}</p>"
            for measured in self
            if not measured.is_measured
        )
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{notes}"


def _shown(value: object) -> str:
    if value is None:
        return "-"
    return f"{value:.{_DIGITS}g}" if isinstance(value, float) else str(value)

"""Reads what a page is about from files: results of every kind, outcomes of gates, baselines."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from evaltools.errors import DataError, UsageError
from evaltools.gates.baseline import Baseline, read_baseline
from evaltools.gates.outcome import GateOutcome
from evaltools.report.page.make import Sources
from evaltools.result.benchmark import BenchmarkResult
from evaltools.result.evaluation import EvaluationResult
from evaltools.result.json_file import read_json
from evaltools.result.locate import LocateResult
from evaltools.result_file import read_result
from evaltools.text import printable

Source = EvaluationResult | BenchmarkResult | LocateResult | GateOutcome | Baseline


def read_source(path: Path) -> Source:
    """What a file of ours holds, told by the fields that it has.

    Raises :class:`DataError` for a file that cannot be read, and for one that holds nothing that a page can show.
    """
    document = read_json(path, dict[str, Any], "JSON result of evaltools")
    if "baseline_version" in document:
        return read_baseline(path)
    if "reports" in document and "gates" in document:
        return read_json(path, GateOutcome, "outcome of evaltools gate")
    if "culprits" in document:
        return read_json(path, LocateResult, "result of evaltools locate")
    if "task" in document:
        return read_result(path)
    if "rows" in document:
        return read_json(path, BenchmarkResult, "evaltools benchmark result")
    raise DataError(
        f"{path} holds no result: it has {', '.join(map(printable, list(document)[:5])) or 'no fields'}; give "
        "files that --output_file_path of an evaluation, benchmark, locate or gate wrote, or a baseline"
    )


def read_sources(paths: Iterable[Path]) -> Sources:
    """All files by their names without the ending, with the folder where two would be equal.

    What was located in the model of one evaluation alone are layers of that.
    Raises :class:`UsageError` for a file that is given twice.
    """
    files = list(paths)
    twice = next((path for place, path in enumerate(files) if path in files[:place]), None)
    if twice is not None:
        raise UsageError(f"{twice} is given twice; give each result once")
    names = [path.name for path in files]
    found = {
        path.stem if names.count(path.name) == 1 else str(path.with_suffix("")): read_source(path) for path in files
    }
    searches = {name: each for name, each in found.items() if isinstance(each, LocateResult)}
    evaluations = {name: each for name, each in found.items() if isinstance(each, EvaluationResult)}
    located: dict[str, list[LocateResult]] = {}
    for name, search in list(searches.items()):
        of_model = [own for own, each in evaluations.items() if each.model.sha256 == search.model.sha256]
        if len(of_model) == 1:
            located.setdefault(of_model[0], []).append(searches.pop(name))
    return Sources(
        evaluations=evaluations,
        benchmarks={name: each for name, each in found.items() if isinstance(each, BenchmarkResult)},
        searches=searches,
        located=located,
        outcomes={name: each for name, each in found.items() if isinstance(each, GateOutcome)},
        saved={name: path.read_bytes() for name, path in zip(found, files, strict=True)},
        baselines=[each for each in found.values() if isinstance(each, Baseline)],
    )

"""What TensorFlow's benchmark app for iOS printed, as a result of a benchmark."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Final

from evaltools.engine.describe import describe_model
from evaltools.errors import DataError
from evaltools.model import read_model
from evaltools.native.logs.ios import rows_of_ios_log
from evaltools.result.benchmark import BENCHMARK_SCHEMA_VERSION, BenchmarkResult
from evaltools.result.environment import describe_environment

_ELSEWHERE: Final = (
    "measured by the benchmark app for iOS, as its log says; processor, platform and packages are those of the "
    "computer that read the log"
)


def result_of_ios_log(log: Path, graph: Path, command: Sequence[str], allow_fallback: bool = False) -> BenchmarkResult:
    """The result in the file ``log`` for the model ``graph``; ``command`` is only recorded.

    Raises :class:`~evaltools.errors.ModelError`, and :class:`DataError` for a log that cannot be read, holds no
    benchmark, or is of another model.
    """
    model = read_model(graph)
    try:
        text = log.read_text(encoding="utf-8", errors="replace")
        rows = rows_of_ios_log(text, graph.name, model.node_count, allow_fallback)
    except OSError as error:
        raise DataError(f"--log_file={log} cannot be read: {error.strerror}; give the text of the console") from error
    except DataError as error:
        raise DataError(f"--log_file={log}: {error}") from None
    now = datetime.now(timezone.utc).isoformat(timespec="seconds")
    return BenchmarkResult(
        schema_version=BENCHMARK_SCHEMA_VERSION,
        environment=describe_environment(list(command), now, 0.0),
        options={},
        models=[describe_model(model)],
        rows=rows,
        warnings=[_ELSEWHERE],
    )

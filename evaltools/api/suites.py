"""Many models in many configurations from Python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evaltools.api.configurations import AnyPath, Tests, read_tests
from evaltools.api.options import options_of, with_options
from evaltools.api.progress import shown_progress
from evaltools.api.result import Result
from evaltools.suite.command import COMMAND, request_of_options
from evaltools.suite.run import OnEntry, run_suite


@with_options(COMMAND.parameters)
def suite(
    models: AnyPath | Sequence[AnyPath],
    *,
    tests: Tests = None,
    jobs: Mapping[str, str] | None = None,
    progress: bool | OnEntry | None = None,
    **options: Any,
) -> Result:
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
        return Result(run_suite(request, on_step))

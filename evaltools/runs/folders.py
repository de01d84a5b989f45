"""Results by the names that users give: a result file, or the folder of a run, whose records are concluded again."""

from __future__ import annotations

from pathlib import Path

from evaltools.command import TaskCommand
from evaltools.engine.journal import read_journal
from evaltools.engine.run_folder import REQUEST
from evaltools.errors import UsageError
from evaltools.known_tasks import command_named, task_command
from evaltools.request.plain import StoredRequest, stored_in
from evaltools.result.environment import describe_environment
from evaltools.result.json_file import encode_json, read_content
from evaltools.result.result import Result, without_examples
from evaltools.result_file import result_in
from evaltools.runs.conclude import conclude
from evaltools.runs.identity import RunAtPlace
from evaltools.runs.recorded import recorded_in
from evaltools.runs.stored import stored_request
from evaltools.runs.task_run import TaskRun
from evaltools.tasks.framework import read


def result_content(path: Path) -> bytes:
    """The content of a result file, or what such a file of the run in a folder would hold.

    Raises :class:`DataError` and :class:`UsageError` for what cannot be read.
    """
    return encode_json(concluded(path)) if path.is_dir() else read_content(path)


def read_any_result(path: Path) -> Result:
    """The result of any command; raises :class:`DataError` for a file that is none."""
    return result_in(result_content(path), path)


def concluded(folder: Path) -> Result:
    """The result of the evaluation in a run folder, as far as it was carried out; nothing is run.

    The model, the pictures and the labels are read again. Raises :class:`UsageError` for a folder without records.
    """
    plain = REQUEST.read(read_journal(folder))
    stated = None if plain is None else stored_in(plain)
    if stated is not None and not _is_here(stated):
        raise UsageError(
            f"{folder} is not the run folder of an evaluation on one machine; evaltools resume {folder} --output=FILE "
            "writes its result, which can be given here"
        )
    request = stored_request(folder, {})
    run = TaskRun(read(task_command(request.task), request))
    recorded = recorded_in(run, [RunAtPlace((folder.resolve(),))])
    environment = recorded.facts.environment or describe_environment(list(request.command), "", 0.0)
    result = conclude(recorded, environment)
    return result if run.request.record_examples else without_examples(result)


def _is_here(stated: StoredRequest) -> bool:
    options = stated.options
    is_elsewhere = stated.devices is not None or options.get("executor") == "ray" or bool(options.get("at"))
    return not is_elsewhere and isinstance(command_named(stated.task), TaskCommand)

"""``evaltools resume`` and ``evaltools merge``: go on with the run in a folder, or join the shards in several."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from evaltools.errors import UsageError
from evaltools.exit_codes import OF_EVALUATIONS, in_words
from evaltools.parameter import Parameter
from evaltools.request import Options, Request
from evaltools.request.flags import parse_flags

RESUME_DESCRIPTION: Final = """\
Goes on with a run that was given --run_dir: examples that were finished are not run again, nor parts that were done on
devices, and the result is that of an uninterrupted run. It is refused where the model, the data, the flags or what runs
the model have changed since.
A search (evaltools locate) goes on with the parts that it has not run. Flags that change no figure, such as --workers
or --max_compiles, may be given anew."""
RUN_DIR: Final = Parameter(
    "run_dir", "The folder of the run. Required.", role="input_folder", required=True, positional=True
)
MERGE_DESCRIPTION: Final = """\
Joins the shards of one run, each in the folder of its --run_dir, to the result that one host would have given: figures
are taken anew from the record of every example. The model, the pictures and the labels are read again, so they must be
here as they were there. Nothing is run, but for the noise floor of an inference diff.
Flags about files and progress, such as --output_file_path, may be given anew."""
RUN_DIRS: Final = Parameter(
    "run_dirs",
    "The folders of all shards. Required.",
    role="input_folder",
    required=True,
    positional=True,
    repeatable=True,
)


def resume(arguments: list[str]) -> int:
    """Go on with a run that was interrupted or killed, from the request in its folder; returns the exit code."""
    words = _read_words("resume RUN_DIR", RESUME_DESCRIPTION, RUN_DIR, arguments)
    from evaltools.device.flags import BY_NAME
    from evaltools.runs.stored import changed, stored_request

    stored = stored_request(words.folders[0], BY_NAME)
    request = changed(stored, read_given(stored, words.others), lambda parameter: parameter.may_differ)
    from evaltools.cli.runs.handed_over import carry_out

    return carry_out(request)


def merge(arguments: list[str]) -> int:
    """Make one result from the shards of a run; returns the exit code."""
    words = _read_words("merge RUN_DIR...", MERGE_DESCRIPTION, RUN_DIRS, arguments)
    folders = [folder.resolve() for folder in words.folders]
    repeated = [folder for place, folder in enumerate(folders) if folder in folders[:place]]
    if repeated:
        raise UsageError(f"{repeated[0]} is given twice; give each shard of one run once")
    from evaltools.device.flags import BY_NAME
    from evaltools.locate.command import COMMAND as SEARCH
    from evaltools.runs.stored import changed, stored_request
    from evaltools.suite.command import COMMAND as SUITE

    folder = folders[0]
    stored = stored_request(folder, BY_NAME)
    if stored.devices is not None:
        raise UsageError("a run on devices makes its result itself: give evaltools resume only its folder")
    if stored.task in (SEARCH.name, SUITE.name):
        what = "a search for the operator at fault" if stored.task == SEARCH.name else "a suite"
        raise UsageError(f"{folder} holds {what}, which has no shards: give evaltools resume its folder")
    request = changed(stored, read_given(stored, words.others), lambda parameter: parameter.about == "result")
    from evaltools.cli.evaluated import evaluate_and_print
    from evaltools.runs.finished import FinishedShards

    return evaluate_and_print(request.without_run_options(), FinishedShards.of_one_run(folders)).exit_code


class _Words(NamedTuple):
    """The words of a command about run folders; ``others`` are the flags that its request may have."""

    folders: list[Path]
    others: list[str]


def _read_words(usage: str, description: str, run_dir: Parameter, arguments: Sequence[str]) -> _Words:
    """Read ``RUN_DIR... [--flag=value ...]``; raises :class:`UsageError` where no folder is given."""
    own = [word for word in arguments if not word.startswith("--") or word == "--help" or word.startswith("--help=")]
    flags = parse_flags(usage, description, in_words(OF_EVALUATIONS), {"flags": (run_dir,)}, own)
    folders = list(map(Path, flags.texts(run_dir.name)))
    command = usage.split()[0]
    if not folders:
        raise UsageError(f"missing: the run folder. Give evaltools {usage}; see evaltools {command} --help")
    if len(folders) > 1 and not run_dir.repeatable:
        raise UsageError(f"'{folders[1]}': give one folder, and flags as --name=value")
    return _Words(folders, [word for word in arguments if word not in own])


def read_given(request: Request, words: Sequence[str]) -> Options:
    """The flags that are given in addition to those of ``request``; raises :class:`UsageError` for unknown ones."""
    known = {**request.options.parameters, **(request.devices.parameters if request.devices is not None else {})}
    return parse_flags("resume", "", "", {"flags": [*known.values()]}, words, is_whole=False).options()

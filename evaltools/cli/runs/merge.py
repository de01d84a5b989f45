"""``evaltools merge``: one result from the shards of a run."""

from __future__ import annotations

from typing import Final

from evaltools.cli.runs.run_folders import read_given, read_words
from evaltools.errors import UsageError
from evaltools.parameter import Parameter

DESCRIPTION: Final = """\
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


def run(arguments: list[str]) -> int:
    """Run the command; returns the exit code."""
    words = read_words("merge RUN_DIR...", DESCRIPTION, "those of the merged run", RUN_DIRS, arguments)
    folders = [folder.resolve() for folder in words.folders]
    repeated = [folder for place, folder in enumerate(folders) if folder in folders[:place]]
    if repeated:
        raise UsageError(f"{repeated[0]} is given twice; give each shard of one run once")
    from evaltools.device.run.flags import BY_NAME
    from evaltools.locate.kind import KIND as SEARCH
    from evaltools.runs.stored import begun_here, changed, stored_request
    from evaltools.suite.kind import KIND as SUITE

    folder = begun_here(folders)
    stored = stored_request(folder, BY_NAME, words.trusted)
    if stored.devices is not None:
        raise UsageError(
            "a run on devices makes one result of its parts itself: give evaltools resume its folder alone"
        )
    if stored.task in (SEARCH.name, SUITE.name):
        what = "a search for the operator at fault" if stored.task == SEARCH.name else "a suite"
        raise UsageError(f"{folder} holds {what}, which has no shards: give evaltools resume its folder")
    request = changed(stored, read_given(stored, words.others), lambda parameter: parameter.about == "result")
    from evaltools.cli.evaluate.carry_out import carry_out
    from evaltools.runs.finished_shards import FinishedShards

    return carry_out(request.of_no_run(), FinishedShards.of_one_run(folders)).exit_code

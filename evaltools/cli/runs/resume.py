"""``evaltools resume``: goes on with a run that was interrupted or killed, from the request in its folder."""

from __future__ import annotations

from typing import Final

from evaltools.cli.runs.run_folders import read_given, read_words
from evaltools.parameter import Parameter

DESCRIPTION: Final = """\
Goes on with a run that was given --run_dir: examples that were finished are not run again, nor parts that were done on
devices, and the result is that of an uninterrupted run. It is refused where the model, the data, the flags or what runs
the model have changed since.
A search (evaltools locate) goes on with the parts that it has not run. Flags that change no figure, such as --workers
or --max_compiles, may be given anew."""
RUN_DIR: Final = Parameter(
    "run_dir", "The folder of the run. Required.", role="input_folder", required=True, positional=True
)


def run(arguments: list[str]) -> int:
    """Run the command; returns the exit code."""
    words = read_words("resume RUN_DIR", DESCRIPTION, "those of the run that goes on", RUN_DIR, arguments)
    from evaltools.device.run.flags import BY_NAME
    from evaltools.runs.stored import changed, stored_request

    stored = stored_request(words.folders[0], BY_NAME, words.trusted)
    request = changed(stored, read_given(stored, words.others), lambda parameter: parameter.may_differ)
    from evaltools.cli.runs.handed_over import carry_out

    return carry_out(request)

"""Exit codes of every command."""

import textwrap
from collections.abc import Collection, Mapping
from typing import Final

OK: Final = 0
LIMIT_BROKEN: Final = 1
USAGE: Final = 2
NOT_MEASURED: Final = 3
EXAMPLES_FAILED: Final = 4
NOT_WRITTEN: Final = 5
INCONCLUSIVE: Final = 6
FAULT: Final = 70
INTERRUPTED: Final = 130
MEASURED: Final = (OK, LIMIT_BROKEN, NOT_MEASURED, EXAMPLES_FAILED)
"""Those of an evaluation that measured what it could."""
_WORST_FIRST: Final = (
    FAULT, INTERRUPTED, USAGE, NOT_WRITTEN, NOT_MEASURED, EXAMPLES_FAILED, LIMIT_BROKEN, INCONCLUSIVE, OK
)  # fmt: skip

_MEANINGS: Final[Mapping[int, str]] = {
    FAULT: "a fault of evaltools itself; --debug shows where, for a report",
    INTERRUPTED: "interrupted; the figures are those of what was finished, and with --run_dir evaltools resume goes on",
    USAGE: "a flag, a file or a list is wrong; nothing was measured",
    NOT_WRITTEN: "a file or stdout could not be written",
    NOT_MEASURED: "a configuration could not be measured here, its delegate took nothing, or its process died in run "
    "after run",
    EXAMPLES_FAILED: "some examples failed, have no record, or gave NaN or infinite numbers; the figures are those of "
    "the others. Or a process crashed or hung, also where a new one then gave every answer",
    LIMIT_BROKEN: "a limit that was set is broken",
    INCONCLUSIVE: "too few examples to decide whether a limit is kept",
    OK: "everything asked for was measured",
}
"""What each means where a command does not say it in its own words."""
_WIDTH: Final = 118
OF_EVALUATIONS: Final[Mapping[int, str]] = {
    **dict.fromkeys(_MEANINGS, ""),
    NOT_WRITTEN: "a file, stdout or the journal of --run_dir could not be written",
}


def in_words(own: Mapping[int, str]) -> str:
    """The exit codes of a command with what each means, in its ``own`` words or, where these are empty, in the common.

    >>> print(in_words({OK: "", NOT_WRITTEN: "the page could not be written"}))
    exit codes, of several the first:
      5    the page could not be written
      0    everything asked for was measured
    """
    lines = [
        textwrap.fill(own[code] or _MEANINGS[code], _WIDTH, initial_indent=f"  {code:<5}", subsequent_indent=" " * 7)
        for code in _WORST_FIRST
        if code in own
    ]
    return "\n".join(["exit codes, of several the first:", *lines])


def worst_of(codes: Collection[int | None]) -> int:
    """The exit code of several runs: that of the run which says least of what was asked; None counts as 0.

    A code that is none of these is that of a process which ended otherwise, and nothing is known of its run.

    >>> worst_of([OK, LIMIT_BROKEN, EXAMPLES_FAILED]), worst_of([OK, INCONCLUSIVE]), worst_of([OK, -9]), worst_of([])
    (4, 6, 70, 0)
    """
    known = [OK if code is None else code if code in _WORST_FIRST else FAULT for code in codes]
    return min(known, key=_WORST_FIRST.index, default=OK)

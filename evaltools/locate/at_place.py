"""``evaltools locate --at=PLACE``: the whole search is carried out there; its result is read here."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

from evaltools.errors import UsageError
from evaltools.request import Request
from evaltools.result.result import Result
from evaltools.result_file import read_result
from evaltools.runs.handing_over import Start
from evaltools.runs.places import AT, places_named, progress_of, run_at

_PHASE = "operators"
_SHOWN = ("report", "quiet", "output_file_path", "progress")


def locate_at(asked: Request, on_part: Callable[[int, int], object], expected_parts: int) -> Result:
    """Search at the place that the request names; raises :class:`UsageError` for more than one."""
    places = places_named(asked.options.texts(AT))
    if len(places) > 1:
        raise UsageError(f"--{AT}: a search is at one place; name {places[0].name} or {places[1].name}")

    def on_line(line: bytes) -> None:
        if (tally := progress_of(line, _PHASE)) is not None:
            on_part(tally.done, expected_parts)

    with tempfile.TemporaryDirectory(prefix="evaltools-") as folder:
        file = Path(folder, "result.json")
        there = asked.without(AT, *_SHOWN).stating(output_file_path=file, progress="json")
        start = Start(places[0].python, places[0].environment, on_line)
        step = f"without --{AT} the same search is done by this computer"
        run_at(places[0], there, start, file, step)
        return read_result(file)

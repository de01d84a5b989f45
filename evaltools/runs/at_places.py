"""``--at=PLACE``: a run on this computer as ARM64, or at several such places side by side; see :func:`records_at`.

A place is a process of its own, below another Python where the place says so; files have the same names everywhere. In
the run folder each place has a folder of its own with the journal of its run.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path

from msgspec.structs import replace

from evaltools.command import TaskCommand
from evaltools.engine.facts import PASS
from evaltools.engine.journal import JOURNAL_NAME, read_journal
from evaltools.engine.ledger import Tally
from evaltools.engine.run_folder import request_facts, require_same_run, run_folder, run_journal
from evaltools.request import Request
from evaltools.request.plain import to_plain
from evaltools.result.host_names import HostNames
from evaltools.runs.finished import FinishedShards
from evaltools.runs.handing_over import Start
from evaltools.runs.identity import RunAtPlace
from evaltools.runs.places import (
    AT,
    REFERENCE_FOLDER,
    REFERENCE_HERE,
    Place,
    examples_of,
    for_place,
    of_several,
    places_named,
    progress_of,
    run_at,
    together,
)
from evaltools.tasks.framework.observer import Observer
from evaltools.tasks.framework.request import flags_to_repeat
from evaltools.tasks.inference_diff.result import loaded_from


@contextmanager
def records_at(task: TaskCommand, request: Request, observer: Observer) -> Iterator[tuple[Request, FinishedShards]]:
    """A context that has each place do everything on entry; their records can be read until it ends.

    It gives the request that makes the result, and the records. Raises :class:`UsageError` for a request that is wrong,
    and :class:`ConfigurationUnavailable` where a place ended without records.
    """
    places, options = places_named(request.options.texts(AT)), request.options
    started_at, clock = datetime.now(timezone.utc).isoformat(timespec="seconds"), time.perf_counter()
    there = request.without(AT)
    examples = examples_of(task, there)
    is_one, total = len(places) == 1, len(places) * examples.example_count
    with run_folder(options.path("run_dir")) as folder, run_journal(folder) as journal:
        found = examples.identity()
        identity = replace(
            found,
            inputs={"the executor": AT, **found.inputs},
            options={**found.options, AT: ",".join(place.name for place in places)},
            configurations={each.name: {"its setting": " ".join(each.to_flags())} for each in request.configurations},
        )
        require_same_run(journal, identity, has_begun=any(place.folder_in(folder).exists() for place in places))
        journal.state(request_facts(to_plain(request), identity))
        wanted = there if is_one else of_several(task, there, folder)
        asked = for_place(task, wanted, is_one)
        done: dict[str, Tally] = {}
        with observer.progress(f"at {places[0].name}" if is_one else "at all places", total) as on_progress:
            for place in places:

                def on_line(line: bytes, name: str = place.name) -> None:
                    if (tally := progress_of(line)) is not None:
                        done[name] = tally
                        on_progress(together([*done.values()]))

                _record(place, asked, place.folder_in(folder), on_line)
        repeated = flags_to_repeat(asked.options)
        saved = {} if wanted is there else {loaded_from(str(folder / REFERENCE_FOLDER)): REFERENCE_HERE}
        records = FinishedShards(
            tuple(RunAtPlace((place.folder_in(folder),), "" if is_one else place.name, repeated) for place in places),
            command=request.command,
            host_names=HostNames(saved),
            started_at=started_at,
            elapsed_s=round(time.perf_counter() - clock, 3),
        )
        yield wanted.without_run_options(), records


def _record(place: Place, asked: Request, folder: Path, on_line: Callable[[bytes], None]) -> None:
    """Have a place do everything that its folder has no records of."""
    if (folder / JOURNAL_NAME).exists():
        facts = PASS.read(read_journal(folder))
        if facts is not None and facts.is_over and not facts.interrupted:
            return
    step = f"evaltools resume {shlex.quote(str(folder.parent))} goes on with what it has"
    start = Start(place.python, place.environment, on_line, records_only=True)
    run_at(place, asked.stating(run_dir=folder, progress="json"), start, folder / JOURNAL_NAME, step)

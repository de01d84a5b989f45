"""``--executor=ray``: entries of a suite as tasks on a Ray cluster; their results lie here as those of runs do.

The nodes need evaltools, and models and data under the same paths. A task whose node or process is lost is started
again elsewhere. An entry that was interrupted begins anew.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from evaltools.errors import OutputError
from evaltools.request.plain import from_plain, to_plain
from evaltools.runs.handing_over import start
from evaltools.runs.ray_cluster import RETRIES, joined, results_in_turn
from evaltools.runs.stored import seen_from
from evaltools.suite.entries import Entry
from evaltools.suite.runs import LOG, REQUEST, RESULT, Runs


class EntryDone(Struct, frozen=True):
    """What a task sends back: the exit code of its process, its seconds, and the files it wrote, by name."""

    code: int
    elapsed_s: float
    files: dict[str, bytes]


def run_on_ray(ray: Any, runs: Runs, entries: Sequence[Entry], address: str) -> Iterator[Entry]:
    """Run all entries, as many at a time as the cluster has CPUs; gives each that has ended, whatever came of it.

    Raises :class:`~evaltools.errors.UsageError` where the cluster cannot be used.
    """
    if not entries:
        return
    with joined(ray, address):
        task = ray.remote(num_cpus=1, max_retries=RETRIES)(run_entry)
        tasks = {task.remote(to_plain(entry.request)): entry for entry in entries}
        done: EntryDone
        for entry, done in results_in_turn(ray, tasks, lambda entry: entry.key):
            _write(done.files, runs.place(entry))
            runs.keep(entry, done.code, done.elapsed_s, is_timed=False)
            yield entry


def run_entry(plain: dict[str, Any]) -> EntryDone:
    """Run one entry from a process that is a worker of the cluster."""
    with tempfile.TemporaryDirectory(prefix="evaltools-") as temporary:
        place = Path(temporary)
        request = seen_from(from_plain(plain, {}), Path.cwd()).stating(output_file_path=place / RESULT)
        begin = time.monotonic()
        with open(place / LOG, "wb") as log:
            process = start(request, place / REQUEST, log)
        code = process.wait()
        files = {name: (place / name).read_bytes() for name in (RESULT, LOG) if (place / name).is_file()}
        return EntryDone(code, time.monotonic() - begin, files)


def _write(files: dict[str, bytes], place: Path) -> None:
    try:
        place.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            (place / name).write_bytes(content)
    except OSError as error:
        raise OutputError(f"{place} cannot be written: {error.strerror}; make room, and resume") from error

"""``evaltools capture``: what a run that goes on does now, as a trace and summed up.

Processes are looked at from outside, so that any run can be captured. A run that is of this evaltools is also asked,
by a file in its folder, to write down its work meanwhile (:mod:`evaltools.engine.capture_answer`).
"""

from __future__ import annotations

import contextlib
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from evaltools.capture.running import RunProcesses, UsedOverTime, process_of_run, run_folders_of, usage_events
from evaltools.engine.capture_answer import DONE, CaptureRequest
from evaltools.engine.journal import copied_journal
from evaltools.engine.run_folder import REQUEST, decode
from evaltools.engine.trace import Event, Track, events_in
from evaltools.errors import EvaltoolsError
from evaltools.request.plain import stored_in
from evaltools.result.capture import RunCapture
from evaltools.runs.on_ray import TASKS

_SECONDS_BETWEEN_SAMPLES: Final = 0.1
_MOST_SAMPLES: Final = 600
_PATIENCE_S: Final = 3.0
_NO_ANSWER: Final = (
    "the run did not say what it works on: no block of examples was finished meanwhile, it opens models or measures "
    "latency in quiet, or is of an earlier evaltools"
)


_ELSEWHERE: Final = "of a run on devices or on a cluster only the processes of this computer are seen"


class CapturedRun(Struct, frozen=True):
    """What was found, and the events of its trace."""

    found: RunCapture
    events: list[Event]


def capture_run(folder: Path, seconds: float) -> CapturedRun:
    """Look for so many seconds at the run in a folder.

    Raises :class:`~evaltools.errors.UsageError` where no run goes on there.
    """
    root = process_of_run(folder)
    processes = RunProcesses(root)
    notes: list[str] = []
    folders = dict.fromkeys(own for process in processes.below() for own in run_folders_of(process))
    start = time.perf_counter()
    with contextlib.ExitStack() as asked:
        requests = [_ask(asked, each, seconds, notes) for each in folders]
        passed_s = _watch(processes, start, seconds)
        answers = [text for request in requests if request is not None and (text := request.answer(_PATIENCE_S))]
    work = [event for text in answers for event in events_in(text)]
    if not answers and any(requests):
        notes.append(_NO_ANSWER)
    if not processes.is_running:
        notes.append(f"the run ended after {passed_s:.1f} s of the capture")
    used = _named(processes.used.values(), _names_in(work))
    found = RunCapture(
        seconds=round(passed_s, 3),
        examples_done=_examples_done(folder, notes),
        examples_per_second=_rate(work),
        stage_seconds=_stage_seconds(work),
        processes=[each.use for each in used],
        notes=notes,
    )
    return CapturedRun(found, _from(start, [*_usage(used), *work]))


def _examples_done(folder: Path, notes: list[str]) -> int | None:
    """How many the journal has; None, and a note, where it cannot be read, and where they are done elsewhere.

    Of the request nothing is loaded: it may be somebody else's.
    """
    try:
        with copied_journal(folder) as journal:
            text = journal.fact(REQUEST)
            on_devices = text is not None and stored_in(decode(text, dict[str, Any], folder)).devices is not None
            if not on_devices and journal.fact(TASKS) is None:
                return len(journal.examples())
            notes.append(_ELSEWHERE)
    except EvaltoolsError as error:
        notes.append(str(error))
    return None


def _ask(asked: contextlib.ExitStack, folder: Path, seconds: float, notes: list[str]) -> CaptureRequest | None:
    """Ask a run for its work; None, and a note, where nothing can be written to its folder."""
    try:
        return asked.enter_context(CaptureRequest(folder, seconds))
    except OSError as error:
        notes.append(f"the run cannot be asked what it works on: {folder} cannot be written: {error.strerror}")
        return None


def _watch(processes: RunProcesses, start: float, seconds: float) -> float:
    """Look at the processes until the time is over, or the run has ended; returns the seconds that it took."""
    between_s = max(_SECONDS_BETWEEN_SAMPLES, seconds / _MOST_SAMPLES)
    while processes.is_running and time.perf_counter() < start + seconds:
        processes.sample()
        time.sleep(max(0.0, min(between_s, start + seconds - time.perf_counter())))
    processes.sample()
    return time.perf_counter() - start


def _rate(work: Iterable[Event]) -> float | None:
    """Examples per second, of all processes that reported how many they had done at several moments."""
    counts: defaultdict[object, list[tuple[float, int]]] = defaultdict(list)
    for event in work:
        facts = event.get("args")
        if event.get("name") == DONE and isinstance(facts, dict):
            counts[event["pid"]].append((float(str(event["ts"])), int(facts["examples"])))
    rates = [
        (last - first) / (end_us - start_us) * 1e6
        for (start_us, first), (end_us, last) in ((each[0], each[-1]) for each in counts.values())
        if end_us > start_us
    ]
    return round(sum(rates), 3) if rates else None


def _stage_seconds(work: Iterable[Event]) -> dict[str, float]:
    spent: defaultdict[str, float] = defaultdict(float)
    for event in work:
        if event.get("ph") == "X":
            spent[str(event["name"])] += float(str(event["dur"])) / 1e6
    return {stage: round(seconds, 6) for stage, seconds in sorted(spent.items(), key=lambda entry: -entry[1])}


def _names_in(work: Iterable[Event]) -> dict[int, str]:
    """What the run calls its processes."""
    found = {}
    for event in work:
        facts = event.get("args")
        if event.get("name") == "process_name" and isinstance(facts, dict):
            found[int(str(event["pid"]))] = str(facts["name"])
    return found


def _named(used: Iterable[UsedOverTime], names: Mapping[int, str]) -> list[UsedOverTime]:
    """Those that were seen, by what the run calls them, the run's own process first.

    Where several are called the same, as those of shards, their numbers stand behind.
    """
    how_many = Counter(names.values())
    labels = {number: f"{name} ({number})" if how_many[name] > 1 else name for number, name in names.items()}
    seen = [
        UsedOverTime(each.process_id, labels.get(each.process_id, each.name), each.samples)
        for each in used
        if each.samples
    ]
    return sorted(seen, key=lambda each: each.process_id not in names)


def _usage(used: Iterable[UsedOverTime]) -> list[Event]:
    events: list[Event] = []
    for place, each in enumerate(used):
        track = Track(each.process_id, 0, "system")
        events += [track.process_name(each.name), track.process_place(place)]
        for number, sample in enumerate(each.samples):
            events += usage_events(each.process_id, sample, each.samples[number - 1] if number else None)
    return events


def _from(start_s: float, events: Sequence[Event]) -> list[Event]:
    """The events with their times from the start of the capture on; each process and row is named once."""
    named: set[tuple[object, object, object]] = set()
    found: list[Event] = []
    for event in events:
        if event.get("ph") == "M":
            what = (event["name"], event["pid"], event["tid"] if event["name"] == "thread_name" else 0)
            if what in named:
                continue
            named.add(what)
        found.append(_later(event, start_s * 1e6) if "ts" in event else event)
    return found


def _later(event: Event, start_us: float) -> Event:
    """An event by a clock that begins at ``start_us``; of work that had begun before, what is left."""
    moment_us = round(float(str(event["ts"])) - start_us, 3)
    if "dur" not in event or moment_us >= 0:
        return event | {"ts": max(0.0, moment_us)}
    return event | {"ts": 0.0, "dur": round(max(0.0, float(str(event["dur"])) + moment_us), 3)}

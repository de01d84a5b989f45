"""Events of the Trace Event Format (JSON), which chrome://tracing and ui.perfetto.dev show; times in microseconds."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

Event = dict[str, object]


class Track(Struct, frozen=True):
    """A thread of a process by its numbers, which is a row of the trace, and the category of its work.

    >>> Track(1, 0, "work").complete("decode", 5.0, 1.5, {"what": "a"})
    {'name': 'decode', 'cat': 'work', 'ph': 'X', 'ts': 5.0, 'dur': 1.5, 'pid': 1, 'tid': 0, 'args': {'what': 'a'}}
    """

    process: int
    thread: int
    category: str

    def process_name(self, name: str) -> Event:
        """Metadata that says what the process is."""
        return self._metadata("process_name", {"name": name})

    def process_place(self, place: int) -> Event:
        """Metadata that puts the process among the others, smaller numbers on top."""
        return self._metadata("process_sort_index", {"sort_index": place})

    def thread_name(self, name: str) -> Event:
        """Metadata that says what the thread is."""
        return self._metadata("thread_name", {"name": name})

    def complete(self, name: str, start_us: float, duration_us: float, facts: Mapping[str, object]) -> Event:
        """Work from a start that lasted so long, with what else is known of it."""
        return {
            "name": name,
            "cat": self.category,
            "ph": "X",
            "ts": start_us,
            "dur": duration_us,
            "pid": self.process,
            "tid": self.thread,
            "args": facts,
        }

    def counter(self, name: str, moment_us: float, values: Mapping[str, float]) -> Event:
        """Values at a moment, drawn as steps; one for each name in ``values``."""
        return {
            "name": name,
            "cat": self.category,
            "ph": "C",
            "ts": moment_us,
            "pid": self.process,
            "tid": self.thread,
            "args": values,
        }

    def _metadata(self, name: str, facts: Mapping[str, object]) -> Event:
        return {"name": name, "ph": "M", "pid": self.process, "tid": self.thread, "args": facts}

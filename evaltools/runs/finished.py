"""Records that exist: the folders of finished shards, and what a result of them must say of where they were made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace

from evaltools.configuration import Configuration
from evaltools.result.device import DeviceRun
from evaltools.result.environment import describe_environment
from evaltools.result.host_names import HostNames
from evaltools.result.places import on_devices
from evaltools.result.result import Result, Row
from evaltools.runs.identity import RunAtPlace


class FinishedShards(Struct, frozen=True):
    """The folders of finished shards, as ``places``. The other fields are for shards that were done elsewhere.

    ``device_run`` says how devices did them, ``command`` is the user's command, ``started_at`` (ISO 8601) and
    ``elapsed_s`` are the times of the run there. ``host_names`` are the names of files on the host, by those there.
    """

    places: tuple[RunAtPlace, ...]
    device_run: DeviceRun | None = None
    command: tuple[str, ...] = ()
    host_names: HostNames = field(default_factory=HostNames)
    started_at: str = ""
    elapsed_s: float = 0.0

    @classmethod
    def of_one_run(cls, folders: Sequence[Path]) -> FinishedShards:
        """The shards of a run on the host, which lie in ``folders``."""
        return cls((RunAtPlace(tuple(folders)),))

    def complete(self, merged: Result, configurations: Sequence[Configuration]) -> Result:
        """The merged result of ``configurations``, with facts about devices, and the host's names of files."""
        environment = merged.environment
        if self.started_at:
            load = environment.load
            environment = describe_environment(list(self.command), self.started_at, self.elapsed_s, load=load)
        flags = {configuration.name: configuration.to_flags() for configuration in configurations}
        named = replace(
            merged,
            environment=environment,
            rows=[self._named(row, flags) for row in merged.rows],
            failed=[replace(entry, reason=self.host_names.text(entry.reason)) for entry in merged.failed],
        )
        return on_devices(named, self.device_run, environment)

    def _named(self, entry: Row, flags: Mapping[str, list[str]]) -> Row:
        names = self.host_names
        place = f"@{entry.place}" if entry.place else ""
        return replace(
            entry,
            flags=flags.get(entry.name.removesuffix(place), entry.flags),
            delegates=names.delegates(entry.delegates),
            reason=names.text(entry.reason),
            texts={name: names.text(text) for name, text in entry.texts.items()},
        )

"""The identity of a run: it is resumed only as the same run, and only shards of one run are merged."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from evaltools.configuration import CONFIGURATION_PARAMETERS, Configuration
from evaltools.engine.facts import CONFIGURATIONS
from evaltools.engine.journal import JOURNAL_NAME, Journal
from evaltools.engine.run_folder import IDENTITY, REQUEST, RunIdentity, request_facts, require_same_run
from evaltools.errors import UsageError
from evaltools.file_content import Unreadable, sha256_of
from evaltools.request import Request
from evaltools.request.plain import to_plain
from evaltools.result.result import Row

TASK: Final = "the task"
"""The input of an identity that names what the run does."""
WHOLE: Final = "0/1"


def begin_run(journal: Journal, described: Sequence[Row], identity: RunIdentity, request: Request | None) -> None:
    """Write the identity of a run to its journal; raises :class:`UsageError` where the journal is another run's."""
    identity = replace(identity, configurations={entry.name: _fingerprints(entry) for entry in described})
    require_same_run(journal, identity)
    CONFIGURATIONS.write(journal, list(described))
    if request is None or journal.folder is None:
        return
    if not (journal.examples() and REQUEST.read(journal)):
        journal.state(request_facts(to_plain(request), identity))


def changed_meanwhile(journal: Journal, before: RunIdentity, now: RunIdentity) -> list[str]:
    """Warnings about files that changed while the run read them, and about a journal that is gone."""
    found = [f"during the run, {change}; figures may be of both" for change in before.changes(now)]
    if journal.folder is not None and not (journal.folder / JOURNAL_NAME).exists():
        found.append(f"the journal in {journal.folder} was deleted during the run; it cannot be resumed or merged")
    return found


def _fingerprints(entry: Row) -> dict[str, str]:
    """A text for each thing about a configuration, so that a message can say what has changed."""
    runtime, proof = entry.runtime, entry.delegation
    taken = ", ".join(f"{used.name} {used.nodes} of {used.partitions}" for used in entry.delegates)
    devices = ", ".join(f"{used.name} on {used.device}" for used in entry.delegates if used.device)
    return {
        "its status": f"{entry.status}{f' ({entry.reason})' if entry.reason else ''}",
        "its setting": " ".join(flag for flag in entry.flags if not _is_as_left_out(flag)),
        "its runtime": f"{runtime.package} {runtime.version}, {runtime.kernels}" if runtime else "",
        "what its delegates took": f"{taken} of {proof.total_nodes if proof else 0}",
        **({"its device": devices} if devices else {}),
    }


def _is_as_left_out(flag: str) -> bool:
    """Whether ``--name=value`` states a default that means the same unstated."""
    name, _, text = flag.removeprefix("--").partition("=")
    parameter = CONFIGURATION_PARAMETERS.get(name)
    return parameter is not None and parameter.is_as_left_out(parameter.parse(text))


def libraries_of(configurations: Iterable[Configuration]) -> dict[str, str]:
    """The checksums of the libraries of external delegates, by path."""
    return checksums_of(library for configuration in configurations for library in configuration.libraries)


def checksums_of(paths: Iterable[Path]) -> dict[str, str]:
    """The SHA-256 of each file, by path, ``missing`` for one that cannot be read."""
    return {str(path): _sha256_of(path) for path in sorted(set(paths))}


def require_same_code(identity: RunIdentity, folder: Path) -> None:
    """Raise :class:`UsageError` where a library or a file of the task's code is not that of the run.

    Their paths are meant from ``folder``.
    """
    for what, files in (("the library", identity.libraries), ("the task's file", identity.code)):
        for path, stated in files.items():
            now = _sha256_of(folder / path)
            if now != stated:
                raise UsageError(f"{what} {path} was {stated}, now it is {now}")


def _sha256_of(path: Path) -> str:
    try:
        return sha256_of(path)
    except Unreadable:
        return "missing"


def files_below(paths: Sequence[Path]) -> list[Path]:
    """The given files, and those in the given folders, in order."""
    return [
        file
        for path in paths
        for file in (sorted(entry for entry in path.rglob("*") if entry.is_file()) if path.is_dir() else [path])
    ]


class RunAtPlace(Struct, frozen=True):
    """A whole run done at one place, this computer or a device: the run folders of its shards.

    Where several places did the same run, ``name`` stands behind the names of their configurations, ``NAME@PLACE``.
    ``flags`` are the ones that the shards had to repeat, where files have other names there; None: those of this run.
    """

    folders: tuple[Path, ...]
    name: str = ""
    flags: Mapping[str, str] | None = None

    @property
    def suffix(self) -> str:
        """What is appended to the names of configurations."""
        return f"@{self.name}" if self.name else ""


def require_one_run(place: RunAtPlace, shards: Sequence[Journal], identity: RunIdentity) -> None:
    """Raise :class:`UsageError` where the shards are not those of one run, or of another than ``identity`` says."""
    first = place.folders[0]
    identities = [identity_in(shard) for shard in shards]
    stated = identities[0].portable()
    for folder, found in zip(place.folders, identities, strict=True):
        task, own_task = (each.inputs.get(TASK, "none") for each in (stated, found))
        if task != own_task:
            raise UsageError(f"{folder} holds a run of {own_task}, {first} one of {task}; give the shards of one run")
        changed = stated.changes(found.portable())
        if changed:
            raise UsageError(f"{folder} is not a shard of the run in {first}: {'; '.join(changed)}")
    _require_distinct(place.folders, identities)
    own, wanted = replace(stated, configurations={}), identity.portable()
    if place.flags is not None:
        own, wanted = replace(own, libraries={}), replace(wanted, libraries={}, options=dict(place.flags))
    changed = own.changes(wanted)
    if changed:
        raise UsageError(f"the run in {first} was of something else: {'; '.join(changed)}; restore that")


def identity_in(shard: Journal) -> RunIdentity:
    """The identity of a shard; raises :class:`UsageError` where it never began."""
    identity = IDENTITY.read(shard)
    if identity is None:
        raise UsageError(f"the run in {shard.folder} ended before its first example; give its command again")
    return identity


def _require_distinct(folders: Sequence[Path], identities: Sequence[RunIdentity]) -> None:
    """Raise :class:`UsageError` where two folders hold the same examples."""
    numbers = [identity.shard or WHOLE for identity in identities]
    first_with: dict[str, int] = {}
    for position, number in enumerate(numbers):
        is_of_another_count = number.partition("/")[2] != numbers[0].partition("/")[2]
        other = 0 if is_of_another_count else first_with.setdefault(number, position)
        if other != position:
            raise UsageError(
                f"{folders[other]} holds shard {numbers[other]}, {folders[position]} holds shard {number}; give each "
                "shard of one run once"
            )

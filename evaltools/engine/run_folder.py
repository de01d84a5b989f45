"""Checks whether a run folder belongs to the run that is to go on in it, and opens the journals of run folders."""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from evaltools.documents import json_values
from evaltools.engine.journal import Journal, open_journal, temporary_journal
from evaltools.errors import DataError, UsageError
from evaltools.extensions import package_version

Kind = TypeVar("Kind")
_LONGEST_SHOWN: Final = 80
_SHOWN_BEFORE: Final = 16


@dataclass(frozen=True)
class Fact(Generic[Kind]):
    """Something that a journal says of the whole run, as JSON: by its ``name``; ``kind`` is its type."""

    name: str
    kind: Any

    def write(self, journal: Journal, value: Kind) -> None:
        """Write it; what was said before under that name does not count any more."""
        journal.state({self.name: encode(value)})

    def read(self, journal: Journal) -> Kind | None:
        """Read it, None where nothing was said; raises :class:`DataError` for something of another type."""
        text = journal.fact(self.name)
        found: Kind | None = None if text is None else decode(text, self.kind, journal.folder)
        return found

    def required(self, journal: Journal) -> Kind:
        """Read it; raises :class:`UsageError` where the run ended before it was written."""
        found = self.read(journal)
        if found is None:
            raise UsageError(
                f"the run in {journal.folder} ended before its first example; finish it with evaltools resume"
            )
        return found


class RunIdentity(Struct, frozen=True):
    """What must stay the same for a run to be resumed, and for shards to be merged.

    ``inputs`` describe model, data, labels and the like by their content, ``written`` by the files' times of change,
    which differ on another machine. ``options`` are by their flags, ``libraries`` by their paths, ``configurations`` by
    their names, each with a text for everything about it that could change. ``shard`` is empty for a whole run.
    ``code`` has the checksums of the files that are executed when the request is read, by their paths on this machine;
    ``inputs`` say of the same files, in one text, what other machines can compare.
    """

    inputs: dict[str, str]
    written: dict[str, str] = field(default_factory=dict)
    options: dict[str, str] = field(default_factory=dict)
    libraries: dict[str, str] = field(default_factory=dict)
    configurations: dict[str, dict[str, str]] = field(default_factory=dict)
    shard: str = ""
    code: dict[str, str] = field(default_factory=dict)
    evaltools: str = field(default_factory=lambda: package_version("evaltools"))

    def portable(self) -> RunIdentity:
        """The part that is the same for all shards of a run, on whatever machine they were done."""
        return replace(self, written={}, shard="", code={})

    def changes(self, now: RunIdentity) -> list[str]:
        """In words, what has changed.

        >>> RunIdentity({"the model": "a"}, {"the photos": "8:00"}).changes(RunIdentity({"the model": "b"}))
        ['the model was a, now it is b', 'the photos were written anew since']
        """
        before, after = self._texts(), now._texts()
        names = dict.fromkeys((*before, *after))
        found = [
            f"{name} {'were' if _is_plural(name) else 'was'} {_shown(name, before.get(name), after.get(name))}, "
            f"now {'they are' if _is_plural(name) else 'it is'} {_shown(name, after.get(name), before.get(name))}"
            for name in names
            if before.get(name) != after.get(name)
        ]
        files = dict.fromkeys((*self.written, *now.written))
        return found + [
            f"{name} were written anew since" for name in files if self.written.get(name) != now.written.get(name)
        ]

    def _texts(self) -> dict[str, str]:
        return {
            "evaltools": self.evaltools,
            **self.inputs,
            **{f"the library {path}": content for path, content in self.libraries.items()},
            **self.options,
            **({"the shard": self.shard} if self.shard else {}),
            **{
                f"configuration {name}, {what}": text
                for name, facts in self.configurations.items()
                for what, text in facts.items()
            },
        }


REQUEST: Final = Fact[dict[str, Any]]("request", dict[str, Any])
IDENTITY: Final = Fact[RunIdentity]("identity", RunIdentity)


@contextmanager
def run_folder(stated: Path | None) -> Iterator[Path]:
    """The folder of a run, absolute; where none was stated, one that is deleted afterwards."""
    if stated is not None:
        yield stated.resolve()
        return
    with tempfile.TemporaryDirectory(prefix="evaltools-") as folder:
        yield Path(folder)


@contextmanager
def run_journal(run_dir: Path | None) -> Iterator[Journal]:
    """A context with the journal of a run: in its folder, or a temporary one without a folder."""
    journal = temporary_journal() if run_dir is None else open_journal(run_dir)
    try:
        yield journal
    finally:
        journal.close()


def require_same_run(journal: Journal, identity: RunIdentity, has_begun: bool = False) -> None:
    """Write the identity of a new run to its journal.

    Raises :class:`UsageError` where the folder has a run of another identity, or records of nobody knows what.

    A run without a single example has not begun, unless ``has_begun`` says so.
    """
    if journal.folder is None:
        return
    if not (has_begun or journal.examples()):
        IDENTITY.write(journal, identity)
        return
    stated = IDENTITY.read(journal)
    if stated is None:
        raise UsageError(
            f"--run_dir={journal.folder} holds records, and not what they are of, as no run leaves it; give another "
            "folder"
        )
    _require_no_changes(journal, stated.changes(identity))


def require_same_files(journal: Journal, identity: RunIdentity) -> None:
    """Raise :class:`UsageError` where the run in a folder has begun with other files or options.

    That is known before any library is loaded; what configurations run on is compared by :func:`require_same_run`.
    """
    stated = None if journal.folder is None else IDENTITY.read(journal)
    if stated is not None and journal.examples():
        _require_no_changes(journal, replace(stated, configurations={}).changes(identity))


def _require_no_changes(journal: Journal, changes: Sequence[str]) -> None:
    if changes:
        raise UsageError(
            f"--run_dir={journal.folder} holds another run: {'; '.join(changes)}. Repeat the run as it was, or give "
            "another folder"
        )


def request_facts(plain: object, identity: RunIdentity) -> dict[str, str]:
    """The facts that keep request and identity of a new run."""
    return {REQUEST.name: encode(plain), IDENTITY.name: encode(identity)}


def digest_of_files(paths: Iterable[Path]) -> str:
    """A checksum of names, sizes and order: another file in the place of one has nearly always another size."""
    return digest(f"{path.name}\0{_stamp(path)[0]}" for path in paths)


def with_files(identity: RunIdentity, what: str, paths: Sequence[Path]) -> RunIdentity:
    """The identity with the names and sizes of files, and separately their times of change.

    Missing files count as empty.
    """
    return replace(
        identity,
        inputs={**identity.inputs, what: f"{len(paths)} files, {digest_of_files(paths)}"},
        written={**identity.written, what: digest(str(_stamp(path)[1]) for path in paths)},
    )


def _stamp(path: Path) -> tuple[int, int]:
    """Size and time of change of a file; those of an empty one that was never changed where it is missing."""
    try:
        status = path.stat()
    except OSError:
        return 0, 0
    return status.st_size, status.st_mtime_ns


def digest(texts: Iterable[str]) -> str:
    """A short checksum of some texts."""
    checksum = hashlib.sha256()
    for text in texts:
        checksum.update(text.encode("utf-8", "surrogateescape") + b"\0")
    return checksum.hexdigest()[:16]


def encode(value: object) -> str:
    """A fact as JSON; file names that are no Unicode are kept."""
    return json.dumps(msgspec.to_builtins(value))


def decode(text: str, wanted: Any, folder: Path | None) -> Any:
    """The fact in JSON; raises :class:`DataError` for a text that holds none."""
    try:
        return msgspec.convert(json_values(text), type=wanted, str_keys=True)
    except (ValueError, msgspec.ValidationError) as error:
        raise DataError(f"the journal in {folder} cannot be read: {error}; start the run anew") from error


def _is_plural(name: str) -> bool:
    """Whether the name is that of several things, as ``the pictures``; flags are one thing each."""
    return name.startswith("the ") and name.endswith("s")


def _shown(name: str, text: str | None, other: str | None) -> str:
    """A text, of a long one the part from a little before it differs from the ``other``.

    >>> _shown("the job", "evaltools " + 90 * "x" + " --num_threads=2 --seed=1", "evaltools " + 90 * "x" + " --seed=1")
    '...xxxxxxxxxxxxx --num_threads=2 --seed=1'
    """
    if text is None:
        return "left out" if name.startswith("--") else "not there"
    if len(text) <= _LONGEST_SHOWN:
        return text
    apart = (place for place, (one, another) in enumerate(zip(text, other or "", strict=False)) if one != another)
    first = max(0, next(apart, 0) - _SHOWN_BEFORE)
    end = first + _LONGEST_SHOWN
    return f"{'...' * (first > 0)}{text[first:end]}{'...' * (end < len(text))}"

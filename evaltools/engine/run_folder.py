"""Whether a run folder belongs to the run that wants to go on in it, and what several of them make together."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import msgspec

from evaltools.engine.journal import Journal, existing_journal, open_journal, temporary_journal
from evaltools.errors import DataError, UsageError

REQUEST: Final = "request"
IDENTITY: Final = "identity"
TIMES_OF_CHANGE: Final = "the times of change of "
"""What an identity says of files that may be copies elsewhere begins with this."""
_LONGEST_SHOWN: Final = 80


@contextmanager
def run_journal(run_dir: Path | None) -> Iterator[Journal[Any]]:
    """The journal of a run: in its folder, or a temporary one."""
    journal: Journal[Any] = temporary_journal() if run_dir is None else open_journal(run_dir)
    try:
        yield journal
    finally:
        journal.close()


@contextmanager
def journals_of(folders: Sequence[Path]) -> Iterator[list[Journal[Any]]]:
    """The journals of finished runs."""
    opened: list[Journal[Any]] = []
    try:
        for folder in folders:
            opened.append(existing_journal(folder))
        yield opened
    finally:
        for journal in opened:
            journal.close()


def require_same_run(journal: Journal[Any], identity: Mapping[str, str], begun: bool = False) -> None:
    """Write down what a new run is made of; raises :class:`UsageError` where an earlier one was made of something else.

    ``identity`` has a text for each thing that must not change between the parts of a run. A run without a single
    example has not begun, unless ``begun`` says so.
    """
    if journal.folder is None:
        return
    stated = identity_of(journal)
    if stated is None or not (begun or journal.examples()):
        journal.state({IDENTITY: encode(dict(identity))})
        return
    changed = differences(stated, identity)
    if changed:
        raise UsageError(
            f"--run_dir={journal.folder} holds another run: {'; '.join(changed)}. Repeat the run as it was, or give "
            "another folder"
        )


def identity_of(journal: Journal[Any]) -> dict[str, str] | None:
    """What the run in a folder is made of, None where it has not begun."""
    text = journal.fact(IDENTITY)
    return None if text is None else decode(text, dict[str, str], journal.folder)


def differences(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """In words, what is not the same."""
    names = [*before, *(name for name in now if name not in before)]
    return [_change(name, before.get(name), now.get(name)) for name in names if before.get(name) != now.get(name)]


def _change(name: str, before: str | None, now: str | None) -> str:
    if name.startswith(TIMES_OF_CHANGE):
        return f"{name.removeprefix(TIMES_OF_CHANGE)} were written anew since"
    return f"{name} was {_shown(before)}, now it is {_shown(now)}"


def digest(texts: Iterable[str]) -> str:
    """A short checksum of some texts."""
    checksum = hashlib.sha256()
    for text in texts:
        checksum.update(text.encode("utf-8", "surrogateescape") + b"\0")
    return checksum.hexdigest()[:16]


def encode(value: object) -> str:
    """JSON for a fact; file names that are no Unicode are kept."""
    return json.dumps(msgspec.to_builtins(value))


def decode(text: str, wanted: Any, folder: Path | None) -> Any:
    """A fact again; raises :class:`DataError` for what is none."""
    try:
        return msgspec.convert(json.loads(text), type=wanted)
    except (ValueError, RecursionError, msgspec.DecodeError) as error:
        raise DataError(f"the journal in {folder} cannot be read: {error}; start the run anew") from error


def _shown(text: str | None) -> str:
    if text is None:
        return "not there"
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}..."

"""Journals as somebody might have edited them: frames are written anew, each with a checksum that is right."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from evaltools.engine.journal import JOURNAL_NAME, open_journal, read_journal

Plain = list[Any]
"""A record as MessagePack has it: its tag, then the fields of a Record in their order."""


def facts_in(folder: Path) -> dict[str, str]:
    """The facts of the run in a folder."""
    return dict(read_journal(folder)._facts)


def records_in(folder: Path) -> list[Plain]:
    """Its records as plain values, those of one configuration after those of another."""
    journal = read_journal(folder)
    return [
        msgspec.msgpack.decode(journal.content_of(kept)) for own in journal.records.values() for kept in own.values()
    ]


def rewrite(
    folder: Path,
    facts: Callable[[dict[str, str]], dict[str, str]] = dict,
    records: Callable[[list[Plain]], Sequence[Plain]] = list,
) -> None:
    """Write the journal in a folder anew, with other facts and records."""
    new_facts, new_records = facts(facts_in(folder)), records(records_in(folder))
    (folder / JOURNAL_NAME).unlink()
    journal = open_journal(folder)
    journal.state(new_facts)
    journal._append([msgspec.msgpack.encode(each) for each in new_records])
    journal.close()


def without_examples(*numbers: int) -> Callable[[list[Plain]], list[Plain]]:
    """Leaves the records of some examples out."""
    return lambda records: [each for each in records if each[1] not in numbers]

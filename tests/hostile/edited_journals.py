"""Run folders that somebody edited: what a journal holds. The number of a case is its seed."""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from evaltools.engine.journal import JOURNAL_NAME
from tests.hostile.edited_results import another_value, places_in
from tests.journals import Plain, rewrite


def edited(seed: int, sound: Path, folder: Path) -> str:
    """Make a copy of a ``sound`` run folder with one edit; returns what was done in words."""
    chance = random.Random(seed)
    shutil.copytree(sound, folder)
    what = chance.choice(list(_EDITS))
    return f"{seed}: {what} {_EDITS[what](folder, chance)}"


def _in_a_fact(folder: Path, chance: random.Random) -> str:
    """One value of the request, or of what the run is of, is another."""
    name = chance.choice(("request", "identity"))
    done = ""

    def change(facts: dict[str, str]) -> dict[str, str]:
        nonlocal done
        document = json.loads(facts[name])
        done = _another(document, chance)
        return {**facts, name: json.dumps(document)}

    rewrite(folder, facts=change)
    return f"{name}{done}"


def _in_records(folder: Path, chance: random.Random) -> str:
    """One value of each record is another, in the same place."""
    seed = chance.randrange(1 << 30)
    done = ""

    def change(records: list[Plain]) -> list[Plain]:
        nonlocal done
        for record in records:
            done = _another(record, random.Random(seed))
        return records

    rewrite(folder, records=change)
    return done


def _another(document: Any, chance: random.Random) -> str:
    parent, key, place = chance.choice(list(places_in(document, "")))
    parent[key] = another_value(parent[key], chance)
    return f"{place} = {str(parent[key])[:40]}"


def _in_bytes(folder: Path, chance: random.Random) -> str:
    journal = folder / JOURNAL_NAME
    content = bytearray(journal.read_bytes())
    start = chance.choice((0, chance.randrange(100), chance.randrange(len(content))))
    count = chance.choice((1, 2, 4, 100, 4096))
    content[start : start + count] = chance.randbytes(count)
    journal.write_bytes(content)
    return f"{count} bytes from {start} on"


def _in_length(folder: Path, chance: random.Random) -> str:
    journal = folder / JOURNAL_NAME
    size = chance.choice((0, 1, 99, 4096, 5000, journal.stat().st_size + 4096))
    os.truncate(journal, size)
    return f"of {size} bytes"


_EDITS: Final[dict[str, Callable[[Path, random.Random], str]]] = {
    "fact": _in_a_fact,
    "record": _in_records,
    "bytes": _in_bytes,
    "length": _in_length,
}

"""Run folders that somebody edited: what a journal holds. The number of a case is its seed."""

from __future__ import annotations

import json
import os
import random
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import msgspec

from evaltools.engine.journal import JOURNAL_NAME, checked
from tests.hostile.edited_results import another_value, places_in


def edited(seed: int, sound: Path, folder: Path) -> str:
    """Make a copy of a ``sound`` run folder with one edit; returns what was done in words."""
    chance = random.Random(seed)
    shutil.copytree(sound, folder)
    what = chance.choice(list(_EDITS))
    return f"{seed}: {what} {_EDITS[what](folder / JOURNAL_NAME, chance)}"


def _check_anew(connection: sqlite3.Connection) -> None:
    """Write the checksums of all rows anew, as who means harm would."""
    for table in ("facts", "inputs", "records"):
        rows = [row[:-1] for row in connection.execute(f"SELECT * FROM {table}")]
        for row in rows:
            values = ", ".join("?" * (len(row) + 1))
            connection.execute(f"INSERT OR REPLACE INTO {table} VALUES ({values})", checked(row))


def _in_a_fact(journal: Path, chance: random.Random) -> str:
    """One value of the request, or of what the run is of, is another."""
    with closing(sqlite3.connect(journal)) as connection:
        name = chance.choice(("request", "identity"))
        ((text,),) = connection.execute("SELECT value FROM facts WHERE name = ?", (name,))
        document = json.loads(text)
        done = _another(document, chance)
        connection.execute("UPDATE facts SET value = ? WHERE name = ?", (json.dumps(document), name))
        _check_anew(connection)
        connection.commit()
    return f"{name}{done}"


def _in_records(journal: Path, chance: random.Random) -> str:
    """One value of each record is another, in the same place."""
    seed = chance.randrange(1 << 30)
    done = ""
    with closing(sqlite3.connect(journal)) as connection:
        rows = connection.execute("SELECT configuration, example, content FROM records").fetchall()
        for configuration, example, content in rows:
            decoded = msgspec.msgpack.decode(content)
            done = _another(decoded, random.Random(seed))
            connection.execute(
                "UPDATE records SET content = ? WHERE configuration = ? AND example = ?",
                (msgspec.msgpack.encode(decoded), configuration, example),
            )
        _check_anew(connection)
        connection.commit()
    return done


def _another(document: Any, chance: random.Random) -> str:
    parent, key, place = chance.choice(list(places_in(document, "")))
    parent[key] = another_value(parent[key], chance)
    return f"{place} = {str(parent[key])[:40]}"


def _in_bytes(journal: Path, chance: random.Random) -> str:
    content = bytearray(journal.read_bytes())
    start = chance.choice((0, chance.randrange(100), chance.randrange(len(content))))
    count = chance.choice((1, 2, 4, 100, 4096))
    content[start : start + count] = chance.randbytes(count)
    journal.write_bytes(content)
    return f"{count} bytes from {start} on"


def _in_length(journal: Path, chance: random.Random) -> str:
    size = chance.choice((0, 1, 99, 4096, 5000, journal.stat().st_size + 4096))
    os.truncate(journal, size)
    return f"of {size} bytes"


_EDITS: Final[dict[str, Callable[[Path, random.Random], str]]] = {
    "fact": _in_a_fact,
    "record": _in_records,
    "bytes": _in_bytes,
    "length": _in_length,
}

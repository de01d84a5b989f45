"""Run folders that somebody edited: what a journal defines, holds or is. The number of a case is its seed."""

from __future__ import annotations

import json
import os
import random
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, Final

import msgspec

from evaltools.engine.journal import JOURNAL_NAME, checked
from tests.hostile.edited_results import another_value, places_in

_ENDLESS: Final = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n)"
_STATEMENTS: Final = (
    f"DROP TABLE facts; CREATE VIEW facts AS {_ENDLESS} SELECT x AS name, x AS value FROM n",
    f"DROP TABLE inputs; CREATE VIEW inputs AS {_ENDLESS} SELECT x AS example, 1 AS preprocessing_us FROM n",
    f"DROP TABLE records; CREATE VIEW records AS {_ENDLESS} "
    "SELECT 'test' AS configuration, x AS example, 0 AS failed, zeroblob(1000000) AS content FROM n",
    "CREATE TRIGGER t AFTER INSERT ON facts BEGIN DELETE FROM records; END",
    "DROP TABLE facts; CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT AS (zeroblob(1000000000)))",
    "CREATE VIRTUAL TABLE v USING fts5(x)",
    "DROP TABLE facts",
    "DELETE FROM facts",
    "DELETE FROM facts WHERE name = 'request'",
    "DELETE FROM records",
    "DELETE FROM records WHERE example % 2",
    "UPDATE facts SET value = x'ff00ff'",
    "UPDATE facts SET value = replace(hex(zeroblob(100000)), '0', '[')",
    "UPDATE facts SET value = cast(zeroblob(70000000) AS TEXT)",
    "UPDATE inputs SET example = example + 1000",
    "UPDATE inputs SET preprocessing_us = 'x'",
    "UPDATE records SET example = 9223372036854775807 WHERE example = 1",
    "UPDATE records SET example = -example",
    "UPDATE records SET failed = 'x'",
    "UPDATE records SET content = zeroblob(70000000)",
    "UPDATE records SET content = x'ddffffffff'",
    "UPDATE records SET configuration = x'00' WHERE example = 1 AND configuration = 'test'",
    "PRAGMA writable_schema = ON; UPDATE sqlite_master SET sql = 'CREATE TABLE facts (name, value, more)'",
    "PRAGMA writable_schema = ON; UPDATE sqlite_master SET rootpage = 99999",
)
_SPARSE_BYTES: Final = 40 << 30


def edited(seed: int, sound: Path, folder: Path) -> str:
    """Make a copy of a ``sound`` run folder with one edit; returns what was done in words."""
    chance = random.Random(seed)
    shutil.copytree(sound, folder)
    what = chance.choice(list(_EDITS))
    return f"{seed}: {what} {_EDITS[what](folder / JOURNAL_NAME, chance)}"


def _run(journal: Path, statements: str) -> None:
    with closing(sqlite3.connect(journal)) as connection:
        with suppress(sqlite3.Error):  # a build of SQLite may refuse what another lets be
            connection.executescript(statements)
            if statements.startswith("UPDATE"):
                _check_anew(connection)
        connection.commit()


def _check_anew(connection: sqlite3.Connection) -> None:
    """Write the checksums of all rows anew, as who means harm would."""
    for table in ("facts", "inputs", "records"):
        rows = [row[:-1] for row in connection.execute(f"SELECT * FROM {table}")]
        for row in rows:
            with suppress(UnicodeError):
                values = ", ".join("?" * (len(row) + 1))
                connection.execute(f"INSERT OR REPLACE INTO {table} VALUES ({values})", checked(row))


def _by_statement(journal: Path, chance: random.Random) -> str:
    statement = chance.choice(_STATEMENTS)
    _run(journal, statement)
    return statement


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
    size = chance.choice((0, 1, 99, 4096, 5000, journal.stat().st_size + 4096, _SPARSE_BYTES))
    os.truncate(journal, size)
    return f"of {size} bytes"


def _in_another_file(journal: Path, chance: random.Random) -> str:
    ending = chance.choice(("", "-wal", "-shm", "-journal"))
    kind = chance.choice(("pipe", "folder", "link", "endless", "bytes", "sparse"))
    path = journal.with_name(f"{journal.name}{ending}")
    path.unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind in ("link", "endless"):
        path.symlink_to("/etc/hostname" if kind == "link" else "/dev/zero")
    else:
        path.write_bytes(chance.randbytes(5000))
        if kind == "sparse":
            os.truncate(path, _SPARSE_BYTES)
    return f"{ending} is {kind}"


_EDITS: Final[dict[str, Callable[[Path, random.Random], str]]] = {
    "statement": _by_statement,
    "schema": _by_statement,
    "fact": _in_a_fact,
    "record": _in_records,
    "bytes": _in_bytes,
    "length": _in_length,
    "file": _in_another_file,
}

"""The journal of a run: one row per example and configuration, in SQLite, so that nothing finished is lost.

Rows are written in batches of at most half a second, each in one transaction; whatever kills the process, the file
holds whole batches. It is locked while a run uses it.
"""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
import time
import zlib
from array import array
from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Final, Generic

import msgspec
from msgspec import Struct

from evaltools.engine.codec import Codec, Stored
from evaltools.engine.steps import Failure, Observation, Record
from evaltools.errors import DataError, OutputError, UsageError

JOURNAL_NAME: Final = "journal.sqlite3"
_SECONDS_PER_BATCH: Final = 0.5
_ROWS_PER_BATCH: Final = 1000
_WRITTEN_AHEAD: Final = "-wal"
_BEGINNING: Final = 32
_TRIES_TO_COPY: Final = 5
_DAMAGED: Final = (sqlite3.DatabaseError, UnicodeDecodeError)
"""What reading a damaged file raises; SQLite's own message may hold bytes of it, which are no text."""
_TABLES: Final = """
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value TEXT NOT NULL, checksum INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS inputs (example INTEGER PRIMARY KEY, preprocessing_us INTEGER, checksum INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS records (
    configuration TEXT, example INTEGER, failed INTEGER NOT NULL, content BLOB NOT NULL, checksum INTEGER NOT NULL,
    PRIMARY KEY (configuration, example)
) WITHOUT ROWID;
"""
_TABLE_NAMES: Final = ("facts", "inputs", "records")


class Finished(Struct, Generic[Observation], frozen=True):
    """A finished example with the records of the configurations that were tried.

    ``preprocessing_us`` is the time of making its input in microseconds, None if it has no input.
    """

    example: int
    preprocessing_us: int | None
    records: Sequence[Record[Observation]]


class Journal:
    """The journal of any task: facts about the run, and rows that can be counted and copied.

    :class:`TaskJournal` reads and writes the records. Without a folder the rows are in a temporary file, which is
    deleted when the journal is closed.

    Every method may raise :class:`OutputError` where the file cannot be written, :class:`DataError` where it cannot be
    read.
    """

    def __init__(self, connection: sqlite3.Connection, folder: Path | None) -> None:
        self.folder: Final = folder
        self._connection = connection

    def fact(self, name: str) -> str | None:
        """A fact about the whole run, None if no such fact was written."""
        with self._reading():
            return next((row[0] for row in self._rows("SELECT value FROM facts WHERE name = ?", (name,))), None)

    def state(self, facts: Mapping[str, str]) -> None:
        """Write facts, all or none."""
        with self._writing():
            self._connection.executemany("INSERT OR REPLACE INTO facts VALUES (?, ?, ?)", map(checked, facts.items()))

    def count(self, configuration: str, last_example: int) -> int:
        """The number of records of one configuration up to an example."""
        query = "SELECT count(*) FROM records WHERE configuration = ? AND example <= ?"
        return next(int(row[0]) for row in self._rows(query, (configuration, last_example)))

    def preprocessing_us(self, last_example: int) -> Sequence[int]:
        """Microseconds of preprocessing of each example up to ``last_example`` whose input could be made, in order."""
        query = (
            "SELECT preprocessing_us FROM inputs WHERE preprocessing_us IS NOT NULL AND example <= ? ORDER BY example"
        )
        return array("q", (row[0] for row in self._rows(query, (last_example,))))

    def take_over(self, other: Journal, suffix: str = "") -> None:
        """Copy all rows of another journal, with ``suffix`` appended to the names of its configurations.

        If several copied journals have the same example, the time of its preprocessing is that of the first.
        """
        with (
            closing(other._rows("SELECT example, preprocessing_us FROM inputs")) as inputs,
            closing(
                other._rows("SELECT configuration || ?, example, failed, content FROM records", (suffix,))
            ) as records,
            self._writing(),
        ):
            self._connection.executemany("INSERT OR IGNORE INTO inputs VALUES (?, ?, ?)", map(checked, inputs))
            self._connection.executemany("INSERT INTO records VALUES (?, ?, ?, ?, ?)", map(checked, records))

    def examples(self) -> set[int]:
        """The numbers of the examples that have rows."""
        return {int(row[0]) for row in self._rows("SELECT example FROM inputs")}

    def close(self) -> None:
        """Close the file; examples that wait in a :class:`TaskJournal` and were not flushed are lost."""
        self._connection.close()

    def _rows(self, query: str, values: Sequence[object] = ()) -> Generator[tuple[Any, ...]]:
        with self._reading():
            yield from self._connection.execute(query, values)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            with self._connection:
                yield
        except sqlite3.Error as error:
            raise OutputError(f"{self._place} cannot be written: {error}. {self._next_step}") from error

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except _DAMAGED as error:
            raise DataError(f"{self._place} cannot be read: {error}; start the run anew in another folder") from error

    @property
    def _place(self) -> str:
        return "the temporary journal" if self.folder is None else str(self.folder / JOURNAL_NAME)

    @property
    def _next_step(self) -> str:
        if self.folder is None:
            return "Make room in the folder for temporary files, or name another one in TMPDIR"
        return f"What was written before is kept: mend it, then evaltools resume {self.folder}"


class TaskJournal(Journal, Generic[Observation]):
    """A journal whose task is known, so that its records can be read and written.

    It has so many ``examples``, whose records are found by their number; ``observation_type`` is the type of what is
    observed of each. It uses the file of ``journal``, and closes it like that.
    """

    def __init__(self, journal: Journal, examples: int, observation_type: type[Observation]) -> None:
        super().__init__(journal._connection, journal.folder)
        self._examples = examples
        self._codec: Codec[Observation] = Codec(observation_type)
        self._waiting: list[Finished[Observation]] = []
        self._rows_waiting = 0
        self._written_at = time.monotonic()

    def add(self, finished: Finished[Observation]) -> None:
        """Take an example, which is written with the next batch."""
        self._waiting.append(finished)
        self._rows_waiting += len(finished.records)
        if self._rows_waiting >= _ROWS_PER_BATCH or time.monotonic() - self._written_at >= _SECONDS_PER_BATCH:
            self.flush()

    def flush(self) -> None:
        """Write the examples that wait for the next batch."""
        inputs = [(entry.example, entry.preprocessing_us) for entry in self._waiting]
        rows = [
            (record.configuration, record.example, int(record.failure is not None), self._content(record))
            for entry in self._waiting
            for record in entry.records
        ]
        with self._writing():
            self._connection.executemany("INSERT OR REPLACE INTO inputs VALUES (?, ?, ?)", map(checked, inputs))
            self._connection.executemany("INSERT OR REPLACE INTO records VALUES (?, ?, ?, ?, ?)", map(checked, rows))
        self._waiting.clear()
        self._rows_waiting = 0
        self._written_at = time.monotonic()

    def fates(self) -> Iterator[tuple[int, dict[str, Failure | None]]]:
        """Every written example in order, with the failure of each configuration; None where it did not fail."""
        query = (
            "SELECT example, configuration, CASE WHEN failed THEN content END FROM records "
            "ORDER BY example, configuration"
        )
        current, fates = -1, dict[str, Failure | None]()
        for example, configuration, content in self._rows(query):
            self._require_known(example)
            if example != current and fates:
                yield current, fates
                fates = {}
            current = example
            fates[configuration] = None if content is None else self._codec.decode(content).failure
        if fates:
            yield current, fates

    def records(self, configuration: str, last_example: int) -> JournalRecords[Observation]:
        """The records of one configuration up to an example, in order; they are read when they are gone through."""
        return JournalRecords(self, configuration, last_example)

    def read(self, configuration: str, last_example: int) -> Iterator[Record[Observation]]:
        """Read the records of one configuration up to an example one by one, in order."""
        query = "SELECT example, content FROM records WHERE configuration = ? AND example <= ? ORDER BY example"
        for example, content in self._rows(query, (configuration, last_example)):
            self._require_known(example)
            stored = self._codec.decode(content)
            yield Record(
                example,
                configuration,
                stored.invokes_us,
                stored.observation,
                stored.failure,
                stored.read_us,
            )

    def _content(self, record: Record[Observation]) -> bytes:
        return self._codec.encode(Stored(record.invokes_us, record.read_us, record.observation, record.failure))

    def _require_known(self, index: int) -> None:
        """Raise :class:`DataError` for the number of an example that the task does not have."""
        if not 0 <= index < self._examples:
            raise DataError(f"{self._place} names example {index} of {self._examples}; start the run anew")


class JournalRecords(Collection[Record[Observation]]):
    """Records of one configuration, which are read from the journal each time that they are gone through."""

    def __init__(self, journal: TaskJournal[Observation], configuration: str, last_example: int) -> None:
        self._journal = journal
        self._place = (configuration, last_example)

    def __iter__(self) -> Iterator[Record[Observation]]:
        return self._journal.read(*self._place)

    def __len__(self) -> int:
        return self._journal.count(*self._place)

    def __contains__(self, record: object) -> bool:
        return any(record == own for own in self)


def temporary_journal() -> Journal:
    """A journal in a temporary file, for a run that cannot be resumed."""
    return _with_tables(sqlite3.connect(""), None)


def open_journal(folder: Path) -> Journal:
    """Open the journal of a run folder, or begin one there.

    Raises :class:`UsageError` where the folder cannot be used, or another run uses it.
    """
    path = folder / JOURNAL_NAME
    try:
        folder.mkdir(parents=True, exist_ok=True)
        foreign = not path.exists() and any(folder.iterdir())
    except OSError as error:
        raise UsageError(f"--run_dir={folder} cannot be used: {error.strerror}; give a folder that can") from error
    if foreign:
        raise UsageError(f"--run_dir={folder} holds other files and no journal; give a new or an empty folder")
    connection: sqlite3.Connection | None = None
    try:
        connection = sqlite3.connect(path, timeout=1)
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        return _with_tables(connection, folder)
    except _DAMAGED as error:
        if connection is not None:
            connection.close()
        raise UsageError(f"--run_dir={folder}: {_why_unusable(path, error)}") from error


@contextmanager
def copied_journal(folder: Path) -> Iterator[Journal]:
    """A context with a copy of a journal as far as it is written, so that a run that goes on is not disturbed.

    Raises :class:`UsageError` where there is no journal, :class:`DataError` where the run writes faster than it can be
    copied, and :class:`OutputError` where there is no room for the copy.
    """
    if not (folder / JOURNAL_NAME).is_file():
        raise UsageError(f"{folder} is not a run folder: it has no {JOURNAL_NAME}; give the folder of a --run_dir")
    with tempfile.TemporaryDirectory(prefix="evaltools-") as temporary:
        copy = Path(temporary, JOURNAL_NAME)
        for _ in range(_TRIES_TO_COPY):
            before = _written_ahead_since(folder)
            try:
                _copy(folder, copy)
            except FileNotFoundError:
                continue
            except OSError as error:
                raise OutputError(f"the journal in {folder} cannot be copied: {error.strerror}") from error
            if before == _written_ahead_since(folder):
                break
        else:
            raise DataError(f"the journal in {folder} changes while it is copied; try again")
        with closing(sqlite3.connect(copy)) as connection:
            try:
                journal = _with_tables(connection, folder)
            except _DAMAGED as error:
                raise UsageError(f"{folder}: {_why_unusable(folder / JOURNAL_NAME, error)}") from error
            yield journal


def _copy(folder: Path, copy: Path) -> None:
    """Copy a journal and what is written ahead of it, if anything is."""
    shutil.copyfile(folder / JOURNAL_NAME, copy)
    copied_ahead = copy.with_name(f"{JOURNAL_NAME}{_WRITTEN_AHEAD}")
    copied_ahead.unlink(missing_ok=True)
    with suppress(FileNotFoundError):
        shutil.copyfile(folder / copied_ahead.name, copied_ahead)


def _written_ahead_since(folder: Path) -> bytes:
    """The beginning of what is written ahead, which is another whenever that was moved into the journal."""
    try:
        with open(folder / f"{JOURNAL_NAME}{_WRITTEN_AHEAD}", "rb") as file:
            return file.read(_BEGINNING)
    except OSError:
        return b""


def _with_tables(connection: sqlite3.Connection, folder: Path | None) -> Journal:
    connection.execute("PRAGMA cache_size = -256")  # KiB: rows are written once and read in order
    _require_own_schema(connection)
    with connection:
        _make_tables(connection)
    _require_sound(connection)
    return Journal(connection, folder)


def _make_tables(connection: sqlite3.Connection) -> None:
    for statement in _TABLES.strip().split(";\n"):
        connection.execute(statement)


def _require_own_schema(connection: sqlite3.Connection) -> None:
    """Raise :class:`sqlite3.DatabaseError` for a file with other tables: one bit can change what the file defines."""
    found = _schema(connection)
    with closing(sqlite3.connect(":memory:")) as empty:
        _make_tables(empty)
        if found and found != _schema(empty):
            raise sqlite3.DatabaseError("it holds other tables than the journal of a run")


def _schema(connection: sqlite3.Connection) -> set[tuple[str, ...]]:
    return set(connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master"))


def checked(row: tuple[object, ...]) -> tuple[object, ...]:
    """A row with the checksum of its values behind them: SQLite does not notice that a bit of a value is another."""
    return (*row, zlib.crc32(msgspec.msgpack.encode(row)))


def _require_sound(connection: sqlite3.Connection) -> None:
    """Raise :class:`sqlite3.DatabaseError` where a page, or a row, is not as it was written."""
    for (found,) in connection.execute("PRAGMA quick_check(1)"):
        if found != "ok":
            raise sqlite3.DatabaseError("its pages are damaged")
    for table in _TABLE_NAMES:
        if any(checked(row[:-1]) != row for row in connection.execute(f"SELECT * FROM {table}")):
            raise sqlite3.DatabaseError(f"a row of its {table} is damaged")


def _why_unusable(path: Path, error: Exception) -> str:
    if "locked" in str(error):
        return "another run is using it; wait for that, or give another folder"
    return f"{path} cannot be used: {error}; give another folder"

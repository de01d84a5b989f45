"""The journal of a run: an append-only file of frames, so that nothing finished is lost, and no damage is silent.

The file begins with its format and a random mark. A frame is :data:`_FRAME`, the length and the CRC-32 of what follows,
and that as MessagePack: a :class:`Statement` about the run or a :class:`~evaltools.engine.steps.Record`. The checksum
is also over the mark and the frame's place, so that a frame of another run, or in another place, is as damaged as one
with a flipped bit. Of statements with one name, and of records of one example and configuration, the last one counts.

Records are written in batches of at most half a second. The file is locked while a run writes it; it can be read at any
time.
"""

from __future__ import annotations

import mmap
import os
import struct
import tempfile
import time
import weakref
import zlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple

import msgspec
from msgspec import Struct

from evaltools.engine.steps import Failure, Record, encode_record
from evaltools.errors import DataError, OutputError, UsageError

JOURNAL_NAME: Final = "journal.evaltools"
_EARLIER: Final = "journal.sqlite3"
_FORMAT: Final = b"evaltools journal "
_VERSION: Final = b"2\n"
_MARK_BYTES: Final = 8
_CHECK: Final = struct.Struct("<I")
_BEGINNING: Final = len(_FORMAT) + len(_VERSION) + _MARK_BYTES + _CHECK.size
_FRAME: Final = b"\x00\xf5ev"
_HEAD: Final = struct.Struct("<4sII")
_PLACE: Final = struct.Struct("<Q")
_SECONDS_PER_BATCH: Final = 0.5
_RECORDS_PER_BATCH: Final = 1000


class Statement(Struct, frozen=True, array_like=True, tag="fact"):
    """Something about the whole run, as text."""

    name: str
    value: str


class Kept(NamedTuple):
    """Where a record stands in the file, in bytes, and of it what is asked for most often."""

    at: int
    size: int
    failure: Failure | None
    prepared_us: int | None


_entries: Final = msgspec.msgpack.Decoder(Statement | Record[Any])
_facts: Final = msgspec.msgpack.Encoder()


class Journal:
    """A journal that is open: ``records`` has the last one of each example, by configuration.

    ``damage`` says in words what cannot be read.

    Without a folder it is a temporary file, which is deleted when the journal is closed. Every method may raise
    :class:`OutputError` where the file cannot be written, :class:`DataError` where it cannot be read.
    """

    def __init__(self, file: BinaryIO | None, folder: Path | None, mark: bytes) -> None:
        self.folder: Final = folder
        self.records: Final[dict[str, dict[int, Kept]]] = {}
        self.damage: Final[list[str]] = []
        self._facts: dict[str, str] = {}
        self._file = file
        self._mark = mark
        self._end = _BEGINNING
        self._read_from = _descriptor_to_read(file, folder)
        weakref.finalize(self, os.close, self._read_from)
        self._waiting: list[Record[Any]] = []
        self._written_at = time.monotonic()

    def fact(self, name: str) -> str | None:
        """A fact about the whole run, None if no such fact was written."""
        return self._facts.get(name)

    def state(self, facts: Mapping[str, str]) -> None:
        """Write facts at once."""
        self._append([_facts.encode(Statement(name, value)) for name, value in facts.items()])
        self._facts.update(facts)

    def add(self, records: Sequence[Record[Any]]) -> None:
        """Take the records of an example, which are written with the next batch."""
        self._waiting += records
        is_late = time.monotonic() - self._written_at >= _SECONDS_PER_BATCH
        if is_late or len(self._waiting) >= _RECORDS_PER_BATCH:
            self.flush()

    def flush(self) -> None:
        """Write the records that wait for the next batch."""
        contents = [encode_record(record) for record in self._waiting]
        at = self._end
        self._append(contents)
        for record, content in zip(self._waiting, contents, strict=True):
            self._keep(record, at + _HEAD.size, len(content))
            at += _HEAD.size + len(content)
        self._waiting.clear()
        self._written_at = time.monotonic()

    def content_of(self, kept: Kept) -> bytes:
        """The bytes of a record, also when the journal was closed."""
        try:
            return os.pread(self._read_from, kept.size, kept.at)
        except OSError as error:
            raise DataError(f"{self._name} cannot be read: {error.strerror}") from error

    def examples(self) -> set[int]:
        """The numbers of the examples that have records."""
        return {example for own in self.records.values() for example in own}

    def close(self) -> None:
        """Close the file; records that wait and were not flushed are lost."""
        if self._file is not None:
            self._file.close()

    def _append(self, contents: Sequence[bytes]) -> None:
        """Write frames at the end, all or none."""
        frames = bytearray()
        for content in contents:
            frames += _frame(content, self._mark, self._end + len(frames))
        assert self._file is not None
        try:
            self._file.seek(self._end)
            self._file.write(frames)
            self._file.flush()
        except OSError as error:
            with suppress(OSError):
                os.ftruncate(self._file.fileno(), self._end)
            raise OutputError(f"{self._name} cannot be written: {error.strerror}. {self._next_step}") from error
        self._end += len(frames)

    def take_frames(self, content: bytes | mmap.mmap, is_kept: bool) -> None:
        """Note everything in the content of the file. ``is_kept``: frames are appended, over what is cut at the end."""
        at, lost = self._end, 0
        while at < len(content):
            data = _data_at(content, self._mark, at)
            entry = None if data is None else _entry_in(data)
            if data is None or entry is None:
                following = content.find(_FRAME, at + 1)
                following = len(content) if following < 0 else following
                lost += following - at
                at = following
                continue
            self._note_damage(at, lost)
            lost = 0
            if isinstance(entry, Statement):
                self._facts[entry.name] = entry.value
            else:
                self._keep(entry, at + _HEAD.size, len(data))
            at = self._end = at + _HEAD.size + len(data)
        self._note_damage(at, lost)
        if lost and is_kept and self._file is not None:
            os.ftruncate(self._file.fileno(), self._end)

    def _keep(self, record: Record[Any], at: int, size: int) -> None:
        own = self.records.setdefault(record.configuration, {})
        own[record.example] = Kept(at, size, record.failure, record.prepared_us)

    def _note_damage(self, end: int, lost: int) -> None:
        if lost:
            self.damage.append(f"{self._name} is damaged: bytes {end - lost} to {end} hold no record that can be read")

    @property
    def _name(self) -> str:
        return "the temporary journal" if self.folder is None else str(self.folder / JOURNAL_NAME)

    @property
    def _next_step(self) -> str:
        if self.folder is None:
            return "Make room in the folder for temporary files, or name another one in TMPDIR"
        return f"What was written before is kept: mend it, then evaltools resume {self.folder}"


def _descriptor_to_read(file: BinaryIO | None, folder: Path | None) -> int:
    """Records are read by a descriptor of their own, which does not hold the lock of a run."""
    if folder is not None:
        return os.open(folder / JOURNAL_NAME, os.O_RDONLY)
    assert file is not None
    return os.dup(file.fileno())


def _frame(content: bytes, mark: bytes, at: int) -> bytes:
    """The frame of some content that begins at a byte of the file."""
    return _HEAD.pack(_FRAME, len(content), _checksum(content, mark, at)) + content


def _checksum(content: bytes, mark: bytes, at: int) -> int:
    return zlib.crc32(content, zlib.crc32(mark + _PLACE.pack(at)))


def _data_at(content: bytes | mmap.mmap, mark: bytes, at: int) -> bytes | None:
    """What the frame at a byte holds, None where there is no sound frame."""
    start = at + _HEAD.size
    if start > len(content):
        return None
    frame, size, checksum = _HEAD.unpack_from(content, at)
    data = content[start : start + size]
    is_sound = frame == _FRAME and len(data) == size and _checksum(data, mark, at) == checksum
    return data if is_sound else None


def _entry_in(data: bytes) -> Statement | Record[Any] | None:
    """The fact or the record, whose observation is read later; None where it is neither."""
    try:
        return _entries.decode(data)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None


def temporary_journal() -> Journal:
    """A journal in a temporary file, for a run that cannot be resumed."""
    file = tempfile.TemporaryFile(prefix="evaltools-")  # noqa: SIM115
    return _begun(file, None)


def open_journal(folder: Path) -> Journal:
    """Open the journal of a run folder, or begin one there.

    Raises :class:`UsageError` where the folder cannot be used, or another run uses it.
    """
    path = folder / JOURNAL_NAME
    try:
        folder.mkdir(parents=True, exist_ok=True)
        foreign = not path.exists() and any(folder.iterdir())
        _require_no_earlier(folder)
        if foreign:
            raise UsageError(f"--run_dir={folder} holds other files and no journal; give a new or an empty folder")
        if path.exists() and not path.is_file():
            raise UsageError(f"--run_dir={folder}: {path} is no file; give another folder")
        file = open(path, "r+b" if path.exists() else "w+b")  # noqa: SIM115
    except OSError as error:
        raise UsageError(f"--run_dir={folder} cannot be used: {error.strerror}; give a folder that can") from error
    try:
        _lock(file, folder)
        if not path.stat().st_size:
            return _begun(file, folder)
        return _read(file, folder, is_kept=True)
    except BaseException:
        file.close()
        raise


def read_journal(folder: Path) -> Journal:
    """The journal of a run folder as far as it is written, to be read; a run that goes on is not disturbed.

    Raises :class:`UsageError` where there is none, or one that cannot be used.
    """
    _require_no_earlier(folder)
    path = folder / JOURNAL_NAME
    if not path.is_file():
        raise UsageError(f"{folder} is not a run folder: it has no {JOURNAL_NAME}; give the folder of a --run_dir")
    try:
        with open(path, "rb") as file:
            return _read(file, folder, is_kept=False)
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from error


def _require_no_earlier(folder: Path) -> None:
    if (folder / _EARLIER).exists():
        raise UsageError(
            f"{folder} holds a run of an earlier evaltools ({_EARLIER}), which this one cannot read; start it anew in "
            "another folder"
        )


def _begun(file: BinaryIO, folder: Path | None) -> Journal:
    mark = os.urandom(_MARK_BYTES)
    beginning = _FORMAT + _VERSION + mark
    try:
        file.write(beginning + _CHECK.pack(zlib.crc32(beginning)))
        file.flush()
    except OSError as error:
        name = "the temporary journal" if folder is None else str(folder / JOURNAL_NAME)
        raise OutputError(f"{name} cannot be written: {error.strerror}") from error
    return Journal(file, folder, mark)


def _read(file: BinaryIO, folder: Path, is_kept: bool) -> Journal:
    """The journal in a file that is not empty; raises :class:`UsageError` for one that is not of this format."""
    beginning = file.read(_BEGINNING)
    path = folder / JOURNAL_NAME
    stated, check = beginning[: -_CHECK.size], beginning[-_CHECK.size :]
    if not beginning:
        return Journal(None, folder, b"")
    if len(beginning) < _BEGINNING or check != _CHECK.pack(zlib.crc32(stated)):
        raise UsageError(f"{path} cannot be used: its beginning is damaged, or it is no journal; give another folder")
    if not stated.startswith(_FORMAT + _VERSION):
        version = stated[len(_FORMAT) : -_MARK_BYTES].decode("ascii", "replace").strip()
        raise UsageError(
            f"{path} is a journal of version {version}; this evaltools reads {_VERSION.decode().strip()}, so use the "
            "evaltools that wrote it"
        )
    journal = Journal(file if is_kept else None, folder, stated[-_MARK_BYTES:])
    with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        journal.take_frames(content, is_kept)
    return journal


def _lock(file: BinaryIO, folder: Path) -> None:
    """Keep others from writing as long as the file is open; raises :class:`UsageError` where another run writes it."""
    try:
        if os.name == "nt":
            import msvcrt

            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
        else:
            import fcntl

            fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise UsageError(
            f"--run_dir={folder}: another run is using it; wait for that, or give another folder"
        ) from error

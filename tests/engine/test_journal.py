"""The journal: what is in it after batches, reopening and damage, which folders it refuses; several read as one."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, cast

import pytest

from evaltools.engine.journal import _BEGINNING, JOURNAL_NAME, Journal, open_journal, read_journal, temporary_journal
from evaltools.engine.records import Records
from evaltools.engine.run_folder import IDENTITY, RunIdentity, digest, require_same_run
from evaltools.engine.steps import Failure, Record
from evaltools.errors import DataError, OutputError, UsageError

CRASHED = Failure("inference", "died", crashed=True)


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Journal]:
    """A new journal in a folder that is not there yet."""
    journal = open_journal(tmp_path / "new" / "run")
    yield journal
    journal.close()


def records_in(*journals: Journal | tuple[Journal, str], examples: int = 10) -> Records[float]:
    parts = [each if isinstance(each, tuple) else (each, "") for each in journals]
    return Records(parts, examples, float)


def finished(index: int, *names: str, failure: Failure | None = None) -> list[Record[float]]:
    """Records of example ``index`` with an observation, or a failure, of each configuration."""
    if failure is not None:
        return [Record(index, name, (), None, failure, None, 7) for name in names]
    return [Record(index, name, (index, 9), index / 4, None, 1, 7 + index) for name in names]


def test_what_was_added_is_read_in_the_order_of_the_examples(opened: Journal) -> None:
    for index in (3, 0, 9, 2):
        opened.add(finished(index, "a", "b"))
    opened.add(finished(1, "a", failure=CRASHED))
    opened.flush()
    records = records_in(opened)
    assert [record.example for record in records.of("a")] == [0, 1, 2, 3, 9]
    assert list(records.of("b")) == [each for index in (0, 2, 3, 9) for each in finished(index, "b")]
    assert [record.failure for record in records.of("a", 2)] == [None, CRASHED, None]
    assert list(records.failures()) == [
        (0, {"a": None, "b": None}),
        (1, {"a": CRASHED}),
        (2, {"a": None, "b": None}),
        (3, {"a": None, "b": None}),
        (9, {"a": None, "b": None}),
    ]
    assert opened.examples() == {0, 1, 2, 3, 9}


def test_records_end_at_the_example_that_they_were_asked_up_to(opened: Journal) -> None:
    """As where a configuration was given up while another worker went on."""
    for index in range(6):
        opened.add(finished(index, "a"))
    opened.flush()
    records = records_in(opened)
    for end, count in ((-1, 0), (0, 1), (3, 4), (9, 6)):
        found = records.of("a", end)
        assert (len(found), len(list(found)), len(list(found))) == (count,) * 3
        assert records.preprocessing_us(end) == [7, 8, 9, 10, 11, 12][:count]
    assert len(records.of("unknown")) == 0
    (third,) = finished(3, "a")
    assert third in records.of("a", 3)
    assert third not in records.of("a", 2)


def test_the_last_record_of_an_example_counts(opened: Journal) -> None:
    for value in (0.5, 0.75):
        opened.add([Record(4, "a", (1,), value)])
    opened.flush()
    assert [record.observation for record in records_in(opened).of("a")] == [0.75]


def test_records_are_written_in_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evaltools.engine.journal._RECORDS_PER_BATCH", 5)
    monkeypatch.setattr("evaltools.engine.journal._SECONDS_PER_BATCH", 3600.0)
    journal = open_journal(tmp_path)
    for index in range(5):  # two records each: the third makes a batch
        journal.add(finished(index, "a", "b"))
    journal.close()
    again = records_in(read_journal(tmp_path))
    assert [len(again.of(name)) for name in ("a", "b")] == [3, 3], "what waits is lost, whole examples are kept"


def test_a_batch_waits_no_longer_than_its_time(opened: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr("evaltools.engine.journal.time.monotonic", lambda: now[0])
    opened.flush()
    for index, (seconds, count) in enumerate([(0.0, 0), (0.4, 0), (0.2, 3), (0.4, 3), (0.2, 5)]):
        now[0] += seconds
        opened.add(finished(index, "a"))
        assert len(records_in(opened).of("a")) == count


def test_a_journal_goes_on_where_it_was_closed(tmp_path: Path) -> None:
    first = open_journal(tmp_path)
    first.add(finished(1, "a"))
    first.flush()
    first.state({"command": "x", "other": "y"})
    first.state({"command": "z"})
    for _ in range(2):  # it can be read also while it is written
        again = read_journal(tmp_path)
        assert [again.fact(name) for name in ("command", "other", "none")] == ["z", "y", None]
        assert [record.observation for record in records_in(again).of("a")] == [0.25]
        first.close()
    second = open_journal(tmp_path)
    second.add(finished(0, "a"))
    second.flush()
    assert [record.observation for record in records_in(second).of("a")] == [0.0, 0.25]
    second.close()


def test_a_journal_without_a_folder_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    journal = temporary_journal()
    journal.add(finished(1, "a"))
    journal.flush()
    assert len(list(records_in(journal).of("a"))) == 1
    journal.close()
    assert list(tmp_path.iterdir()) == []


def test_a_journal_that_is_in_use_is_refused(tmp_path: Path) -> None:
    first = open_journal(tmp_path)
    with pytest.raises(UsageError, match=f"^--run_dir={tmp_path}: another run is using it; wait for that"):
        open_journal(tmp_path)
    first.state({"still": "writable"})
    first.close()
    second = open_journal(tmp_path)
    assert second.fact("still") == "writable"
    second.close()


def closed_again(folder: Path) -> None:
    open_journal(folder).close()


OPENERS = pytest.mark.parametrize("opener", [closed_again, read_journal])


@OPENERS
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"something else than a journal of ours", "its beginning is damaged, or it is no journal; give another"),
        (b"evaltools", "its beginning is damaged, or it is no journal; give another folder"),
        (None, "is a journal of version 9; this evaltools reads 2, so use the evaltools that wrote it"),
    ],
)
def test_a_file_of_something_else_is_refused(opener: Any, content: bytes | None, message: str, tmp_path: Path) -> None:
    if content is None:
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr("evaltools.engine.journal._VERSION", b"9\n")
            open_journal(tmp_path).close()
    else:
        (tmp_path / JOURNAL_NAME).write_bytes(content)
    with pytest.raises(UsageError, match=message):
        opener(tmp_path)


@OPENERS
def test_a_run_of_an_earlier_evaltools_is_refused_by_name(opener: Any, tmp_path: Path) -> None:
    (tmp_path / "journal.sqlite3").touch()
    with pytest.raises(UsageError, match=r"a run of an earlier evaltools \(journal\.sqlite3\).* start it anew in"):
        opener(tmp_path)


def test_a_folder_with_other_files_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("mine")
    with pytest.raises(UsageError, match=f"--run_dir={tmp_path} holds other files and no journal"):
        open_journal(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["note.txt"]
    with pytest.raises(UsageError, match=f"{tmp_path} is not a run folder: it has no {JOURNAL_NAME}"):
        read_journal(tmp_path)
    with pytest.raises(UsageError, match=r"note.txt cannot be used: (File exists|Not a directory)"):
        open_journal(tmp_path / "note.txt")


@pytest.mark.parametrize(
    ("record", "message"),
    [
        (Record[Any](0, "a", (1,), "no number"), "a record of the journal cannot be read"),
        (Record[Any](700, "a", (1,), 0.5), "names example 700 of 10"),
    ],
)
def test_records_that_make_no_sense_are_a_data_error(record: Record[Any], message: str, opened: Journal) -> None:
    opened.add([record])
    opened.flush()
    with pytest.raises(DataError, match=message):
        list(records_in(opened).of("a"))


def everything_in(journal: Journal) -> Any:
    records = records_in(journal)
    return [list(records.of(name)) for name in ("a", "b")], list(records.failures()), journal.fact("command")


def a_journal(folder: Path) -> bytes:
    """The content of one with facts and twenty records."""
    journal = open_journal(folder)
    journal.state({"command": "x" * 100})
    for index in range(10):
        journal.add(finished(index, "a", "b"))
        journal.flush()
    journal.close()
    return (folder / JOURNAL_NAME).read_bytes()


def put(content: bytes, folder: Path) -> Path:
    folder.mkdir()
    (folder / JOURNAL_NAME).write_bytes(content)
    return folder


def test_no_flipped_bit_is_read_without_a_word(tmp_path: Path) -> None:
    sound = a_journal(tmp_path / "sound")
    was = everything_in(read_journal(tmp_path / "sound"))
    known = {each for records in was[0] for each in map(repr, records)}
    chance = random.Random(1)
    for number in range(200):
        place, bit = chance.randrange(len(sound)), chance.randrange(8)
        folder = put(sound[:place] + bytes([sound[place] ^ 1 << bit]) + sound[place + 1 :], tmp_path / str(number))
        if place < _BEGINNING:
            with pytest.raises(UsageError, match="its beginning is damaged"):
                read_journal(folder)
            continue
        journal = read_journal(folder)
        found = everything_in(journal)
        assert len(journal.damage) == 1, f"bit {bit} of byte {place}"
        lost = 20 - sum(map(len, found[0])) + (found[2] is None)
        assert lost == 1, "only what stood there is lost"
        assert {each for records in found[0] for each in map(repr, records)} <= known


def frames_of(content: bytes) -> list[bytes]:
    first, *others = content.split(b"\x00\xf5ev")
    return [first, *(b"\x00\xf5ev" + each for each in others)]


def test_frames_in_other_places_or_of_other_runs_are_damaged(tmp_path: Path) -> None:
    first, other = (frames_of(a_journal(tmp_path / name)) for name in ("a", "b"))
    exchanged = [*first[:4], first[6], first[5], first[4], *first[7:]]
    foreign = [*first[:4], other[4], *first[5:]]
    for frames, lost in ((exchanged, 2), (foreign, 1), ([*first[:4], first[3], *first[4:]], len(first) - 4)):
        folder = put(b"".join(frames), tmp_path / str(lost))
        journal = read_journal(folder)
        assert journal.damage
        assert sum(len(records_in(journal).of(name)) for name in ("a", "b")) == 20 - lost, "those that stand elsewhere"


def test_what_is_cut_at_the_end_is_said_and_written_over(tmp_path: Path) -> None:
    sound = a_journal(tmp_path / "sound")
    folder = put(sound[:-3], tmp_path / "cut")
    for _ in range(2):
        journal = read_journal(folder)
        assert len(records_in(journal).of("b")) == 9
        assert len(journal.damage) == 1
        assert "is damaged: bytes " in journal.damage[0]
    again = open_journal(folder)
    assert len(again.damage) == 1
    again.add(finished(9, "b"))
    again.flush()
    again.close()
    whole = read_journal(folder)
    assert (whole.damage, everything_in(whole)) == ([], everything_in(read_journal(tmp_path / "sound")))


class Full:
    """A file on a full disk, in the place of the journal's own."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def write(self, content: bytes) -> int:
        """Write the first half."""
        self._file.write(content[: len(content) // 2])
        raise OSError(28, "No space left on device")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


def test_a_write_that_fails_is_undone_and_says_how_to_go_on(opened: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evaltools.engine.journal._SECONDS_PER_BATCH", 3600.0)
    opened.add(finished(0, "a"))
    opened.flush()
    file = opened._file
    assert file is not None
    opened._file = cast(BinaryIO, Full(file))
    opened.add(finished(1, "a"))
    with pytest.raises(OutputError, match=r"No space left on device\. What was written before is kept: .* resume "):
        opened.flush()
    opened._file = file
    assert opened.examples() == {0}
    opened.flush()
    assert opened.examples() == {0, 1}, "what could not be written still waits"
    assert opened.folder is not None
    assert read_journal(opened.folder).damage == []


def test_a_run_goes_on_only_as_what_it_was(opened: Journal, tmp_path: Path) -> None:
    assert IDENTITY.read(opened) is None
    require_same_run(opened, RunIdentity({"model": "not yet"}))
    require_same_run(opened, RunIdentity({"model": "m", "labels": "x" * 100}))
    opened.add(finished(0, "a"))
    opened.flush()
    require_same_run(opened, RunIdentity({"labels": "x" * 100, "model": "m"}))
    with pytest.raises(UsageError) as caught:
        require_same_run(opened, RunIdentity({"model": "n", "labels": "x" * 100}, options={"--seed": "1"}))
    for fact in (f"--run_dir={tmp_path / 'new' / 'run'} ", "model was m, now it is n", "--seed was left out"):
        assert fact in str(caught.value)
    assert IDENTITY.read(opened) == RunIdentity({"model": "m", "labels": "x" * 100})


def test_a_run_whose_examples_lie_elsewhere_has_begun_too(opened: Journal) -> None:
    with pytest.raises(UsageError, match="holds records, and not what they are of, as no run leaves it"):
        require_same_run(opened, RunIdentity({"model": "m"}), has_begun=True)
    require_same_run(opened, RunIdentity({"model": "m"}))
    with pytest.raises(UsageError, match="model was m, now it is n"):
        require_same_run(opened, RunIdentity({"model": "n"}), has_begun=True)


def test_a_digest_tells_texts_apart_also_by_where_they_end() -> None:
    assert len({digest(texts) for texts in (["ab"], ["a", "b"], ["ab", ""], [], ["\udcff"], ["\u00ff"])}) == 6


def test_records_of_several_places_have_names_of_their_own(tmp_path: Path) -> None:
    """The same examples, run by each; an input counts as the first one had it."""
    suffixes = ("@10.0.0.2:5555", "@漢字 --")
    journals = [open_journal(tmp_path / str(number)) for number in range(2)]
    for number, journal in enumerate(journals):
        for index in range(3):
            value = 10 * number + index
            journal.add([Record(index, "a", (value,), value / 2, None, 1, 100 * number + index)])
        journal.flush()
    journals[1].add(finished(3, "a", failure=CRASHED))
    journals[1].flush()
    whole = records_in(*zip(journals, suffixes, strict=True))
    here, there = (f"a{suffix}" for suffix in suffixes)
    assert list(whole.of("a")) == []
    assert [record.observation for record in whole.of(here)] == [0.0, 0.5, 1.0]
    assert [(record.configuration, record.observation) for record in whole.of(there)] == [
        (there, value) for value in (5.0, 5.5, 6.0, None)
    ]
    assert whole.preprocessing_us(9) == [0, 1, 2, 7]
    assert list(whole.failures()) == [
        *((index, {here: None, there: None}) for index in range(3)),
        (3, {there: CRASHED}),
    ]
    for journal in journals:
        journal.close()


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1)])
def test_shards_are_read_in_the_order_of_the_examples(order: Sequence[int], tmp_path: Path) -> None:
    for number in range(3):
        with_shard = open_journal(tmp_path / str(number))
        for index in range(number, 10, 3):
            with_shard.add(finished(index, "a"))
        with_shard.flush()
        with_shard.close()
    shards = [read_journal(tmp_path / str(number)) for number in order]
    assert [record.example for record in records_in(*shards).of("a")] == list(range(10))
    assert os.listdir(tmp_path / "0") == [JOURNAL_NAME]

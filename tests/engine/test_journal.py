"""The journal: what is in it after batches, reopening and damage, which folders it refuses, and what it takes over."""

from __future__ import annotations

import os
import random
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from msgspec import Struct

from evaltools.engine.journal import (
    JOURNAL_NAME,
    Finished,
    Journal,
    TaskJournal,
    copied_journal,
    open_journal,
    temporary_journal,
)
from evaltools.engine.run_folder import RunIdentity, digest, identity_of, require_same_run
from evaltools.engine.steps import Failure, Record
from evaltools.errors import DataError, OutputError, UsageError

CRASHED = Failure("inference", "died", crashed=True)
BROKEN = Failure("score", "is broken")


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[TaskJournal[float]]:
    """A new journal in a folder that is not there yet."""
    journal = expecting(open_journal(tmp_path / "new" / "run"))
    yield journal
    journal.close()


def expecting(journal: Journal, examples: int = 10) -> TaskJournal[Any]:
    return TaskJournal(journal, examples, float)


def finished(index: int, *names: str, failure: Failure | None = None) -> Finished[float]:
    """Example ``index`` with an observation, or a failure, of each configuration."""
    if failure is not None:
        records = [Record[float](index, name, (), None, failure) for name in names]
        return Finished(index, None if failure.stage == "input" else 7, records)
    return Finished(index, 7 + index, [Record(index, name, (index, 9), index / 4, read_us=1) for name in names])


def written(folder: Path, table: str = "records") -> int:
    """Rows that another reader of a copy would find; the journal itself must be closed."""
    with sqlite3.connect(folder / JOURNAL_NAME) as connection:
        (count,) = connection.execute(f"SELECT count(*) FROM {table}").fetchone()
    connection.close()
    return int(count)


def test_what_was_added_is_read_in_the_order_of_the_examples(opened: TaskJournal[float]) -> None:
    for index in (3, 0, 9, 2):
        opened.add(finished(index, "a", "b"))
    opened.add(finished(1, "a", failure=CRASHED))
    opened.flush()
    assert [record.example for record in opened.records("a", 9)] == [0, 1, 2, 3, 9]
    assert list(opened.records("b", 9)) == [
        Record(index, "b", (index, 9), index / 4, None, 1) for index in (0, 2, 3, 9)
    ]
    assert [record.failure for record in opened.records("a", 2)] == [None, CRASHED, None]
    assert list(opened.fates()) == [
        (0, {"a": None, "b": None}),
        (1, {"a": CRASHED}),
        (2, {"a": None, "b": None}),
        (3, {"a": None, "b": None}),
        (9, {"a": None, "b": None}),
    ]
    assert opened.examples() == {0, 1, 2, 3, 9}


def test_records_end_at_the_example_that_they_were_asked_up_to(opened: TaskJournal[float]) -> None:
    """As where a configuration was given up while another worker went on."""
    for index in range(6):
        opened.add(finished(index, "a"))
    opened.flush()
    for end, count in ((-1, 0), (0, 1), (3, 4), (9, 6)):
        records = opened.records("a", end)
        assert (len(records), len(list(records)), len(list(records))) == (count,) * 3
        assert list(opened.preprocessing_us(end)) == [7, 8, 9, 10, 11, 12][:count]
    assert len(opened.records("unknown", 9)) == 0
    third = Record(3, "a", (3, 9), 0.75, None, 1)
    assert third in opened.records("a", 3)
    assert third not in opened.records("a", 2)


def test_rows_are_written_in_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evaltools.engine.journal._ROWS_PER_BATCH", 5)
    monkeypatch.setattr("evaltools.engine.journal._SECONDS_PER_BATCH", 3600.0)
    journal = expecting(open_journal(tmp_path))
    for index in range(5):  # two rows each: the third makes a batch
        journal.add(finished(index, "a", "b"))
    assert len(journal.records("a", 9)) == 3
    journal.close()
    assert (written(tmp_path), written(tmp_path, "inputs")) == (6, 3), "what waits is lost, whole examples are kept"


def test_a_batch_waits_no_longer_than_its_time(opened: TaskJournal[float], monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr("evaltools.engine.journal.time.monotonic", lambda: now[0])
    opened.flush()
    for index, (seconds, count) in enumerate([(0.0, 0), (0.4, 0), (0.2, 3), (0.4, 3), (0.2, 5)]):
        now[0] += seconds
        opened.add(finished(index, "a"))
        assert len(opened.records("a", 9)) == count


def test_a_journal_goes_on_where_it_was_closed(tmp_path: Path) -> None:
    first = expecting(open_journal(tmp_path))
    first.add(finished(1, "a"))
    first.flush()
    first.state({"command": "x", "other": "y"})
    first.state({"command": "z"})
    first.close()
    for _ in range(2):
        with copied_journal(tmp_path) as copy:
            again = expecting(copy)
            assert [again.fact(name) for name in ("command", "other", "none")] == ["z", "y", None]
            assert [record.observation for record in again.records("a", 9)] == [0.25]
    again = expecting(open_journal(tmp_path))
    again.add(finished(0, "a"))
    again.flush()
    assert [record.observation for record in again.records("a", 9)] == [0.0, 0.25]
    again.close()


def test_a_journal_without_a_folder_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    journal = expecting(temporary_journal())
    journal.add(finished(1, "a"))
    journal.flush()
    assert len(journal.records("a", 9)) == 1
    journal.close()
    assert list(tmp_path.iterdir()) == []


def test_a_journal_that_is_in_use_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    connect = sqlite3.connect
    monkeypatch.setattr("evaltools.engine.journal.sqlite3.connect", lambda path, **_more: connect(path, timeout=0.05))
    first = open_journal(tmp_path)
    with pytest.raises(UsageError, match=f"^--run_dir={tmp_path}: another run is using it; wait for that"):
        open_journal(tmp_path)
    first.state({"still": "writable"})
    first.close()
    second = open_journal(tmp_path)
    assert second.fact("still") == "writable"
    second.close()


def opened_as_a_copy(folder: Path) -> Journal:
    with copied_journal(folder) as journal:
        return journal


OPENERS = pytest.mark.parametrize("opener", [open_journal, opened_as_a_copy])


@OPENERS
def test_a_database_of_something_else_is_refused(opener: Callable[[Path], Journal], tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / JOURNAL_NAME)) as connection:
        connection.execute("CREATE TABLE more (x)")
        connection.commit()
    with pytest.raises(UsageError, match="it holds other tables than the journal of a run; give another folder"):
        opener(tmp_path)


@OPENERS
def test_a_journal_that_was_cut_is_refused(opener: Callable[[Path], Journal], tmp_path: Path) -> None:
    journal = expecting(open_journal(tmp_path))
    for index in range(10):
        journal.add(finished(index, "a"))
    journal.flush()
    journal.close()
    os.truncate(tmp_path / JOURNAL_NAME, (tmp_path / JOURNAL_NAME).stat().st_size - 1)
    with pytest.raises(UsageError, match=r"journal\.sqlite3 cannot be used: .*; give another folder"):
        opener(tmp_path)


def test_a_copy_has_what_an_open_journal_has_written_ahead_and_leaves_a_closed_one_as_it_is(tmp_path: Path) -> None:
    journal = open_journal(tmp_path)
    journal.state({"a": "1"})
    for _ in range(2):
        with copied_journal(tmp_path) as copy:
            assert copy.fact("a") == "1"
        journal.close()
    assert [path.name for path in tmp_path.iterdir()] == [JOURNAL_NAME]


def test_a_folder_with_other_files_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("mine")
    with pytest.raises(UsageError, match=f"--run_dir={tmp_path} holds other files and no journal"):
        open_journal(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["note.txt"]
    with pytest.raises(UsageError, match=f"{tmp_path} is not a run folder: it has no {JOURNAL_NAME}"):
        opened_as_a_copy(tmp_path)
    with pytest.raises(UsageError, match=r"note.txt cannot be used: (File exists|Not a directory)"):
        open_journal(tmp_path / "note.txt")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("UPDATE records SET content = x'94c1'", "a record of the journal cannot be read"),
        ("UPDATE records SET example = 700", "names example 700 of 10"),
        ("UPDATE records SET example = -3", "names example -3 of 10"),
        ("DROP TABLE records", "no such table: records"),
    ],
)
def test_rows_that_make_no_sense_are_a_data_error(change: str, message: str, opened: TaskJournal[float]) -> None:
    opened.add(finished(0, "a"))
    opened.flush()
    opened._connection.execute(change)
    with pytest.raises(DataError, match=message):
        list(opened.records("a", 1000))


def everything_in(journal: Journal) -> Any:
    task = expecting(journal)
    records = [list(task.records(name, 9)) for name in ("a", "b")]
    return records, list(task.fates()), list(task.preprocessing_us(9)), task.fact("command")


@pytest.mark.parametrize("opener", [lambda folder: closing(open_journal(folder)), copied_journal])
def test_a_journal_with_a_flipped_bit_is_refused_or_reads_the_same(
    opener: Callable[[Path], AbstractContextManager[Journal]], opened: TaskJournal[float], tmp_path: Path
) -> None:
    for index in range(10):
        opened.add(finished(index, "a", "b"))
    opened.flush()
    opened.state({"command": "x" * 100})
    was = everything_in(opened)
    opened.close()
    sound = (tmp_path / "new" / "run" / JOURNAL_NAME).read_bytes()
    in_use = [place for place, byte in enumerate(sound) if byte]
    chance = random.Random(1)
    refused = 0
    for number in range(100):
        place, bit = chance.choice(in_use), chance.randrange(8)
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / JOURNAL_NAME).write_bytes(sound[:place] + bytes([sound[place] ^ 1 << bit]) + sound[place + 1 :])
        try:
            with opener(folder) as journal:
                assert everything_in(journal) == was, f"bit {bit} of byte {place}"
        except (DataError, UsageError):
            refused += 1
    assert refused > 80


def test_a_write_that_fails_is_undone_and_says_how_to_go_on(
    opened: TaskJournal[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evaltools.engine.journal._SECONDS_PER_BATCH", 3600.0)
    opened.add(finished(0, "a"))
    opened.flush()
    opened._connection.execute("CREATE TRIGGER full BEFORE INSERT ON records BEGIN SELECT RAISE(ABORT, 'full'); END")
    opened.add(finished(1, "a"))
    with pytest.raises(OutputError, match=r"cannot be written: full\. What was written before is kept: .* resume "):
        opened.flush()
    assert opened.examples() == {0}
    opened._connection.execute("DROP TRIGGER full")
    opened.flush()
    assert opened.examples() == {0, 1}, "what could not be written still waits"


def test_a_run_goes_on_only_as_what_it_was(opened: TaskJournal[float], tmp_path: Path) -> None:
    assert identity_of(opened) is None
    require_same_run(opened, RunIdentity({"model": "not yet"}))
    require_same_run(opened, RunIdentity({"model": "m", "labels": "x" * 100}))
    opened.add(finished(0, "a"))
    opened.flush()
    require_same_run(opened, RunIdentity({"labels": "x" * 100, "model": "m"}))
    with pytest.raises(UsageError) as caught:
        require_same_run(opened, RunIdentity({"model": "n", "labels": "x" * 100}, options={"--seed": "1"}))
    for fact in (f"--run_dir={tmp_path / 'new' / 'run'} ", "model was m, now it is n", "--seed was left out"):
        assert fact in str(caught.value)
    assert identity_of(opened) == RunIdentity({"model": "m", "labels": "x" * 100})


def test_a_run_whose_examples_lie_elsewhere_has_begun_too(opened: TaskJournal[float]) -> None:
    with pytest.raises(UsageError, match="holds records, and not what they are of, as no run leaves it"):
        require_same_run(opened, RunIdentity({"model": "m"}), has_begun=True)
    require_same_run(opened, RunIdentity({"model": "m"}))
    with pytest.raises(UsageError, match="model was m, now it is n"):
        require_same_run(opened, RunIdentity({"model": "n"}), has_begun=True)


def test_a_digest_tells_texts_apart_also_by_where_they_end() -> None:
    assert len({digest(texts) for texts in (["ab"], ["a", "b"], ["ab", ""], [], ["\udcff"], ["\u00ff"])}) == 6


def test_rows_of_several_places_are_taken_over_under_names_of_their_own(tmp_path: Path) -> None:
    """The same examples, run by each; an input counts as the first one had it."""
    places = [expecting(open_journal(tmp_path / name)) for name in ("here", "there")]
    for number, place in enumerate(places):
        for index in range(3):
            example, value = index, 10 * number + index
            place.add(Finished(example, 100 * number + index, [Record(example, "a", (value,), value / 2, read_us=1)]))
        place.flush()
    places[1].add(finished(3, "a", failure=CRASHED))
    places[1].flush()
    whole = expecting(temporary_journal())
    for suffix, place in zip(("@here", "@there"), places, strict=True):
        whole.take_over(place, suffix)
    assert list(whole.records("a", 9)) == []
    assert [record.observation for record in whole.records("a@here", 9)] == [0.0, 0.5, 1.0]
    assert [(record.configuration, record.observation) for record in whole.records("a@there", 9)] == [
        ("a@there", 5.0),
        ("a@there", 5.5),
        ("a@there", 6.0),
        ("a@there", None),
    ]
    assert list(whole.preprocessing_us(9)) == [0, 1, 2, 7]
    assert whole.examples() == {0, 1, 2, 3}
    assert list(whole.fates()) == [
        *((index, {"a@here": None, "a@there": None}) for index in range(3)),
        (3, {"a@there": CRASHED}),
    ]
    for journal in (*places, whole):
        journal.close()


def test_a_suffix_is_text_whatever_it_holds_and_is_taken_once(tmp_path: Path) -> None:
    shard, whole = expecting(open_journal(tmp_path)), expecting(temporary_journal())
    shard.add(Finished(0, 7, [Record(0, "a", (1,), 0.5)]))
    shard.flush()
    for suffix in ("@10.0.0.2:5555", "@it's; DROP TABLE records --", "@漢字", "@%_"):
        whole.take_over(shard, suffix)
        with pytest.raises(OutputError, match="the temporary journal cannot be written: UNIQUE"):
            whole.take_over(shard, suffix)
        assert len(whole.records(f"a{suffix}", 9)) == 1
    for journal in (shard, whole):
        journal.close()


class Answer(Struct, frozen=True):
    """What some task observes."""

    rank: int | None
    boxes: npt.NDArray[np.float32]
    names: tuple[str, ...]

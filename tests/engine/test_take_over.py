"""Journals whose rows another one takes over under other names, and rows read without knowing the task."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from msgspec import Struct

from evaltools.engine.journal import Finished, Journal, TaskJournal, copied_journal, open_journal, temporary_journal
from evaltools.engine.task import Example, Failure, Record
from evaltools.errors import OutputError

EXAMPLES = [Example(index, f"e{index}") for index in range(10)]
BROKEN = Failure("input", "is broken")
CRASHED = Failure("inference", "died", crashed=True)


def expecting(journal: Journal) -> TaskJournal[Any]:
    return TaskJournal(journal, EXAMPLES, float)


def failed(index: int, name: str, failure: Failure) -> Finished[Any]:
    """An example that one configuration could not finish."""
    return Finished(EXAMPLES[index], 7, [Record[Any](EXAMPLES[index], name, (), None, failure)])


def test_rows_of_several_places_are_taken_over_under_names_of_their_own(tmp_path: Path) -> None:
    """The same examples, run by each; an input counts as the first one had it."""
    places = [expecting(open_journal(tmp_path / name)) for name in ("here", "there")]
    for number, place in enumerate(places):
        for index in range(3):
            example, value = EXAMPLES[index], 10 * number + index
            place.add(Finished(example, 100 * number + index, [Record(example, "a", (value,), value / 2, read_us=1)]))
        place.flush()
    places[1].add(failed(3, "a", CRASHED))
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
    shard.add(Finished(EXAMPLES[0], 7, [Record(EXAMPLES[0], "a", (1,), 0.5)]))
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


def test_records_are_read_plainly_without_knowing_what_was_observed(tmp_path: Path) -> None:
    journal = TaskJournal(open_journal(tmp_path), EXAMPLES, Answer)
    boxes = np.arange(6, dtype=np.float32).reshape(2, 3)
    journal.add(Finished(EXAMPLES[2], 7, [Record(EXAMPLES[2], "a", (3, 4), Answer(0, boxes, ("x",)), read_us=1)]))
    journal.add(Finished(EXAMPLES[0], 7, [Record(EXAMPLES[0], "a", (5,), Answer(None, boxes, ()), read_us=2)]))
    journal.add(failed(1, "a", CRASHED))
    journal.add(failed(1, "b", BROKEN))
    journal.flush()
    journal.close()
    with copied_journal(tmp_path) as again:
        first, second, third = again.read_plainly("a")
        assert [record.failure for record in again.read_plainly("b")] == [BROKEN]
        assert list(again.read_plainly("c")) == []
    assert (first.invokes_us, first.read_us, first.failure) == ((5,), 2, None)
    observed: list[Any] = [first.observation, third.observation]
    assert [entry["rank"] for entry in observed] == [None, 0]
    assert [list(entry["names"]) for entry in observed] == [[], ["x"]]
    assert (second.observation, second.failure, second.invokes_us) == (None, CRASHED, ())

"""Failures settle in the order of the examples, whatever the order that they come in."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from evaltools.engine.execution import Execution
from evaltools.engine.ledger import GivenUp, Ledger, Stop, Tally
from evaltools.engine.records import Failures
from evaltools.engine.steps import Failure

WRONG = Failure("inference", "node 7 failed")
DIED = Failure("inference", "died", crashed=True)
HUNG = Failure("inference", "hung", crashed=True)
BROKEN = Failure("input", "is broken")
LETTERS: Mapping[str, Failure | None] = {".": None, "w": WRONG, "d": DIED, "h": HUNG, "b": BROKEN}


def ledger(
    count: int, names: str = "ab", reference: str | None = None, max_crashes: int = 3, max_failed: int | None = None
) -> Ledger:
    return Ledger(
        range(count), list(names), reference, Execution(max_crashes=max_crashes, max_failed_examples=max_failed)
    )


def rows(**failures: str) -> list[Failures]:
    """Per example what became of each configuration, one letter each; a blank where it was not tried."""
    return [
        {name: LETTERS[letter] for name, letter in zip(failures, letters, strict=True) if letter != " "}
        for letters in zip(*failures.values(), strict=True)
    ]


def settled(book: Ledger, failures: Sequence[Failures], order: Sequence[int] | None = None) -> Any:
    """Add all; what came of it."""
    for index in range(len(failures)) if order is None else order:
        book.add(index, failures[index])
    return book.tally, book.given_up, book.stopped, book.last_settled


@pytest.mark.parametrize(
    ("failures", "after", "reason"),
    [
        ("ddd...", 2, "died"),
        ("..ddh.", 4, "hung"),
        ("dd.ddd", 5, "died"),
        ("ddwddd", 5, "died"),
        ("ddbddd", 5, "died"),
        ("dhd...", 2, "died"),
        ("dd.dd.", None, ""),
        ("wwwbbb", None, ""),
    ],
)
def test_crashes_in_a_row_end_a_configuration(failures: str, after: int | None, reason: str) -> None:
    book = ledger(6)
    settled(book, rows(a="......", b=failures))
    assert book.given_up == ({} if after is None else {"b": GivenUp(after, reason)})
    assert (book.tally.done, book.stopped) == (6, None)


def test_a_configuration_that_an_example_lacks_was_given_up_elsewhere() -> None:
    elsewhere = "a shard of this run gave it up; its reason is there"
    assert settled(ledger(4), rows(a="....", b=".w .")) == (
        Tally(4, 1, {"a": 0, "b": 1}),
        {"b": GivenUp(1, elsewhere)},
        None,
        3,
    )
    assert settled(ledger(2), rows(a="..", b=" ."))[1] == {"b": GivenUp(-1, elsewhere)}


@pytest.mark.parametrize(("limit", "done"), [(0, 2), (1, 4), (2, 5), (3, 6), (None, 6)])
def test_a_run_stops_after_the_first_failed_example_too_many(limit: int | None, done: int) -> None:
    book = ledger(6, max_failed=limit)
    settled(book, rows(a=".w.b..", b="....w."))
    assert (book.tally.done, book.last_settled) == (done, done - 1)
    assert book.stopped == ("too many failed examples" if done < 6 else None)


@pytest.mark.parametrize(
    ("reference", "failures", "done"),
    [
        (None, ("ddd.....", ".ddd...."), 4),
        ("a", ("........", ".ddd...."), 4),
        (None, ("ddd.....", "........"), 8),
        ("a", ("dddddddd", "........"), 8),
    ],
)
def test_a_run_stops_when_only_the_reference_is_left(
    reference: str | None, failures: tuple[str, str], done: int
) -> None:
    book = ledger(8, reference=reference)
    settled(book, rows(a=failures[0], b=failures[1]))
    assert book.tally.done == done
    assert book.stopped == ("every configuration was given up" if done < 8 else None)


@pytest.mark.parametrize("why", ["every configuration was given up", "too many failed examples"])
def test_what_a_shard_left_out_ends_it_before_the_first_of_that(why: Stop) -> None:
    book = ledger(5, names="ab", reference="a")
    for index in (0, 1, 3, 4):
        book.add(index, {"a": None, "b": None})
    book.end(why)
    assert (book.stopped, book.tally.done, book.last_settled) == (why, 2, 1)
    assert {name: entry.after for name, entry in book.given_up.items()} == ({"b": 1} if "given" in why else {})


@pytest.mark.parametrize("seed", range(60))
def test_any_order_gives_the_same_outcome(seed: int) -> None:
    """Of every order, with everything that may happen; after a stop nothing counts any more."""
    chance = random.Random(seed)
    count = chance.randrange(1, 40)
    weights = chance.choice([(9, 1, 1, 1, 1), (2, 1, 3, 3, 1), (30, 1, 0, 0, 1)])
    columns = {name: "".join(chance.choices("".join(LETTERS), weights, k=count)) for name in "abc"}
    if seed % 3 == 0:
        end = chance.randrange(count)
        columns["c"] = columns["c"][:end] + " " * (count - end)
    failures = rows(**columns)
    options: dict[str, Any] = {
        "names": "abc",
        "reference": chance.choice([None, "a", "c"]),
        "max_crashes": chance.randrange(1, 4),
        "max_failed": chance.choice([None, None, 3, 10]),
    }
    in_order = settled(ledger(count, **options), failures)
    for _ in range(20):
        order = chance.sample(range(count), count)
        assert settled(ledger(count, **options), failures, order) == in_order
    one_by_one = ledger(count, **options)
    for index in range(count):
        if one_by_one.stopped is None:
            given_up = set(one_by_one.given_up)
            one_by_one.add(index, {name: failure for name, failure in failures[index].items() if name not in given_up})
    assert settled(one_by_one, failures, ()) == in_order, "as a single worker would have done"

"""How many workers there are, and which sessions each of them has."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from evaltools.configuration import Configuration
from evaltools.engine.execution import Execution, Shard, available_cores, sessions_of_workers, worker_count
from evaltools.engine.opening import Opened
from evaltools.errors import InferenceError, UsageError
from evaltools.model import ModelFile
from evaltools.runtime import ProcessSession
from evaltools.runtime.delegation import DelegateCoverage, Delegation
from tests.runtime.fake import FakeSession

MODEL = ModelFile(Path("m.tflite"), "", 0, (), (), 4, None)
EXTERNAL = "external_delegate_path=x"


def configurations(*threads: int) -> list[Configuration]:
    return [Configuration(str(place), num_threads=number) for place, number in enumerate(threads)]


@pytest.fixture(autouse=True)
def _twelve_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evaltools.engine.execution.available_cores", lambda: 12)


@pytest.mark.parametrize(
    ("threads", "examples", "count"),
    [
        ((1, 1), 1000, 12),
        ((1, 2), 1000, 6),
        ((5,), 1000, 2),
        ((12,), 1000, 1),
        ((16,), 1000, 1),
        ((-1,), 1000, 1),
        ((1, -1), 1000, 1),
        ((1, 1), 7, 1),
        ((1, 1), 40, 5),
        ((1, 1), 0, 1),
        ((), 1000, 12),
    ],
)
def test_without_a_number_the_cores_are_per_worker_flag_the_threads(
    threads: tuple[int, ...], examples: int, count: int
) -> None:
    assert worker_count(Execution(workers=None), configurations(*threads), False, examples) == count


@pytest.mark.parametrize(("workers", "examples", "count"), [(1, 9, 1), (40, 99, 40), (40, 9, 9), (3, 0, 1)])
def test_a_number_that_was_asked_for_is_kept_whatever_the_threads(workers: int, examples: int, count: int) -> None:
    for threads in (1, 12, -1):
        assert worker_count(Execution(workers=workers), configurations(threads), False, examples) == count


def test_examples_that_must_be_run_in_order_have_one_worker() -> None:
    for workers in (None, 1):
        assert worker_count(Execution(workers=workers), configurations(1), True, 1000) == 1
    with pytest.raises(UsageError, match=r"^--workers=2: these runs depend on those before them .*leave the flag out"):
        worker_count(Execution(workers=2), configurations(1), True, 1000)


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system does not bind processes to cores")
def test_only_cores_that_this_process_may_use_are_counted() -> None:
    allowed = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(allowed)})
        assert available_cores() == 1
    finally:
        os.sched_setaffinity(0, allowed)
    assert available_cores() == len(allowed)


@pytest.mark.parametrize("count", [1, 2, 7, 30])
def test_shards_hold_every_example_once(count: int) -> None:
    shards = [Shard(index, count).numbers_of(20) for index in range(count)]
    assert sorted(example for shard in shards for example in shard) == list(range(20))
    assert max(map(len, shards)) - min(map(len, shards)) <= 1


class Opener:
    """Opens fake sessions; remembers of which configurations."""

    def __init__(self) -> None:
        self.flags: list[list[str]] = []
        self.sessions: list[FakeSession] = []

    def __call__(self, model: ModelFile, configuration: Configuration) -> ProcessSession:
        self.flags.append(configuration.to_flags())
        self.sessions.append(FakeSession(lambda inputs: tuple(inputs)))
        return self.sessions[-1]


def opened(name: str, text: str = "", running: str | None = None) -> Opened:
    configuration = Configuration.from_text(name, text)
    own = FakeSession(lambda inputs: tuple(inputs))
    return Opened(MODEL, configuration, own, Configuration.from_text(name, text if running is None else running))


def test_the_first_worker_takes_the_opened_session_and_the_others_open_theirs_with_the_first_run() -> None:
    opener, entry = Opener(), opened("a", "use_xnnpack=true")
    workers = sessions_of_workers([entry], 3, opener)
    workers[0]["a"].run(())
    assert opener.flags == []
    for place in (1, 2, 1):
        workers[place]["a"].run(())
    assert opener.flags == [["--use_xnnpack=true"]] * 2
    for sessions in workers:
        sessions["a"].close()
    assert [session.closed for session in (entry.session, *opener.sessions)] == [True] * 3  # type: ignore[attr-defined]


@pytest.mark.parametrize("nodes", [0, 3])
def test_a_session_whose_delegate_takes_other_nodes_than_the_first_is_not_used(nodes: int) -> None:
    """A worker on the CPU would give figures under the delegate's name."""
    later = FakeSession(lambda inputs: tuple(inputs), Delegation(4, (DelegateCoverage("XNNPACK", True, nodes, 1),), {}))
    entry = opened("a", "use_xnnpack=true")
    entry = replace(entry, session=FakeSession(tuple, Delegation(4, (DelegateCoverage("XNNPACK", True, 4, 1),), {})))
    first, second = sessions_of_workers([entry], 2, lambda _model, _configuration: later)
    first["a"].run(())
    said = f"there {'XNNPACK took 3' if nodes else 'no delegate took any'} of 4 nodes, and XNNPACK took 4 of 4 nodes"
    with pytest.raises(InferenceError, match=said):
        second["a"].run(())
    assert later.closed


@pytest.mark.parametrize(
    ("text", "shared"),
    [
        ("use_gpu=true", True),
        ("use_hexagon=true", True),
        ("use_xnnpack=true", False),
        ("use_ynnpack=true", False),
        (EXTERNAL, True),
        (f"{EXTERNAL} external_delegate_per_worker=true", False),
        (f"{EXTERNAL} external_delegate_per_worker=true use_gpu=true", True),
    ],
)
def test_workers_share_the_session_of_a_delegate_that_owns_its_device(text: str, shared: bool) -> None:
    entries = [opened("cpu"), opened("device", text)]
    workers = sessions_of_workers(entries, 3, Opener())
    assert len({id(sessions["device"]) for sessions in workers}) == (1 if shared else 3)
    assert len({id(sessions["cpu"]) for sessions in workers}) == 3

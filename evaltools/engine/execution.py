"""How an evaluation is to be carried out: the workers and their sessions, shards, what else the user sets."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Final

from msgspec import Struct

from evaltools.configuration import Configuration
from evaltools.engine.opening import Opened
from evaltools.errors import ConfigurationUnavailable, UsageError
from evaltools.runtime import Delegation, OpenProcess, ProcessSession
from evaltools.runtime.process.restarting import RestartingSession

_WORTH_A_WORKER: Final = 8


class Shard(Struct, frozen=True):
    """Every ``count``-th example from ``index`` on: the part of one of ``count`` hosts.

    >>> list(Shard(1, 3).numbers_of(7))
    [1, 4]
    """

    index: int = 0
    count: int = 1

    def numbers_of(self, examples: int) -> Sequence[int]:
        """The numbers of those of so many examples that belong to this shard."""
        return range(self.index, examples, self.count)

    def __str__(self) -> str:
        return f"{self.index}/{self.count}"


class Execution(Struct, frozen=True):
    """How an evaluation is carried out.

    ``workers`` None: one per core. ``run_dir`` None: nothing is kept for a later run. ``latency_examples`` None: a
    tenth of the examples, at most 100, or 40 where these say enough. A trace is written to ``trace``.

    A configuration is given up after ``max_crashes`` examples in a row that killed or hung its process; the pass stops
    with more than ``max_failed_examples`` failed examples, None: never.
    """

    workers: int | None = 1
    example_timeout_s: float = 300.0
    max_crashes: int = 3
    max_failed_examples: int | None = None
    run_dir: Path | None = None
    shard: Shard = Shard()
    latency_examples: int | None = None
    trace: Path | None = None


def worker_count(execution: Execution, configurations: Sequence[Configuration], one_only: bool, examples: int) -> int:
    """How many workers there are: as many as were asked for, else as many as keep the cores busy.

    ``one_only``: the examples must be run one after the other. Raises :class:`UsageError` where more were asked for.
    """
    if one_only:
        if (execution.workers or 1) > 1:
            raise UsageError(
                f"--workers={execution.workers}: these runs depend on those before them (the model keeps a state, or "
                "outputs are saved), so one worker must do them; leave the flag out"
            )
        return 1
    if execution.workers is None and any(configuration.native_binary for configuration in configurations):
        return 1  # the program has the device for itself, and its times count
    if execution.workers is not None:
        return max(1, min(execution.workers, examples))
    threads = max((abs(configuration.num_threads) for configuration in configurations), default=1)
    if any(configuration.num_threads < 0 for configuration in configurations):
        threads = available_cores()
    return max(1, min(available_cores() // threads, examples // _WORTH_A_WORKER))


def available_cores() -> int:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def sessions_of_workers(
    opened: Sequence[Opened], count: int, open_with: OpenProcess
) -> list[dict[str, ProcessSession]]:
    """The sessions of each worker by configuration, started again when they die.

    The first worker takes the opened ones. Where a delegate owns its device, and where a program of its own runs the
    model, all workers share one session.
    """
    workers: list[dict[str, ProcessSession]] = [{} for _ in range(count)]
    for entry in opened:
        open_again = partial(_opened_again, entry, open_with)
        first = RestartingSession(entry.session, open_again)
        for number, sessions in enumerate(workers):
            takes_opened = number == 0 or entry.running.delegates.one_session or entry.running.native_binary
            own = first if takes_opened else RestartingSession(entry.session, open_again, is_open=False)
            sessions[entry.configuration.name] = own
    return workers


def _opened_again(entry: Opened, open_with: OpenProcess) -> ProcessSession:
    """One more session like the first one, whose delegates are those that the result states.

    Raises :class:`ConfigurationUnavailable` where they take other nodes.
    """
    session = open_with(entry.model, entry.running)
    before, now = _taken(entry.session.delegation), _taken(session.delegation)
    if now != before:
        session.close()
        raise ConfigurationUnavailable(f"there {now}, and {before} where the model was loaded first")
    return session


def _taken(delegation: Delegation) -> str:
    """What delegates took, in words.

    >>> _taken(Delegation(3, (), {}))
    'no delegate took any of 3 nodes'
    """
    taken = (f"{each.delegate} took {each.nodes}" for each in delegation.delegates if each.nodes)
    return f"{', '.join(taken) or 'no delegate took any'} of {delegation.total_nodes} nodes"

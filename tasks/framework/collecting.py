"""What a metric with a part of the result of its own gets of a run, and what it gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from msgspec import Struct, field

from evaltools.configuration import Configuration
from evaltools.engine.facts import Fact
from evaltools.engine.opening import Opened
from evaltools.engine.run import PassOutcome
from evaltools.engine.steps import Steps
from evaltools.extensions import named
from evaltools.model import ModelFile
from evaltools.result.evaluation import ConfigurationResult
from evaltools.result.verdict import Verdict
from evaltools.runtime import Open
from evaltools.tasks.framework.definition import Task, Whole
from evaltools.tasks.framework.observer import Observer
from evaltools.tasks.framework.sums import Accumulator, Pair, PairAccumulator, RunSums


class AfterPass(Struct, frozen=True):
    """A pass that is over, and what is needed to run more beside it.

    ``task`` is the one whose ``outcome`` it is, ``of_reference`` are its steps on the reference's ``model``. ``opened``
    are the configurations that can run on this computer; their sessions are closed. ``are_recorded``: their outputs are
    those of the records, not of another computer.
    """

    task: Task
    of_reference: Steps[Any]
    model: ModelFile
    reference: Configuration | None
    outcome: PassOutcome[Any]
    opened: Sequence[Opened]
    are_recorded: bool
    observer: Observer
    open_with: Open


class Beside(Struct, frozen=True):
    """What was measured beside a pass; ``interrupted``: Ctrl-C ended it."""

    found: Any = None
    interrupted: bool = False


def beside_fact(task: Task) -> Fact[Any]:
    """What the journal says of what was measured beside the pass of a task."""
    return Fact("beside", named(task.whole.found_beside if task.whole else Whole.found_beside))


class RecordsOfRun(Struct, frozen=True):
    """The records of a run, for a metric that concludes a part of the result of them.

    ``examples`` are the task's; ``measured`` the configurations with figures, of which ``pairs`` are compared and
    ``reference`` may be one. ``margin`` is the change that counts as none. ``keeps_examples``: what was found in each
    example is wanted in the result. ``has_page``: a page is made of it, which shows some examples. ``first_run_us`` has
    the time of the very first run of each configuration that was warmed up, in microseconds, None where it failed.
    ``beside`` is what the task measured after the pass.
    """

    examples: Sequence[Any]
    outcome: PassOutcome[Any]
    measured: Sequence[str] = ()
    pairs: Sequence[Pair] = ()
    reference: str | None = None
    margin: float = 0.005
    keeps_examples: bool = False
    has_page: bool = False
    first_run_us: Mapping[str, float | None] = field(default_factory=dict)
    beside: Any = None


class Concluded(Struct, frozen=True):
    """What a metric makes of all records: its part of the result, verdicts by configuration, warnings.

    ``also`` are configurations that did not run here, such as a reference whose outputs were saved by another run.
    """

    part: Any
    verdicts: Mapping[str, list[Verdict]]
    warnings: Sequence[str] = ()
    also: Sequence[ConfigurationResult] = ()


class Collected(Protocol):
    """Takes the records of a run one by one, those of configurations and of pairs, and concludes of them in the end."""

    @property
    def own(self) -> Mapping[str, Sequence[Accumulator[Any]]]:
        """What takes the records of each configuration."""

    @property
    def paired(self) -> Mapping[Pair, Sequence[PairAccumulator[Any]]]:
        """What takes the records of each pair."""

    def conclude(self, configurations: Sequence[ConfigurationResult], sums: RunSums) -> Concluded:
        """The figures of all records that were taken; ``configurations`` have those of every task."""

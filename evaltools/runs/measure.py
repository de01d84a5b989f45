"""A request carried out here: its result, or that of its finished shards."""

from __future__ import annotations

from functools import partial

from evaltools.result.evaluation import EvaluationResult
from evaltools.runs.finished_shards import FinishedShards
from evaltools.runtime.process.isolated import open_isolated
from evaltools.tasks.shared.evaluation import evaluate, merge
from evaltools.tasks.shared.kind import EvaluationKind
from evaltools.tasks.shared.measuring import Observer
from evaltools.tasks.shared.request import TaskRequest


def measure(
    kind: EvaluationKind, asked: TaskRequest, observer: Observer, shards: FinishedShards | None = None
) -> EvaluationResult:
    """Run the task, or take the records from its finished ``shards``.

    Raises :class:`~evaltools.errors.UsageError` and its kinds before any long work for what is wrong.
    """
    opener = partial(open_isolated, timeout_s=asked.execution.example_timeout_s)
    if shards is None:
        return evaluate(kind.prepare, asked, observer, opener)
    if shards.whole is not None:
        observer.opened(shards.whole.configurations)
    whole = shards.whole or merge(kind.prepare, asked, shards.places, observer, opener)
    return kind.named_here(shards.complete(whole, asked.configurations), shards.names_here)

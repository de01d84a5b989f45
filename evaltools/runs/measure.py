"""A request measured, whoever asks: the command line, Python, and what either starts."""

from __future__ import annotations

from functools import partial

from evaltools.request import Request
from evaltools.result.evaluation import EvaluationResult
from evaltools.runs.finished_shards import FinishedShards, merge_shards
from evaltools.tasks.shared.declared import DeclaredTask
from evaltools.tasks.shared.evaluation import Observer
from evaltools.tasks.shared.run import evaluate


def measure(
    kind: DeclaredTask,
    request: Request,
    observer: Observer,
    shards: FinishedShards | None = None,
) -> EvaluationResult:
    """Evaluate here or on a cluster, as the request says, or take the records from finished ``shards``.

    Raises :class:`~evaltools.errors.UsageError` and its kinds before any long work for what is wrong.
    """
    if shards is not None:
        return merge_shards(kind, kind.read(request), shards, observer)
    if request.options.text("executor") == "ray":
        from evaltools.runs.on_ray import shards_on_ray

        with shards_on_ray(kind, request, partial(observer.progress, "shards")) as done:
            return measure(kind, request.of_no_run(), observer, done)
    return evaluate(kind.prepare, kind.read(request), observer)

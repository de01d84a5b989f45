"""A request measured, whoever asks: the command line, Python, and what either starts."""

from __future__ import annotations

from functools import partial

from evaltools.request import Request
from evaltools.result.evaluation import EvaluationResult
from evaltools.runs.finished_shards import FinishedShards, merge_shards
from evaltools.tasks.shared.evaluation import evaluate
from evaltools.tasks.shared.kind import EvaluationKind
from evaltools.tasks.shared.measuring import Observer
from evaltools.tasks.shared.options.sampling import SAMPLE
from evaltools.tasks.shared.sampled.elsewhere import OtherMachines


def measure(
    kind: EvaluationKind,
    request: Request,
    observer: Observer,
    shards: FinishedShards | None = None,
    elsewhere: OtherMachines | None = None,
) -> EvaluationResult:
    """Evaluate here or on a cluster, as the request says, or take the records from finished ``shards``.

    With ``elsewhere`` the tests run there, and the reference here.

    Raises :class:`~evaltools.errors.UsageError` and its kinds before any long work for what is wrong.
    """
    if shards is not None:
        return merge_shards(kind, kind.read(request), shards, observer)
    if elsewhere is not None:
        return elsewhere.complete(evaluate(kind.prepare, kind.read(request), observer, elsewhere=elsewhere))
    if request.options.text("executor") == "ray":
        if SAMPLE in request.options.parameters and request.options.text(SAMPLE):
            from evaltools.runs.drawn_on_ray import drawn_on_ray

            with drawn_on_ray(request) as drawn:
                return drawn.complete(evaluate(kind.prepare, kind.read(request), observer, elsewhere=drawn))
        from evaltools.runs.on_ray import shards_on_ray

        with shards_on_ray(kind, request, partial(observer.progress, "shards")) as done:
            return measure(kind, request.of_no_run(), observer, done)
    return evaluate(kind.prepare, kind.read(request), observer)

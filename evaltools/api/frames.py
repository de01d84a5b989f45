"""What stands in the rows of frames: figures with their intervals, examples, and answers that changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from evaltools.errors import UsageError
from evaltools.known_tasks import all_metrics, task_command
from evaltools.metrics.interval import Interval
from evaltools.result.evaluation import ConfigurationResult, EvaluationResult, LatencyComparison
from evaltools.result.places import against_reference
from evaltools.tasks.coco.page import disagreements
from evaltools.tasks.coco.result import BoxesPart, CocoPart
from evaltools.tasks.framework.result import ScoredPart
from evaltools.tasks.framework.topk_result import TopKPart, topk_of

if TYPE_CHECKING:
    import pandas

    from evaltools.api.changed_frame import ChangedFrame

Row = dict[str, Any]
_ANSWERS: Final = ("truth", "before", "after", "score_before", "score_after", "effect", "is_tie")
_BOXES: Final = ("boxes_only_before", "boxes_only_after", "shift")
_SCORES: Final = ("metric", "before", "after")


def data_frame(rows: Sequence[Mapping[str, Any]], columns: Sequence[str] | None = None) -> pandas.DataFrame:
    """A table; raises :class:`~evaltools.errors.UsageError` where pandas is not installed."""
    try:
        import pandas
    except ImportError as error:
        raise UsageError("to_dataframe, examples and changed need pandas: pip install pandas") from error
    return pandas.DataFrame(rows, columns=columns)


def changed_frame(rows: Sequence[Mapping[str, Any]], results: Sequence[EvaluationResult]) -> ChangedFrame:
    """A table of what changed, which can show pictures of these results; raises as :func:`data_frame` does."""
    table = data_frame(rows, changed_columns(results[0]))
    from evaltools.api.changed_frame import ChangedFrame

    frame = ChangedFrame(table)
    frame.results = tuple(results)
    return frame


def model_name(result: EvaluationResult, entry: ConfigurationResult) -> str:
    """The name of the model that a configuration ran, without its ending."""
    return Path((entry.other_model or result.model).file).stem


def with_intervals(
    figures: Mapping[str, float | None], result: EvaluationResult, entry: ConfigurationResult
) -> dict[str, float | None]:
    """Each figure, and behind one that has a 95 % interval ``NAME_low`` and ``NAME_high``.

    The last ones are ``change`` of the verdict's figure against what it was compared with.
    """
    found: dict[str, float | None] = {}
    known = _intervals(result, entry)
    for name, value in figures.items():
        found[name] = value
        if interval := known.get(name):
            found |= {f"{name}_low": interval.low, f"{name}_high": interval.high}
    verdict = entry.verdict
    if verdict is not None and verdict.change is not None:
        found |= {"change": verdict.change, "change_low": verdict.low, "change_high": verdict.high}
    return found


def _intervals(result: EvaluationResult, entry: ConfigurationResult) -> dict[str, Interval | None]:
    if entry.status != "measured":
        return {}
    known = all_metrics()
    named = [(name, known[name].interval) for name in entry.figures if name in known]
    found = {name: interval(result, entry) for name, interval in named if interval is not None}
    if isinstance(result.part, ScoredPart):
        found |= {mean.metric: mean.interval for mean in result.part.means if mean.configuration == entry.name}
    compared: LatencyComparison | None = against_reference(result, result.latency_comparisons, entry)
    return found if compared is None else found | {"latency_ratio": compared.interval}


def example_rows(result: EvaluationResult) -> list[Row]:
    """A row for each example and configuration that answered it.

    Raises :class:`~evaltools.errors.UsageError` where the examples were not recorded.
    """
    models = {entry.name: model_name(result, entry) for entry in result.configurations}
    return [
        {"example": example, "model": models[configuration], "configuration": configuration, **found}
        for example, configuration, found in _answers(result)
    ]


def _answers(result: EvaluationResult) -> Iterator[tuple[str, str, Row]]:
    part = _recorded(result)
    if isinstance(part, TopKPart):
        for record in part.examples or ():
            for name, answer in record.answers.items():
                found = {"answer": answer.classes[0] if answer.classes else None}
                score = answer.scores[0] if answer.scores else None
                right = {"truth": record.truth, "is_right": answer.rank == 0, "rank": answer.rank}
                yield record.example, name, {**right, **found, "score": score, "latency_ms": answer.invoke_us / 1000}
    elif isinstance(part, BoxesPart):
        for picture in part.pictures or ():
            for name, boxes in picture.detections.items():
                best = max((box.score for box in boxes), default=None)
                counts = {"objects": len(picture.objects), "detections": len(boxes)}
                yield picture.example, name, {**counts, "best_score": best}
    elif isinstance(part, ScoredPart):
        names = [metric.name for metric in part.metrics]
        for scored in part.scores or ():
            for name, scores in scored.scores.items():
                yield scored.example, name, dict(zip(names, scores, strict=True))


def changed_columns(result: EvaluationResult) -> list[str]:
    """The columns of :func:`changed_rows`."""
    part = result.part
    own = _BOXES if isinstance(part, CocoPart) else _SCORES if isinstance(part, ScoredPart) else ()
    return ["example", "model", "configuration", *(_ANSWERS if topk_of(result) else own)]


def changed_rows(result: EvaluationResult) -> list[Row]:
    """A row for each answer of a configuration that is another than the reference's.

    Of a task of one's own: for each score of an example that differs. Raises :class:`~evaltools.errors.UsageError`
    where what is needed for it was not recorded.
    """
    models = {entry.name: model_name(result, entry) for entry in result.configurations}
    return [
        dict(zip(changed_columns(result), (example, models[configuration], configuration, *found), strict=True))
        for example, configuration, *found in _changes(result)
    ]


def _changes(result: EvaluationResult) -> Iterator[tuple[Any, ...]]:
    """The example, the configuration, and what the columns of the task have."""
    part = topk_of(result) or _recorded(result)
    compared: list[Any] = [each for each in part.comparisons if _is_with_reference(result, each)]
    if isinstance(part, TopKPart):
        for each in compared:
            for found in each.worst_first:
                one, two = found.baseline, found.other
                shown = (found.truth, one.label, two.label, one.score, two.score, found.effect, found.tie)
                yield (found.example, each.other, *shown)
    elif isinstance(part, BoxesPart):
        for each in compared:
            for differing in disagreements(part, each):
                only = (len(differing.only_in[name]) for name in (each.baseline, each.other))
                yield (differing.picture.example, each.other, *only, differing.shift)
    else:
        places = {metric.name: place for place, metric in enumerate(part.metrics)}
        for each in compared:
            for scored in part.scores:
                sides = [scored.scores.get(name) for name in (each.baseline, each.other)]
                before, after = (None if side is None else side[places[each.metric]] for side in sides)
                if before is not None and after is not None and before != after:
                    yield scored.example, each.other, each.metric, before, after


def _is_with_reference(result: EvaluationResult, compared: Any) -> bool:
    entry = next(entry for entry in result.configurations if entry.name == compared.other)
    return against_reference(result, [compared], entry) is not None


def _recorded(result: EvaluationResult) -> Any:
    """The part of the result with what is known of each example; raises :class:`UsageError` where that is nothing."""
    part = topk_of(result) or (result.part.boxes if isinstance(result.part, CocoPart) else result.part)
    recorded: dict[type, str] = {TopKPart: "examples", BoxesPart: "pictures", ScoredPart: "scores"}
    if type(part) not in recorded:
        command = task_command(result.task).words
        raise UsageError(f"a result of {command} says nothing of single examples; result.result.part has what it says")
    if getattr(part, recorded[type(part)]) is None:
        raise UsageError("the examples were not recorded; give record_examples=True where they are measured")
    return part

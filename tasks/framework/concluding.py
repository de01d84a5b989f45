"""What all records of a task say: its means and their changes, with what its metric of whole answers concludes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from msgspec.structs import replace

from evaltools.extensions import named
from evaltools.gates.bounds import change_of_means
from evaltools.metrics.means import MeanChange
from evaltools.result.figure import Change, Figure, contribution_to
from evaltools.result.result import ANSWERS_CHANGED, WORST_EXAMPLE, Row
from evaltools.result.verdict import Verdict
from evaltools.tasks.framework.beside import allowed_changes
from evaltools.tasks.framework.collecting import Columns, Concluded, Pair, RecordsOfRun, columns, reference_among
from evaltools.tasks.framework.definition import Pooled, Task
from evaltools.tasks.framework.figures import FigureTable, ScoresSeen, WorstDrawings, verdicts_on
from evaltools.tasks.framework.report import Scores, joined, sections
from evaltools.tasks.framework.request import TaskRequest, given_of
from evaltools.tasks.framework.steps import scored_at


def concluded(task: Task, request: TaskRequest, run: RecordsOfRun, configurations: Sequence[Row]) -> Concluded:
    """The figures, verdicts on each metric, what to show beside them, warnings.

    ``configurations`` have what is known of them whatever the task.
    """
    whole = task.whole
    of_whole = Concluded() if whole is None else named(whole.concluded_by)(whole, run, configurations)
    seen, drawn = _observed(task, run)
    other_kernels: Mapping[str, MeanChange] = {} if task.beside is not None else run.beside or {}
    table = FigureTable(task.means, {name: each.rows for name, each in seen.items()})
    changes = {pair: found for pair in run.pairs if (found := table.changes(*pair))}
    scores = {name: table.of_examples(name, len(task.examples)) if run.keeps_examples else {} for name in seen}
    contributed = table.contributed if run.keeps_examples else set()
    reference = reference_among(configurations)
    has_scores = run.keeps_examples and bool(task.means)
    figures = {
        name: {
            metric: replace(
                figure,
                change=_change_of(metric, changes.get((reference or "", name), {}), reference or ""),
                scores=[] if metric in contributed else scores[name].get(metric, []),
                contributions=scores[name].get(metric, []) if metric in contributed else [],
            )
            for metric, figure in table.means(name, each.certain).items()
        }
        for name, each in seen.items()
    }
    own_verdicts: dict[str, list[Verdict]] = {}
    for (baseline, other), found in changes.items():
        judged = verdicts_on(found, task.means, baseline, run.margin, allowed_changes(other_kernels))
        own_verdicts.setdefault(other, []).extend(judged)
    drawings = {name: each.found for name, each in drawn.items()}
    texts = {
        name: _in_words(task, table, (reference, name), own_verdicts.get(name, []))
        for name in seen
        if reference in seen and name != reference and task.means
    }
    own_blocks = sections(task, changes, scores, drawings, other_kernels, contributed)
    return replace(
        of_whole,
        figures=merged(of_whole.figures, figures),
        verdicts={
            name: [*of_whole.verdicts.get(name, ()), *own_verdicts.get(name, ())]
            for name in {**of_whole.verdicts, **own_verdicts}
        },
        texts={name: {**texts.get(name, {}), **of_whole.texts.get(name, {})} for name in {**texts, **of_whole.texts}},
        warnings=[*of_whole.warnings, *_unknown(task, seen.values()), *_without_figure(task, figures, seen.values())],
        blocks=joined(of_whole.blocks, own_blocks),
        given=of_whole.given or given_of(request, (example.id for example in task.examples), task.facts),
        examples=of_whole.examples or ({"example": [example.id for example in task.examples]} if has_scores else {}),
        changed=of_whole.changed or (_changed(task, scores, reference, contributed) if has_scores else {}),
    )


def _in_words(task: Task, table: FigureTable, pair: Pair, verdicts: Sequence[Verdict]) -> dict[str, str]:
    """How many examples have other scores than in the baseline, and which one loses most where a metric is worse."""
    changed, count = table.changed_examples(*pair)
    texts = {ANSWERS_CHANGED: f"scores of {changed} of {count} examples changed"} if changed else {}
    worse = [each.metric for each in verdicts if each.kind == "worse" and each.against == pair[0]]
    worst = table.worst_example(*pair, worse[0]) if worse else None
    return texts | ({} if worst is None else {WORST_EXAMPLE: task.examples[worst].id})


def _observed(task: Task, run: RecordsOfRun) -> tuple[dict[str, ScoresSeen], dict[str, WorstDrawings]]:
    """The scores of each configuration, and the drawings of what changes most; none for a task that gives none."""
    seen = {name: ScoresSeen() for name in run.measured}
    drawn = {name: WorstDrawings(run.outcome.names) for name in run.measured}
    for name in run.measured if task.means or task.draw is not None else ():
        for record in run.outcome.records[name]:
            if record.observation is not None:
                seen[name].add(record.example, record.observation)
                drawn[name].add(record.example, record.observation)
    return seen, drawn


def _changed(task: Task, scores: Scores, reference: str | None, contributed: Collection[str]) -> Columns:
    """Each score of an example, or its contribution, that is another than the reference's."""
    base = scores.get(reference or "", {})
    rows = [
        (example.id, name, contribution_to(metric) if metric in contributed else metric, before, after)
        for name, own in scores.items()
        for metric, values in own.items()
        for example, before, after in zip(task.examples, base.get(metric, ()), values, strict=False)
        if before is not None and after is not None and before != after
    ]
    return columns(("example", "configuration", "metric", "before", "after"), rows)


def _unknown(task: Task, seen: Iterable[ScoresSeen]) -> list[str]:
    """A warning about the first name that no metric has."""
    unknown = next((each.unknown for each in seen if each.unknown), ())
    if not unknown:
        return []
    name = unknown[0]
    return [f'{scored_at(task)} also gives {name!r}; add evaltools.mean("{name}") to the metrics to see it']


def _change_of(metric: str, changes: Mapping[str, MeanChange], reference: str) -> Change | None:
    return change_of_means(changes[metric], reference) if metric in changes else None


def _without_figure(task: Task, figures: Mapping[str, Mapping[str, Figure]], seen: Iterable[ScoresSeen]) -> list[str]:
    """Warnings about metrics of all examples that have no figure, though examples have scores."""
    found = {metric for own in figures.values() for metric in own}
    return [
        f"there is no {metric.name}: nothing in these examples counts for it"
        for metric in task.means
        if isinstance(metric, Pooled) and metric.name not in found and any(each.rows for each in seen)
    ]


def merged(
    first: Mapping[str, dict[str, Figure]], then: Mapping[str, dict[str, Figure]]
) -> dict[str, dict[str, Figure]]:
    """The figures of both by configuration."""
    return {name: {**first.get(name, {}), **then.get(name, {})} for name in {**first, **then}}

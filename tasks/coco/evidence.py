"""What limits and baselines need of a detection evaluation."""

from __future__ import annotations

from dataclasses import asdict

from evaltools.gates.evidence import Change, Judged, ResampledChange
from evaltools.result.evaluation import ConfigurationResult, EvaluationResult
from evaltools.result.places import against_reference
from evaltools.stats.resampled import paired_differences
from evaltools.tasks.coco.result import CocoDetection


def figures(result: EvaluationResult, configuration: ConfigurationResult) -> dict[str, float | None]:
    """The twelve figures of COCO, and the share of the reference's boxes that were found again."""
    part: CocoDetection = result.part
    found: dict[str, float | None] = {}
    for entry in part.figures:
        if entry.configuration == configuration.name and entry.evaluation is not None:
            found |= asdict(entry.evaluation.stats)
    comparison = against_reference(result, part.comparisons, configuration)
    if comparison is not None:
        there_were = comparison.boxes.matched + comparison.boxes.lost
        found["matched_boxes"] = comparison.boxes.matched / there_were if there_were else None
    return found


def judged(result: EvaluationResult, configuration: ConfigurationResult) -> Judged:
    """Figures over resamples of the pictures, and their changes against the reference."""
    part: CocoDetection = result.part
    resampled = {entry.configuration: entry.resampled for entry in part.figures}
    comparison = against_reference(result, part.comparisons, configuration)
    changes: dict[str, Change] = {}
    for entry in comparison.changes if comparison is not None else ():
        assert comparison is not None
        sides = (resampled[name][entry.stat] for name in (comparison.baseline, comparison.other))
        changes[entry.stat] = ResampledChange(entry.change, paired_differences(*sides), comparison.example_count)
    return Judged(changes=changes, resampled=resampled.get(configuration.name, {}))


def examples(result: EvaluationResult) -> list[str]:
    """The same for two results of the same pictures and annotations."""
    part: CocoDetection = result.part
    truth = part.data.ground_truth
    return [truth.sha256 if truth else "", str(part.data.unlisted_pictures)]

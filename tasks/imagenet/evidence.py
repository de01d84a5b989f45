"""What limits and baselines need of an ImageNet evaluation."""

from __future__ import annotations

from evaltools.gates.evidence import Change, CountedChange, Judged, Share
from evaltools.result.evaluation import ConfigurationResult, EvaluationResult
from evaltools.result.places import against_reference
from evaltools.stats.proportions import PairedCounts
from evaltools.tasks.imagenet.result import Classified, ImagenetPart


def figures(result: EvaluationResult, configuration: ConfigurationResult) -> dict[str, float | None]:
    """The accuracies, how many classes came first, and the share of best classes that are the reference's."""
    part: ImagenetPart = result.part
    found: dict[str, float | None] = {}
    classified = part.classified.get(configuration.name)
    if classified is not None:
        found |= {name: share.successes / share.count for name, share in _shares(classified).items()}
        if classified.metrics.distinct_answers is not None:
            found["distinct_answers"] = float(classified.metrics.distinct_answers)
    comparison = against_reference(result, part.comparisons, configuration)
    if comparison is not None:
        found["agreement"] = comparison.agreement.share
    return found


def judged(result: EvaluationResult, configuration: ConfigurationResult) -> Judged:
    """Counts behind the accuracies, flips against the reference, and ranks where every example was answered."""
    part: ImagenetPart = result.part
    classified = part.classified.get(configuration.name)
    comparison = against_reference(result, part.comparisons, configuration)
    changes: dict[str, Change] = {}
    if comparison is not None and comparison.agreement.example_count:
        count = comparison.agreement.example_count
        for entry in comparison.topk:
            changes[f"top{entry.k}"] = CountedChange(PairedCounts(count, entry.lost, entry.gained))
    recorded = [example.answers.get(configuration.name) for example in part.examples or []]
    answers = [answer for answer in recorded if answer is not None]
    return Judged(
        shares=_shares(classified) if classified is not None else {},
        changes=changes,
        ranks=[answer.rank for answer in answers] if len(answers) == len(recorded) else (),
    )


def _shares(classified: Classified) -> dict[str, Share]:
    """Counts behind the accuracies, which are float32: 90 of 100 would be less than 0.9."""
    topk = classified.metrics.topk
    if not topk.example_count:
        return {}
    return {
        f"top{k}": Share(round(share * topk.example_count), topk.example_count)
        for k, share in enumerate(topk.accuracies, 1)
    }


def examples(result: EvaluationResult) -> list[str]:
    """The same for two results of the same examples; names and labels where examples were recorded."""
    part: ImagenetPart = result.part
    recorded = [f"{example.example}\0{example.truth}" for example in part.examples or []]
    return [part.data.ground_truth_sha256, str(part.data.denylisted), *recorded]

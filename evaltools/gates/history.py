"""Baselines of one model over time, as far as their figures can be compared."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

from msgspec import Struct

from evaltools.gates.baseline import Baseline


class History(Struct, frozen=True):
    """Baselines of the same task on the same examples, the oldest first: of one model file, or of one content."""

    releases: Sequence[Baseline]

    @property
    def about(self) -> str:
        """The task and the model, as the latest one calls it."""
        return self.releases[-1].about

    @property
    def contents(self) -> list[str]:
        """The sha256 of the model, each once, in the order in which they came."""
        return list(dict.fromkeys(baseline.model_sha256 for baseline in self.releases))


def histories_of(baselines: Iterable[Baseline]) -> list[History]:
    """All baselines by what makes their figures comparable.

    A model goes by its content, and by the name of its file where each content follows the one before, as a newer
    release does. Where contents of one name take turns they are different models.
    """
    alike: dict[tuple[str, str, str], list[Baseline]] = {}
    for baseline in sorted(baselines, key=lambda entry: entry.started_at):
        key = (baseline.subject or baseline.task, baseline.examples_sha256, str(sorted(baseline.setup.items())))
        alike.setdefault(key, []).append(baseline)
    return [history for of_data in alike.values() for history in _by_model(of_data)]


def _by_model(baselines: Sequence[Baseline]) -> list[History]:
    """Of the same data; files that were renamed and have the same content are one model."""
    models: list[list[Baseline]] = []
    for baseline in baselines:
        known = next((of for of in models if any(_is_one_model(baseline, other) for other in of)), None)
        if known is None:
            models.append([baseline])
        else:
            known.append(baseline)
    return [History(own) for of in models for own in _apart(of)]


def _is_one_model(one: Baseline, other: Baseline) -> bool:
    return one.model_sha256 == other.model_sha256 or one.model == other.model


def _apart(baselines: Sequence[Baseline]) -> list[list[Baseline]]:
    """By content where contents take turns, else together."""
    contents = [baseline.model_sha256 for baseline in baselines]
    if len(list(groupby(contents))) == len(set(contents)):
        return [list(baselines)]
    return [
        [baseline for baseline in baselines if baseline.model_sha256 == content] for content in dict.fromkeys(contents)
    ]

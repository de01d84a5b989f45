"""What a page is about; the modules of all that it may hold are imported where there is such a thing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field

if TYPE_CHECKING:
    from evaltools.gates.outcome import GateOutcome
    from evaltools.gates.suite_result import SuiteResult
    from evaltools.result.benchmark import BenchmarkResult
    from evaltools.result.evaluation import EvaluationResult
    from evaltools.result.locate import LocateResult


class Sources(Struct, frozen=True):
    """What a page is about, each by its name.

    ``located`` are what was found in the model of an evaluation, by that one's name; ``searches`` are those of no
    evaluation here.
    ``saved`` is what stands in the result files that there are, and ``folders`` where these lie.
    """

    evaluations: Mapping[str, EvaluationResult] = field(default_factory=dict)
    benchmarks: Mapping[str, BenchmarkResult] = field(default_factory=dict)
    searches: Mapping[str, LocateResult] = field(default_factory=dict)
    located: Mapping[str, Sequence[LocateResult]] = field(default_factory=dict)
    saved: Mapping[str, bytes] = field(default_factory=dict)
    folders: Mapping[str, Path] = field(default_factory=dict)
    outcomes: Mapping[str, GateOutcome] = field(default_factory=dict)
    suites: Mapping[str, SuiteResult] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """How many results there are."""
        kinds = (self.evaluations, self.benchmarks, self.searches, self.outcomes, self.suites)
        return sum(map(len, kinds))

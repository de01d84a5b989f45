"""What a search looks at, and the questions that all its steps ask: of parts, of small errors, of what is too far."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from evaltools.configuration import Configuration
from evaltools.locate.parts.bench import Bench
from evaltools.locate.parts.kernels import other_kernels
from evaltools.locate.parts.part import Outcome, Part, TensorRuns
from evaltools.locate.search.arithmetic import sum_length
from evaltools.locate.search.findings import Findings
from evaltools.locate.search.judge import FP32, JUMPS, Limit, beyond_noise, least_limit
from evaltools.model.contents import Graph
from evaltools.model.cut import CuttableModel


class Subject(Struct, frozen=True):
    """One model with one configuration.

    ``whole`` is the model as it is, with the configuration that is tested and how often and how long parts are run.
    ``places`` are the operators that are looked at. ``graph`` is the model's main one. ``stated`` is the precision that
    the configuration's flags ask for, empty where they do not say. ``found`` is filled as the search goes on.
    """

    bench: Bench
    model: CuttableModel
    whole: Part
    places: tuple[int, ...]
    graph: Graph
    stated: str
    found: Findings

    @property
    def configuration(self) -> Configuration:
        """The one that is tested."""
        return self.whole.configuration

    @property
    def last(self) -> int:
        """The number of the model's last operator."""
        return len(self.model.operators) - 1

    def part(self, first: int, last: int) -> Part:
        """Operators in a row, run as often as the whole model."""
        return replace(self.whole, first=first, last=last)

    def least(self, runs: TensorRuns) -> Limit:
        """The tolerance of a tensor of which no floor was measured."""
        maker = self.model.makers.get(runs.tensor)
        sums = 1 if maker is None else sum_length(self.graph, self.graph.nodes[maker])
        return least_limit(runs, self.found.precision, sums)

    def fails(self, first: int, last: int) -> TensorRuns | None:
        """The output of a part that small errors do not explain, None where there is none."""
        outcome = self.bench.measure(self.part(first, last))
        if not outcome.ran or not outcome.is_evidence:
            return None
        return self.unexplained(outcome, first, last)

    def unexplained(self, outcome: Outcome, first: int, last: int) -> TensorRuns | None:
        """The same of what came of a part."""
        for runs in outcome.outputs:
            maker = self.model.makers.get(runs.tensor)
            if maker is None or self.model.operators[maker] in JUMPS:
                continue
            limit = self.found.limits.get(maker, {}).get(runs.tensor, self.least(runs))
            if runs.worst > limit.largest and beyond_noise(runs, limit, self._noise(runs.tensor, first, last)):
                return runs
        return None

    def _noise(self, tensor: int, first: int, last: int) -> float:
        """What small errors before a tensor add up to there: of the operators one by one, and of CPU kernels."""
        return max(self.chain_noise(tensor), self.cpu_noise(first, last, tensor))

    def chain_noise(self, tensor: int) -> float:
        """How far off the operators one by one are there, each fed with what those before it gave."""
        single = self.found.singles.get(self.model.makers[tensor])
        outputs = single.outputs if single else ()
        return max((max(runs.chained, default=0.0) for runs in outputs if runs.tensor == tensor), default=0.0)

    def cpu_noise(self, first: int, last: int, tensor: int) -> float:
        """How far other kernels of the CPU in the same precision are off at the end of a part."""
        other = other_kernels(self.configuration, half=self.found.precision != FP32)
        part = replace(self.part(first, last), configuration=other, exposed=(tensor,), runs=1)
        outcome = self.bench.measure(part)
        return outcome.of(tensor).worst if outcome.ran else 0.0

"""What a search looks at and found so far, and what one look says of a suspect."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

from msgspec import Struct, field
from msgspec.structs import replace

from evaltools.configuration import Configuration
from evaltools.gates.verdict import TIMES
from evaltools.model import ModelFile
from evaltools.model.contents import Graph, read_contents
from evaltools.model.cut import CONTROL_FLOW, CuttableModel
from evaltools.operators.arithmetic import Arithmetic, arithmetic_of
from evaltools.operators.bench import Bench
from evaltools.operators.judge import FP32, JUMPS, Limit, least_limit, stated_precision
from evaltools.operators.part import WHOLE, Outcome, Part, TensorRuns, other_kernels

_FEWEST_DEATHS: Final = 3
_CLEARLY: Final = 2.0
"""So many times its tolerance an operator in a lower precision is off where it is wrong; a right one was at 1.2."""


SuspectStatus = Literal[
    "confirmed",
    "confirmed in context",
    "only in context",
    "only by itself",
    "not confirmed",
    "unclear",
    "crashes by itself",
    "crashes in context",
]
"""How sure a suspect is.

confirmed: wrong by itself and in the model, by two methods. only in context: its operators are right one by one
and wrong together (fusion or memory); confirmed in context: so in the whole model and in the smallest part, and right
without one of them. only by itself: wrong by itself, right in the model. not confirmed: seen by one method. unclear:
beyond its tolerance by so little that the lower precision which the delegate computes in may be all that is wrong.
crashes by itself, crashes in context: it ends in a crash, a hang or an error, by itself or only together with others.
"""


class Evidence(Struct, frozen=True):
    """What one method says of a suspect: ``beyond`` of ``runs`` runs were wrong; ``part`` is what ran."""

    method: str
    part: str
    agrees: bool
    beyond: int
    runs: int
    note: str = ""


class Found(Struct, frozen=True):
    """A suspect: the operators ``first`` to ``last`` are needed to show it, ``place`` made the tensor that is off."""

    place: int
    first: int
    last: int
    tensor: int
    status: SuspectStatus
    evidence: tuple[Evidence, ...]
    reaches_output: bool | None = None


class SearchState(Struct):
    """What was measured and found so far.

    ``stated`` is the precision that was asked for, empty where nothing says, and ``precision`` the lowest one that any
    operator computes in. ``singles`` has the outcome of each operator by itself, ``limits`` its tolerances by output
    tensor. ``stopped`` says why the search ended early, ``does_not_run`` why the delegate does not run the whole model,
    ``odd_reference`` in which output only the reference differs.
    """

    stated: str = ""
    precision: str = FP32
    whole: Outcome = field(default_factory=Outcome)
    taps: Outcome | None = None
    singles: dict[int, Outcome] = field(default_factory=dict)
    limits: dict[int, dict[int, Limit]] = field(default_factory=dict)
    suspects: list[Found] = field(default_factory=list)
    unexplained: bool = False
    stopped: str = ""
    does_not_run: str = ""
    odd_reference: str = ""

    def is_clear(self, place: int) -> bool:
        """Whether an operator that is wrong is so by more than a lower precision may be all the reason for."""
        outcome, limits = self.singles.get(place), self.limits.get(place, {})
        outputs = outcome.outputs if outcome is not None else ()
        largest = max((limits[runs.tensor].share(runs) for runs in outputs if runs.tensor in limits), default=0.0)
        return self.precision == FP32 or not 1 < largest <= _CLEARLY

    @property
    def dies_at_once(self) -> bool:
        """Whether the delegate's process dies of everything: before it takes any node, so that none is to blame."""
        tried = [outcome for outcome in self.singles.values() if not outcome.resists]
        return bool(self.whole.died) and len(tried) >= _FEWEST_DEATHS and all(outcome.died for outcome in tried)


def is_taken(place: int, state: SearchState, model: CuttableModel) -> bool:
    """Whether the delegate may run an operator in the whole model: one that it takes there, or what a loop runs.

    Any where nothing says which it takes.
    """
    taken = state.whole.taken
    return not taken or place in taken or model.operators[place] in CONTROL_FLOW


def evidence_of(method: str, part: tuple[int, int], runs: TensorRuns, limit: Limit) -> Evidence:
    """The runs of a tensor that are beyond a limit, in the operators ``part``, the first and the last of them."""
    first, last = part
    where, beyond = str(first) if first == last else f"{first}-{last}", limit.beyond(runs)
    return Evidence(method, where, beyond > 0, beyond, len(runs.largest))


def times_to_see(single: Evidence) -> int:
    """How many runs show a fault with 95 % that was there in ``beyond`` of ``runs``: the rule of three.

    >>> times_to_see(Evidence("single", "3", True, beyond=1, runs=25))
    75
    """
    return -(-3 * single.runs // max(1, single.beyond))


def status(evidence: Sequence[Evidence]) -> SuspectStatus:
    """What the first evidence, the single operator, and all others say together."""
    single, others = evidence[0], [each for each in evidence[1:] if each.runs]
    if any(each.agrees for each in others):
        return "confirmed"
    seen_enough = any(each.runs >= times_to_see(single) for each in others)
    return "only by itself" if seen_enough else "not confirmed"


def repeatability(outcome: Outcome) -> str:
    """Whether the delegate keeps a state: the same inputs should give the same outputs again."""
    if not outcome.unlike:
        return ""
    return (
        f"{outcome.unlike} input{'s' if outcome.unlike > 1 else ''} gave other outputs the next time: it keeps a state"
    )


class Subject(Struct, frozen=True):
    """One model with one configuration.

    ``whole`` is the model as it is, with the configuration that is tested and how often and how long parts are run.
    ``places`` are the operators that are looked at. ``graphs`` are the model's, the main one first. ``state`` is filled
    as the search goes on.
    """

    bench: Bench
    model: CuttableModel
    whole: Part
    places: tuple[int, ...]
    graphs: tuple[Graph, ...]
    state: SearchState

    @property
    def configuration(self) -> Configuration:
        """The one that is tested."""
        return self.whole.configuration

    @property
    def last(self) -> int:
        """The number of the model's last operator."""
        return len(self.model.operators) - 1

    def arithmetic(self, place: int) -> Arithmetic:
        """How an operator computes."""
        return arithmetic_of(self.graphs, place)

    def part(self, first: int, last: int) -> Part:
        """Operators in a row, run as often as the whole model."""
        return replace(self.whole, first=first, last=last)

    def least(self, runs: TensorRuns) -> Limit:
        """The tolerance of a tensor of which no floor was measured."""
        maker = self.model.makers.get(runs.tensor)
        sums = 1 if maker is None else self.arithmetic(maker).sums
        return least_limit(runs, self.state.precision, sums)

    def look(self, method: str, part: Part, tensor: int, limit: Limit, noise: float = 0.0) -> list[Evidence]:
        """What a part shows of a tensor, beside ``noise`` of what comes before; nothing where it is not an evidence."""
        outcome = self.bench.measure(part)
        if not outcome.ran or not outcome.is_evidence:
            return []
        return [evidence_of(method, (part.first, part.last), outcome.of(tensor), limit.at_least(TIMES * noise))]

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
            limit = self.state.limits.get(maker, {}).get(runs.tensor, self.least(runs))
            if limit.beyond(runs) and limit.at_least(TIMES * self._noise(runs.tensor, first, last)).beyond(runs):
                return runs
        return None

    def _noise(self, tensor: int, first: int, last: int) -> float:
        """What small errors before a tensor add up to there: of the operators one by one, and of CPU kernels.

        Nothing where each operator of the part is exact by itself: then it is exact on what exact ones give.
        """
        if self._is_exact(first, last) and not self.chain_noise(tensor):
            return 0.0
        return max(self.chain_noise(tensor), self.cpu_noise(first, last, tensor))

    def _is_exact(self, first: int, last: int) -> bool:
        """Whether the delegate gives, of each operator by itself, what the CPU gives."""
        singles = [self.state.singles.get(place) for place in range(first, last + 1) if place not in self.model.folded]
        return all(each is not None and each.is_evidence and each.delegated and not each.worst for each in singles)

    def chain_noise(self, tensor: int) -> float:
        """The size of the error of the operators one by one, each fed with what those before it gave."""
        single = self.state.singles.get(self.model.makers[tensor])
        outputs = single.outputs if single else ()
        return max((runs.chained[1] for runs in outputs if runs.tensor == tensor and runs.chained), default=0.0)

    def cpu_noise(self, first: int, last: int, tensor: int) -> float:
        """The size of the error of other kernels of the CPU at the end of a part."""
        other = other_kernels(self.configuration)
        part = replace(self.part(first, last), configuration=other, exposed=(tensor,), runs=1)
        outcome = self.bench.measure(part)
        return outcome.of(tensor).relative if outcome.ran else 0.0


def expected_parts(model: CuttableModel, places: Sequence[int] | None = None) -> int:
    """How many parts are measured at least: each operator, the whole model, and its tensors once more."""
    return len(_looked_at(model, places)) + 2


def _looked_at(model: CuttableModel, places: Sequence[int] | None) -> tuple[int, ...]:
    """The operators of ``places``, or all, that are parts of their own."""
    asked = range(len(model.operators)) if places is None else places
    return tuple(place for place in asked if place not in model.folded)


def subject_of(
    bench: Bench,
    model: ModelFile,
    parts: CuttableModel,
    tested: Configuration,
    *,
    places: Sequence[int] | None = None,
    precision: str = "auto",
    runs: int = 1,
    seconds: float = 1.0,
) -> Subject:
    """A model with a configuration before anything was measured; all ``places`` without some.

    ``precision`` is that of floats in the delegate; ``auto`` is the one that the flags say. Parts are run so often, or
    so long.
    """
    stated = stated_precision(tested) if precision == "auto" else precision
    return Subject(
        bench=bench,
        model=parts,
        whole=Part(WHOLE, WHOLE, tested, runs=runs, seconds=seconds),
        places=_looked_at(parts, places),
        graphs=read_contents(model).graphs,
        state=SearchState(stated, stated or FP32),
    )

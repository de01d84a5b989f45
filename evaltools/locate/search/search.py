"""Decides which parts are run: every operator alone, the whole model, and what confirms or clears a suspect."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from evaltools.locate.parts.bench import Bench, GivenUp
from evaltools.locate.parts.kernels import other_kernels
from evaltools.locate.parts.part import Outcome, Part, TensorRuns
from evaltools.locate.search.arithmetic import is_hybrid, sum_length
from evaltools.locate.search.judge import (
    FP32,
    JUMPS,
    beyond_noise,
    found_precision,
    furthest,
    least_tolerance,
    ordinary,
    stated_precision,
    tolerance,
)
from evaltools.model.contents import Graph
from evaltools.model.cut import CuttableModel
from evaltools.result.locate import CulpritStatus, Evidence

_MOST_CONFIRMED: Final = 12
_ISLAND: Final = 3
_RANGES: Final = 8
_SECONDS_FOR_RARE: Final = 10.0


@dataclass(frozen=True)
class Found:
    """A culprit: the operators ``first`` to ``last`` are needed to show it, ``place`` made the tensor that is off."""

    place: int
    first: int
    last: int
    tensor: int
    status: CulpritStatus
    evidence: tuple[Evidence, ...]
    reaches_output: bool | None = None


@dataclass
class Findings:
    """What was measured and found so far.

    ``singles`` has the outcome of each operator alone, ``limits`` its tolerances by output tensor. ``stopped`` says why
    the search ended early, ``does_not_run`` why the delegate does not run the whole model.
    """

    precision: str = FP32
    whole: Outcome = field(default_factory=Outcome)
    taps: Outcome | None = None
    singles: dict[int, Outcome] = field(default_factory=dict)
    limits: dict[int, dict[int, float]] = field(default_factory=dict)
    culprits: list[Found] = field(default_factory=list)
    unexplained: bool = False
    neighbour: Part | None = None
    stopped: str = ""
    does_not_run: str = ""


class Search:
    """Looks for the operators at fault in one model with one configuration.

    ``whole`` is the model as it is, with the configuration that is tested and how often and how long parts are run.
    ``places`` are the operators that are looked at. ``graph`` is the model's main one.
    """

    def __init__(
        self,
        bench: Bench,
        model: CuttableModel,
        whole: Part,
        places: Sequence[int],
        graph: Graph,
    ) -> None:
        self._bench = bench
        self._model = model
        self._whole_part = whole
        self._configuration = whole.configuration
        self._places: Final = [place for place in places if place not in model.folded]
        self._graph = graph
        self._stated = stated_precision(whole.configuration)
        self.found: Final = Findings(precision=self._stated or FP32)

    def run(self, method: str) -> Findings:
        """Search with one of the methods of ``--method``; where a limit is reached, what was found until then."""
        steps: dict[str, Callable[[], None]] = {
            "auto": self._auto,
            "single": self._singles_alone,
            "taps": self._tap,
            "prefix": self._prefix,
            "suffix": self._suffix,
            "range": lambda: self._ranges(self._equal_ranges()),
            "island": self._island_by_island,
        }
        try:
            self.found.whole = self._bench.measure(self._whole_part)
            steps[method]()
        except GivenUp as error:
            self.found.stopped = str(error)
        return self.found

    def _auto(self) -> None:
        self._single()
        self._tap()
        self._confirm_suspects()
        self._look_in_context()

    def _singles_alone(self) -> None:
        """Every operator alone, without a second method that could confirm a suspect."""
        self._single()
        for place in self.suspects():
            limits = self.found.limits[place]
            runs = furthest(self.found.singles[place].outputs, limits)
            evidence = _evidence("single", (place, place), runs, limits[runs.tensor])
            self.found.culprits.append(Found(place, place, place, runs.tensor, "not confirmed", (evidence,)))

    def _island_by_island(self) -> None:
        """The delegate's partitions on clean tensors, beside every operator alone, which tells where they are."""
        islands = self._islands()
        self._singles_alone()
        known = {found.place for found in self.found.culprits}
        self._ranges(island for island in islands if not known & set(range(island[0], island[1] + 1)))

    def _single(self) -> None:
        """Every operator alone on the reference's tensors, and on what the operators before it gave."""
        floors = "cpu" if self._stated == FP32 else "cpu and fp16"
        for place in self._places:
            part = replace(self._part(place, place), floors=floors, chain=True)
            self.found.singles[place] = self._bench.measure(part)
        if not self._stated:
            self.found.precision = found_precision(self._floats())
        is_low = self.found.precision != FP32
        wider = {unit: ordinary(list(self._shares(unit))) if is_low else 1.0 for unit in ("absolute", "steps")}
        for place, outcome in self.found.singles.items():
            self.found.limits[place] = {
                runs.tensor: self._limit(runs, place) * wider[runs.unit] for runs in outcome.outputs
            }

    def _shares(self, unit: str) -> Iterable[float]:
        """The errors of outputs of a delegate that was asked for, each divided by its tolerance."""
        for runs, place in self._asked_for(unit):
            limit = self._limit(runs, place)
            if limit:
                yield runs.worst / limit

    def _floats(self) -> list[tuple[list[TensorRuns], str, int]]:
        """What found_precision needs: float outputs by operator, its name and the length of its sums."""
        outputs: dict[int, list[TensorRuns]] = {}
        for runs, place in self._asked_for("absolute"):
            outputs.setdefault(place, []).append(runs)
        nodes = self._graph.nodes
        return [
            (found, nodes[place].operator, sum_length(self._graph, nodes[place])) for place, found in outputs.items()
        ]

    def _asked_for(self, unit: str) -> Iterable[tuple[TensorRuns, int]]:
        """The outputs of what a delegate that was asked for ran alone, each with the number of its operator.

        ``unit`` is "absolute" for floats, "steps" for quantised tensors.
        """
        asked_for = {delegate.name for delegate in self._configuration.delegates.requested}
        for place, outcome in self.found.singles.items():
            if outcome.is_evidence and asked_for & set(outcome.delegates):
                for runs in outcome.outputs:
                    if runs.unit == unit and (unit == "steps" or "float32" in runs.floors):
                        yield runs, place

    def _limit(self, runs: TensorRuns, place: int) -> float:
        node = self._graph.nodes[place]
        lengths = sum_length(self._graph, node)
        return tolerance(runs, node.operator, self.found.precision, lengths, is_hybrid(self._graph, node))

    def _tap(self) -> None:
        """A copy of every tensor, in one compile, where the model as it is can be run."""
        if not self.found.whole.ran:
            return
        tensors = [
            tensor
            for place in self._places
            for tensor in self._model.made_by(place)
            if self._model.holds_numbers(tensor) and tensor not in self._model.graph_outputs
        ]
        if tensors:
            last = len(self._model.operators) - 1
            self.found.taps = self._bench.measure(replace(self._part(0, last), taps=tuple(tensors)))

    def suspects(self) -> list[int]:
        """The operators that are beyond their tolerance alone, worst first."""
        shares = {}
        for place, outcome in self.found.singles.items():
            limits = self.found.limits.get(place, {})
            if (
                outcome.is_evidence
                and outcome.ran
                and any(runs.worst > limits[runs.tensor] for runs in outcome.outputs)
            ):
                runs = furthest(outcome.outputs, limits)
                limit = limits[runs.tensor]
                shares[place] = runs.worst / limit if limit else float("inf")
        return sorted(shares, key=lambda place: -shares[place])

    def _confirm_suspects(self) -> None:
        suspects = self.suspects()
        for place, outcome in self.found.singles.items():
            if outcome.died:
                evidence = Evidence("single", str(place), True, 1, 1, outcome.died)
                tensor = self._model.made_by(place)[0]
                self.found.culprits.append(Found(place, place, place, tensor, "crashes alone", (evidence,)))
        for number, place in enumerate(suspects):
            self.found.culprits.append(self._confirmed(place, suspects, number < _MOST_CONFIRMED))

    def _confirmed(self, place: int, suspects: Sequence[int], look_further: bool) -> Found:
        """A suspect with what a short part around it says, and whether its error reaches the model's outputs."""
        outcome, limits = self.found.singles[place], self.found.limits[place]
        runs = furthest(outcome.outputs, limits)
        alone = _evidence("single", (place, place), runs, limits[runs.tensor])
        evidence = [replace(alone, note=_repeatability(outcome))]
        if not look_further:
            return Found(place, place, place, runs.tensor, "not confirmed", tuple(evidence))
        often = self._often_enough(evidence[0])
        before = [other for other in suspects if other < place]
        start = max([0, place - _ISLAND, *(other + 1 for other in before)])
        if start < place:
            evidence.append(self._island(replace(often, first=start, last=place), runs.tensor, limits[runs.tensor]))
        behind = self._with_next(often, place, runs.tensor, limits[runs.tensor])
        if behind is not None:
            evidence.append(behind)
        if len(evidence) == 1 and self._is_alone():
            evidence.append(_evidence("whole model", (place, place), self._whole(runs.tensor), limits[runs.tensor]))
        return Found(place, place, place, runs.tensor, _status(evidence), tuple(evidence), self._reaches_output(place))

    def _often_enough(self, alone: Evidence) -> Part:
        """A part that is run so often that a fault which is not there in each run is missed in one case of 20."""
        needed = _times_to_see(alone)
        if needed <= self._whole_part.runs and alone.beyond == alone.runs:
            return self._whole_part
        return replace(
            self._whole_part,
            runs=max(self._whole_part.runs, needed),
            seconds=max(self._whole_part.seconds, _SECONDS_FOR_RARE),
        )

    def _island(self, part: Part, tensor: int, limit: float) -> Evidence:
        """The operators before a suspect and itself, on clean tensors."""
        first, last = part.first, part.last
        outcome = self._bench.measure(replace(part, exposed=(tensor,)))
        if not outcome.ran or not outcome.is_evidence:
            reason = outcome.refused or outcome.resists or outcome.died
            return Evidence("island", f"{first}-{last}", False, 0, 0, reason)
        runs = _of(outcome, tensor)
        noise = self._cpu_noise(first, last, tensor)
        agrees = beyond_noise(runs, limit, noise)
        return replace(_evidence("island", (first, last), runs, max(limit, noise)), agrees=agrees)

    def _with_next(self, part: Part, place: int, tensor: int, limit: float) -> Evidence | None:
        """A suspect with the operators behind it, its own tensor given as a copy."""
        last = min(place + _ISLAND, len(self._model.operators) - 1)
        if last == place:
            return None
        outcome = self._bench.measure(replace(part, first=place, last=last, taps=(tensor,)))
        if not outcome.ran or not outcome.is_evidence:
            return None
        return _evidence("taps", (place, last), outcome.outputs[-1], limit)

    def _is_alone(self) -> bool:
        return len(self._model.operators) - len(self._model.folded) == 1

    def _whole(self, tensor: int) -> TensorRuns:
        return _of(self.found.whole, tensor)

    def _reaches_output(self, place: int) -> bool | None:
        """Whether the model from that operator on is off at its outputs, and from the next one on less."""
        last = len(self._model.operators) - 1
        if place == last:
            return True
        own = self._bench.measure(self._part(place, last))
        rest = self._bench.measure(self._part(place + 1, last))
        if not (own.ran and rest.ran):
            return None
        return own.worst > 2 * rest.worst and own.worst > max(
            least_tolerance(runs, self.found.precision) for runs in own.outputs
        )

    def _look_in_context(self) -> None:
        """Where the model is further off than its operators one by one explain, find those that are it together."""
        last = len(self._model.operators) - 1
        if self.found.whole.died and not any(outcome.died for outcome in self.found.singles.values()):
            self._find_death(last)
            return
        if not self.found.whole.ran or not self._is_unexplained(self.found.whole, 0, last):
            return
        self.found.unexplained = True
        if self._fails(0, last) is None:
            return
        found = self._shrunk(0, last)
        if found is not None and not self._is_known(found):
            self.found.culprits.append(found)

    def _is_known(self, found: Found) -> bool:
        """Whether an operator that is wrong alone lies in the part."""
        return any(found.first <= known.place <= found.last for known in self.found.culprits)

    def _fails(self, first: int, last: int) -> TensorRuns | None:
        """The output of a part that small errors do not explain, None where there is none."""
        outcome = self._bench.measure(self._part(first, last))
        if not outcome.ran or not outcome.is_evidence:
            return None
        return self._is_unexplained(outcome, first, last)

    def _is_unexplained(self, outcome: Outcome, first: int, last: int) -> TensorRuns | None:
        for runs in outcome.outputs:
            maker = self._model.makers.get(runs.tensor)
            if maker is None or self._model.operators[maker] in JUMPS:
                continue
            limit = self.found.limits.get(maker, {}).get(runs.tensor, least_tolerance(runs, self.found.precision))
            if runs.worst > limit and beyond_noise(runs, limit, self._noise(runs.tensor, first, last)):
                return runs
        return None

    def _noise(self, tensor: int, first: int, last: int) -> float:
        """What small errors before a tensor add up to there: of the operators one by one, and of CPU kernels."""
        return max(self._chain_noise(tensor), self._cpu_noise(first, last, tensor))

    def _chain_noise(self, tensor: int) -> float:
        """How far off the operators one by one are there, each fed with what those before it gave."""
        single = self.found.singles.get(self._model.makers[tensor])
        outputs = single.outputs if single else ()
        return max((max(runs.chained, default=0.0) for runs in outputs if runs.tensor == tensor), default=0.0)

    def _cpu_noise(self, first: int, last: int, tensor: int) -> float:
        """How far other kernels of the CPU in the same precision are off at the end of a part."""
        other = other_kernels(self._configuration, half=self.found.precision != FP32)
        part = replace(self._part(first, last), configuration=other, exposed=(tensor,), runs=1)
        outcome = self._bench.measure(part)
        return _of(outcome, tensor).worst if outcome.ran else 0.0

    def _find_death(self, last: int) -> None:
        """The smallest part of which the delegate's process dies, or which it cannot run."""

        def dies(first: int, end: int) -> bool:
            return bool(self._bench.measure(self._part(first, end)).died)

        if not dies(0, last):
            return
        start, end, _ = self._smallest(0, last, dies)
        outcome = self._bench.measure(self._part(start, end))
        evidence = Evidence("range", f"{start}-{end}", True, 1, 1, outcome.died)
        tensor = self._model.made_by(end)[0]
        self.found.culprits.append(Found(end, start, end, tensor, "crashes in context", (evidence,)))

    def _smallest(self, first: int, last: int, fails: Callable[[int, int], object]) -> tuple[int, int, int | None]:
        """The smallest part that fails: its end by bisection, then its beginning, and the one that passes behind it."""
        ends = [place for place in self._places if first <= place <= last]
        low, high = -1, len(ends) - 1
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if fails(first, ends[middle]) else (middle, high)
        end = ends[high]
        starts = [place for place in ends if place <= end]
        low, high = 0, len(starts)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if fails(starts[middle], end) else (low, middle)
        return starts[low], end, starts[low + 1] if low + 1 < len(starts) else None

    def _shrunk(self, first: int, last: int) -> Found | None:
        """The smallest part that is further off than explained, and what speaks for it."""
        start, end, behind = self._smallest(first, last, self._fails)
        runs = self._fails(start, end)
        if runs is None:
            return None
        evidence = [_evidence("range", (start, end), runs, least_tolerance(runs, self.found.precision))]
        evidence.append(self._whole_says(runs))
        if behind is not None:
            self.found.neighbour = self._part(behind, end)
            count = len(runs.largest)
            evidence.append(Evidence("range", f"{behind}-{end}", True, 0, count, "without the first: right"))
        evidence += self._taps_say(start, end, runs)
        is_confirmed = behind is not None and all(each.agrees for each in evidence[:2])
        status: CulpritStatus = "confirmed in context" if is_confirmed else "only in context"
        tensor = self._first_wrong_copy(start, end) or runs.tensor
        return Found(self._model.makers[tensor], start, end, tensor, status, tuple(evidence))

    def _first_wrong_copy(self, start: int, end: int) -> int | None:
        """The first tensor in a part whose copy in the whole model is off, though the operators before it are not."""
        if self.found.taps is None or not self.found.taps.ran:
            return None
        copies = {runs.tensor: runs for runs in self.found.taps.outputs}
        for place in range(start, end + 1):
            for tensor in self._model.made_by(place):
                runs = copies.get(tensor)
                limit = self.found.limits.get(place, {}).get(tensor)
                if runs is not None and limit is not None and beyond_noise(runs, limit, self._chain_noise(tensor)):
                    return tensor
        return None

    def _whole_says(self, runs: TensorRuns) -> Evidence:
        """The same tensor in the whole model where that gives it, else the output that is furthest off."""
        last = len(self._model.operators) - 1
        looked_at = [each for each in self.found.whole.outputs if each.tensor == runs.tensor]
        found = looked_at[0] if looked_at else max(self.found.whole.outputs, key=lambda each: each.relative)
        return _evidence("whole model", (0, last), found, least_tolerance(found, self.found.precision))

    def _taps_say(self, first: int, last: int, runs: TensorRuns) -> list[Evidence]:
        """What a copy of the tensor shows, which shares no memory with it."""
        outcome = self._bench.measure(replace(self._part(first, last), taps=(runs.tensor,)))
        if not outcome.ran or not outcome.is_evidence:
            return []
        tapped = outcome.outputs[-1]
        limit = least_tolerance(runs, self.found.precision)
        wrong = tapped.worst > limit and tapped.worst > runs.worst / 2
        note = "a copy of the tensor is wrong, too" if wrong else "a copy of the tensor is right: fusion or memory"
        return [replace(_evidence("taps", (first, last), tapped, limit), agrees=wrong, note=note)]

    def _prefix(self) -> None:
        """The shortest beginning of the model that fails."""
        self._one_end(lambda place: self._fails(0, place), backwards=False)

    def _suffix(self) -> None:
        """The shortest end of the model that fails on the reference's tensors."""
        last = len(self._model.operators) - 1
        self._one_end(lambda place: self._fails(place, last), backwards=True)

    def _one_end(self, fails: Callable[[int], TensorRuns | None], backwards: bool) -> None:
        places = self._places[::-1] if backwards else self._places
        low, high = -1, len(places)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if fails(places[middle]) else (middle, high)
        if high == len(places):
            return
        runs = fails(places[high])
        if runs is None:
            return
        end = len(self._model.operators) - 1
        first, last = (places[high], end) if backwards else (0, places[high])
        method = "suffix" if backwards else "prefix"
        evidence = _evidence(method, (first, last), runs, least_tolerance(runs, self.found.precision))
        self.found.culprits.append(Found(places[high], first, last, runs.tensor, "not confirmed", (evidence,)))

    def _ranges(self, ranges: Iterable[tuple[int, int]]) -> None:
        """Parts of the model on clean tensors, each for itself."""
        for first, last in ranges:
            runs = self._fails(first, last)
            if runs is not None:
                evidence = _evidence("range", (first, last), runs, least_tolerance(runs, self.found.precision))
                place = self._model.makers[runs.tensor]
                self.found.culprits.append(Found(place, first, last, runs.tensor, "not confirmed", (evidence,)))

    def _equal_ranges(self) -> list[tuple[int, int]]:
        length = -(-len(self._places) // _RANGES)
        parts = [self._places[start : start + length] for start in range(0, len(self._places), length)]
        return [(part[0], part[-1]) for part in parts]

    def _islands(self) -> list[tuple[int, int]]:
        """Operators in a row that the delegate takes when they are alone: its partitions, as far as can be told."""
        self._single()
        found: list[list[int]] = []
        for place in self._places:
            outcome = self.found.singles[place]
            if not outcome.delegated:
                continue
            if found and found[-1][-1] == place - 1:
                found[-1].append(place)
            else:
                found.append([place])
        return [(part[0], part[-1]) for part in found]

    def _part(self, first: int, last: int) -> Part:
        return replace(self._whole_part, first=first, last=last)


def _repeatability(outcome: Outcome) -> str:
    """Whether the delegate keeps a state: the same inputs should give the same outputs again."""
    if not outcome.unlike:
        return ""
    return (
        f"{outcome.unlike} input{'s' if outcome.unlike > 1 else ''} gave other outputs the next time: it keeps a state"
    )


def _times_to_see(alone: Evidence) -> int:
    """How many runs show a fault with 95 % that was there in ``beyond`` of ``runs``: the rule of three."""
    return -(-3 * alone.runs // max(1, alone.beyond))


def _status(evidence: Sequence[Evidence]) -> CulpritStatus:
    """What the first evidence, the operator alone, and all others say together."""
    alone, others = evidence[0], [each for each in evidence[1:] if each.runs]
    if any(each.agrees for each in others):
        return "confirmed"
    seen_enough = any(each.runs >= _times_to_see(alone) for each in others)
    return "only alone" if seen_enough else "not confirmed"


def _of(outcome: Outcome, tensor: int) -> TensorRuns:
    return next(runs for runs in outcome.outputs if runs.tensor == tensor)


def _evidence(method: str, part: tuple[int, int], runs: TensorRuns, limit: float) -> Evidence:
    first, last = part
    beyond = sum(value > limit for value in runs.largest)
    return Evidence(method, str(first) if first == last else f"{first}-{last}", beyond > 0, beyond, len(runs.largest))

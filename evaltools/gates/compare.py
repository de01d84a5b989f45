"""Compares a result with an earlier one: what was set up in another way, and whether anything became worse.

Accuracy is compared on the same examples where both results recorded them (``--record_examples``). Times of two runs
are times of two moments of a machine, so an interval is widened by what runs apart differ by, and by how busy the
machine was (:func:`ratio_between_runs`); to see less, measure old and new in turns in one run.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final, Generic, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from evaltools.gates.bounds import change_of, compared
from evaltools.gates.criteria import Criterion, parse_criterion
from evaltools.gates.decide import Decision, Found
from evaltools.gates.evidence import (
    NOTHING_ALLOWED,
    Allowed,
    Evidence,
    of_another,
    why_not_measured,
)
from evaltools.gates.run_rows import RunRows
from evaltools.gates.verdict import GRADES, NOT_DECIDED, ODD_REFERENCE
from evaltools.metrics.between_runs import (
    Timed,
    crowding_of,
    ratio_between_runs,
)
from evaltools.metrics.interval import Interval
from evaltools.metrics.latency import median_interval
from evaltools.metrics.means import MeanChange
from evaltools.metrics.power import Change, CountedChange
from evaltools.metrics.resampled import ResampledChange
from evaltools.result.facts import Load, Model, Tensor
from evaltools.result.result import Row
from evaltools.result.verdict import GateVerdict

Earlier = TypeVar("Earlier")
Part = TypeVar("Part")
DEFAULT_MARGIN: Final = 0.005
"""The drop of an accuracy, 0..1, that counts as none."""
SLOWER: Final = 1.1
"""Times as long, by all of the interval, from which on a configuration is slower than before."""
MOST_SLOWER: Final = 4.0
"""Times as long, by all of the interval, up to which it is not: what two runs that are the same show of each other."""
_GROWTH: Final = 1.1
"""Errors of an output may grow by so much; on the same machine they are the same numbers again."""
_ERRORS: Final = ("relative_rms", "avg_error")
"""The error of an output that is compared: the first of these that both results have."""
_ALIKE: Final = ("identical", "equivalent")
"""Verdicts after which the size of an error says nothing more."""
EARLIER: Final = "the earlier result"


class Old(Struct, Generic[Earlier], frozen=True):
    """An earlier result, or a part of one, and the ``name`` of its file.

    ``other_examples``: it may be of other examples than the new one, which are then compared as two samples.
    ``margin`` is the drop of an accuracy, 0..1, that counts as none. ``allowed`` is for what a comparison asks by
    itself.
    """

    name: str
    result: Earlier
    other_examples: bool = False
    margin: float = DEFAULT_MARGIN
    allowed: Allowed = NOTHING_ALLOWED

    def of(self, part: Part) -> Old[Part]:
        """The same about a part of the result."""
        return Old(self.name, part, self.other_examples, self.margin, self.allowed)


def differences(old: RunRows, new: RunRows) -> list[str]:
    """What was set up in another way, the model first."""
    pairs = [(earlier, row) for row in new.rows if (earlier := _same_name(old, row)) is not None]
    found = [*_of_models(old.measured, new.measured), *other_inputs(old, new)]
    for package in sorted({package for each in (old, new) for package in _packages(each)}):
        then, now = (_packages(each).get(package, "not installed") for each in (old, new))
        if then != now:
            found.append(f"{package}: {then} then, {now} now")
    for earlier, row in pairs:
        then, now = _ran_on(earlier), _ran_on(row)
        if then != now:
            found.append(f"{row.name}: {then} then, {now} now")
        if earlier.flags != row.flags:
            then, now = (" ".join(each.flags) or "no flags" for each in (earlier, row))
            found.append(f"{row.name}: {then} then, {now} now")
    return found


def _packages(found: RunRows) -> dict[str, str]:
    environment = found.environment
    return {} if environment is None else {"evaltools": environment.evaltools, **environment.packages}


def _ran_on(row: Row) -> str:
    used, other = row.runtime, row.other_model
    ran = f"{used.package} {used.version} with {used.kernels} kernels" if used else "no runtime"
    return ran if other is None else f"{ran}, {Path(other.file).name} ({other.sha256[:8]})"


def _is_same_model(old: RunRows, new: RunRows) -> bool:
    return old.measured is not None and new.measured is not None and old.measured.sha256 == new.measured.sha256


def _of_models(before: Model | None, now: Model | None) -> list[str]:
    """Another content of the model, and what differs in it; where its file lies does not matter."""
    if before is None or now is None or before.sha256 == now.sha256:
        return []
    new_file, old_file = (Path(each.file).name for each in (now, before))
    found = [f"{before.size_bytes} bytes then, {now.size_bytes} now"]
    names = dict.fromkeys([*before.operators, *now.operators])
    counts = [(name, before.operators.get(name, 0), now.operators.get(name, 0)) for name in names]
    found += [f"{name}: {then} then, {later} now" for name, then, later in counts if then != later]
    found += _of_tensors("input", before.inputs, now.inputs) + _of_tensors("output", before.outputs, now.outputs)
    which = f"the content of {new_file} has changed" if new_file == old_file else f"{new_file} instead of {old_file}"
    return [f"another model: {which}: {', '.join(found)}"]


def _of_tensors(which: str, before: Sequence[Tensor], now: Sequence[Tensor]) -> list[str]:
    both = [(_tensor(then), _tensor(later)) for then, later in zip(before, now, strict=False)]
    return [f"{which} {place}: {then} then, {later} now" for place, (then, later) in enumerate(both) if then != later]


def _tensor(tensor: Tensor) -> str:
    quantised = f" scale {tensor.scale:.6g}, zero point {tensor.zero_point}" if tensor.scale is not None else ""
    return f"{tensor.name} {tensor.dtype} {tensor.shape}{quantised}"


def other_inputs(old: RunRows, new: RunRows) -> list[str]:
    """What the models were given in another way: examples, labels, preprocessing; empty where it is all the same."""
    names = dict.fromkeys([*old.given, *new.given])
    pairs = [(name, old.given.get(name, "none"), new.given.get(name, "none")) for name in names]
    return [f"{name}: {then} then, {later} now" for name, then, later in pairs if then != later]


def _same_name(old: RunRows, row: Row) -> Row | None:
    return next((each for each in old.rows if each.name == row.name), None)


def evidence_since(
    old: Old[RunRows], new: RunRows, row: Row, own: Evidence, allowed: Allowed = NOTHING_ALLOWED
) -> Evidence:
    """The evidence ``own`` on a row with the earlier result in the place of the reference."""
    earlier = _same_name(old.result, row)
    if earlier is None:
        names = ", ".join(each.name for each in old.result.rows)
        return Evidence(row.name, f"{old.name} has no such configuration; it has {names}")
    obstacle = of_another(EARLIER, why_not_measured(old.result, earlier, allowed))
    others = other_inputs(old.result, new)
    if not obstacle and others and not old.other_examples:
        obstacle = (
            f"other inputs than before ({'; '.join(others)}); measure on the same, or give --allow_other_examples=true "
            "for a comparison of two samples"
        )
    if obstacle:
        return Evidence(row.name, obstacle)
    finished = row.finished_examples
    examples = finished if not others and earlier.finished_examples == finished else None
    before, now = _timed(earlier), _timed(row)
    return replace(
        own,
        reference_not_measured="",
        figures={
            name: compared(figure, earlier.figures.get(name), EARLIER, examples) for name, figure in own.figures.items()
        },
        base=earlier.figures,
        ratio=None if before is None or now is None else ratio_between_runs(before, now),
        loads={"": row.load, EARLIER: earlier.load},
    )


def _timed(row: Row) -> Timed | None:
    found = row.figures.get("latency_ms")
    if found is None or not found.value:
        return None
    interval = found.interval and Interval(1000 * found.interval.low, 1000 * found.interval.high)
    if interval is None and "rounds" not in row.counts:
        interval = median_interval([row.series.get("invoke_us", [])])
    return Timed(1000 * found.value, interval, crowding(row.load, row.num_threads))


def crowding(load: Load | None, threads: int) -> float:
    """How many times longer work on so many threads may have taken beside such a load."""
    known = load or Load(1)
    return crowding_of(known.cpu_count, known.others_running, known.others_cores, threads)


def slowdown() -> Criterion:
    """The limit on times that a comparison sets by itself."""
    limit = parse_criterion(f"latency_ratio vs old <= {MOST_SLOWER:g} at 95 %")
    return replace(limit, text=f"no clear slowdown, {limit.text}", broken_from=SLOWER)


def limits_since(old: Old[RunRows], row: Row) -> list[Criterion]:
    """The limits that a comparison sets by itself: on the accuracy, or on every mean of a task of one's own."""
    if "accuracy" in row.texts:
        return [parse_criterion(f"{row.texts['accuracy']} drop vs old <= {100 * old.margin:g} points at 95 %")]
    return [
        parse_criterion(
            f"{name} {'rise' if figure.better == 'lower' else 'drop'} vs old <= "
            f"{old.margin if figure.margin is None else figure.margin:g} at 95 %",
            of_own_task=True,
        )
        for name, figure in row.figures.items()
        if figure.spread is not None
    ]


def kept_since(criterion: Criterion, decision: Decision, since: Evidence, old: Old[RunRows], new: RunRows) -> Decision:
    """The decision on an accuracy, which is kept where the same model has the same answers on the same examples.

    That is seen where both results recorded them, and needs no interval then.
    """
    decision = replace(decision, limit=f"{criterion.figure} unchanged, or {criterion.text}")
    is_same = _is_same_model(old.result, new) and not other_inputs(old.result, new)
    figure = since.figures.get(criterion.figure)
    change = None if figure is None else change_of(figure, since.base.get(criterion.figure), of_old=True)
    if decision.found is None or not is_same or not _has_no_other_answer(change):
        return decision
    found = replace(decision.found, low=None, high=None)
    return replace(decision, verdict="pass", found=found, reason="", examples_needed=None)


def _has_no_other_answer(change: Change | None) -> bool:
    """Whether no example counts for another figure than before; False where examples were not compared one by one."""
    match change:
        case CountedChange(counts=counts):
            return counts.lost + counts.gained == 0
        case MeanChange() | ResampledChange():
            return change.differing == 0
    return False


def other_decisions(old: Old[RunRows], new: RunRows, row: Row, since: Evidence) -> list[Decision]:
    """Whether the verdict against the reference, errors of outputs, delegated nodes or the time became worse."""
    earlier = _same_name(old.result, row)
    assert earlier is not None
    decisions = []
    if "accuracy" not in row.texts and earlier.verdict is not None and row.verdict is not None:
        decisions.append(_of_verdicts(row.name, earlier.verdict.kind, row.verdict.kind))
    if row.verdict is None or row.verdict.kind not in _ALIKE:
        decisions += _of_outputs(earlier, since)
    if _is_same_model(old.result, new):
        decisions += _of_nodes(earlier, row)
    return [replace(decision, examples=since.examples) for decision in decisions]


def _of_verdicts(name: str, then: str, now: str) -> Decision:
    limit = f"verdict no worse than {then}"
    grades: list[str] = list(GRADES)
    ranks = [grades.index(kind) if kind in grades else len(grades) for kind in (then, now)]
    worse: GateVerdict = "inconclusive" if now in (NOT_DECIDED, ODD_REFERENCE) else "fail"
    return Decision(name, limit, worse if ranks[1] > ranks[0] else "pass", reason=f"now {now}")


def _of_outputs(earlier: Row, since: Evidence) -> list[Decision]:
    """Errors of outputs that are not equivalent: each may grow by a tenth."""
    then = {output.name: output.figures for output in earlier.parts}
    decisions = []
    for output in since.outputs:
        sides = (then.get(output.name, {}), output.figures)
        for figure in _ERRORS:
            before, value = (None if figure not in side else side[figure].value for side in sides)
            if before is not None and value is not None:
                limit = _GROWTH * before
                text = f"{figure}[{output.name}] <= {limit:.4g} (old {before:.4g})"
                found = Found(figure, value, output=output.name)
                decisions.append(Decision(since.configuration, text, "pass" if value <= limit else "fail", found))
                break
    return decisions


def _of_nodes(earlier: Row, row: Row) -> list[Decision]:
    """Whether as many nodes run on delegates as before; nothing where that was not known before."""
    before, now = (each.delegation.delegated_nodes if each.delegation else None for each in (earlier, row))
    if before is None:
        return []
    limit = f"nodes on delegates >= {before} (old)"
    if now is None:
        unknown = "how many nodes a delegate took is not known now"
        return [Decision(row.name, limit, "not measured", reason=unknown)]
    verdict: GateVerdict = "pass" if now >= before else "fail"
    return [Decision(row.name, limit, verdict, Found("nodes on delegates", float(now)))]

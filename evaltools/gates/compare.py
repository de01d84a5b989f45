"""Compares a result with an earlier one: what was set up in another way, and whether anything became worse.

Accuracy is compared on the same examples where both results recorded them (``--record_examples``). Times of two runs
are times of two moments of a machine, so an interval is widened by what runs apart differ by, and by how busy the
machine was (:func:`~evaltools.metrics.between_runs.ratio_between_runs`); to see less, measure old and new in turns in
one run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from evaltools.errors import DataError, UsageError
from evaltools.gates.accuracy_verdict import margin_of_mean
from evaltools.gates.bounds import change_of, is_a_share
from evaltools.gates.check import GateDecisions, changed_model, decide_together, earlier_parts, not_measured, report
from evaltools.gates.criteria import Criterion, parse_criterion
from evaltools.gates.decide import Decision, Found
from evaltools.gates.evidence import Baseline, Evidence, RunRows, evidence_of, other_inputs, parts_of
from evaltools.gates.units import DEFAULT_MARGIN, without_unit
from evaltools.gates.verdict import EQUIVALENT, GRADES, NOT_DECIDED, ODD_REFERENCE
from evaltools.metrics.means import MeanChange
from evaltools.metrics.power import CountedChange
from evaltools.metrics.resampled import ResampledChange
from evaltools.result.facts import Model, Tensor
from evaltools.result.figure import Figure
from evaltools.result.json_file import encode_json
from evaltools.result.result import Result, Row
from evaltools.result.verdict import OF_OUTPUTS, GateVerdict, Verdict

SLOWER: Final = 1.1
"""Times as long, by all of the interval, from which on a configuration is slower than before."""
MOST_SLOWER: Final = 4.0
"""Times as long, by all of the interval, up to which it is not: what two runs that are the same show of each other."""
_GROWTH: Final = 1.1
"""Errors of an output may grow by so much; on the same machine they are the same numbers again."""
_ERRORS: Final = ("relative_rms", "avg_error")
"""The error of an output that is compared: the first of these that both results have."""
_ALIKE: Final = ("identical", "unchanged", "equivalent")
"""Verdicts after which the size of an error says nothing more."""
_NO_WORSE: Final = "no worse than before"


def compare_results(run: str, now: Result, old: Baseline[Result]) -> list[GateDecisions]:
    """Whether anything became worse in the result of a run: each part is compared with the earlier one of its name.

    ``not measured`` where nothing was measured twice. Raises :class:`DataError` for results of two kinds, and for two
    files of one measurement.
    """
    before = old.result
    if before.environment.started_at == now.environment.started_at and _records(before) == _records(now):
        raise DataError(
            f"the result of {run} is a copy of {old.name}: both began at {now.environment.started_at} and have the "
            "same records; measure again, or give an earlier result"
        )
    if _about(now) != _about(before):
        raise DataError(
            f"{old.name} is about {_about(before)}, the result of {run} about {_about(now)}; give the two that belong "
            "together"
        )
    parts, earlier = parts_of(run, now), earlier_parts(run, old)
    if (run in parts) != (run in earlier):
        parts = {_by_model(run, name, part): part for name, part in parts.items()}
        earlier = {_by_model(run, name, part.result): part for name, part in earlier.items()}
    earlier = {name: part for name, part in earlier.items() if part.result.rows}
    tests = {name: sum(row.role == "test" for row in part.rows) for name, part in parts.items() if name in earlier}
    reports = [
        _part_since(name, part, earlier.get(name), old.name, sum(tests.values()) - tests.get(name, 0))
        for name, part in parts.items()
    ]
    gone = not_in_new(old.name)
    reports += [_lost(name, part.result, gone) for name, part in earlier.items() if name not in parts]
    if not any(each.decisions for each in reports):
        nothing = "nothing was measured in both, so nothing is compared; run what the earlier suite ran"
        reports.append(GateDecisions(run, "", (not_measured(nothing, _NO_WORSE),)))
    return reports


def is_slower(reports: Sequence[GateDecisions]) -> bool:
    """Whether anything is worse by its time, which another measurement may show to be chance."""
    failed = [each for report in reports for each in report.decisions if each.verdict == "fail"]
    return any(each.found is not None and each.found.figure.startswith("latency") for each in failed)


def _records(result: Result) -> bytes:
    """What a run found, as it is written: numbers that are none are equal then, whatever else was edited."""
    return encode_json([result.rows, result.failed, result.tables])


def _about(result: Result) -> str:
    return result.about if result.is_of_examples else f"a {result.command}"


def _by_model(run: str, name: str, part: RunRows) -> str:
    """A benchmark of one model, which has the name of the run, as one of several has it."""
    return f"{run}/{Path(part.model).stem}" if name == run else name


def not_in_new(old: str) -> str:
    """That the file ``old`` has a configuration which was not measured again."""
    return f"{old} has this configuration, the new result has not; measure it too"


def _part_since(name: str, now: RunRows, old: Baseline[RunRows] | None, file: str, others: int) -> GateDecisions:
    """A part with the earlier one; ``others`` counts the configurations of other parts."""
    why_alone = f"it was measured in neither: {now.failure}" if now.failure else f"new since {file}"
    if old is None:
        return GateDecisions(name, now.model, (), warnings=(why_alone,))
    found = hold_against_old(name, now, old, others) if now.rows else _lost(name, old.result, why_alone)
    if not any(row.job for row in now.rows):
        return found
    measured = {row.name for part in (now, old.result) for row in part.rows if _is_measured(row)}
    never = dict.fromkeys(each.configuration for each in found.decisions if each.configuration not in measured)
    kept = tuple(each for each in found.decisions if each.configuration in measured)
    # a suite tries all models in all configurations, of which some never run; in a single result that is no pass
    warnings = tuple(f"{each} was measured in neither suite" for each in never)
    return replace(found, decisions=kept, warnings=(*warnings, *found.warnings))


def _is_measured(row: Row) -> bool:
    return row.status == "measured" and not row.fallback


def _lost(name: str, before: RunRows, reason: str) -> GateDecisions:
    """Each configuration that was measured before, and is not any more."""
    rows = filter(_is_measured, before.tests or before.rows)
    lost = (not_measured(reason, "measured again", row.name) for row in rows)
    return GateDecisions(name, before.model, tuple(lost))


def hold_against_old(run: str, found: RunRows, old: Baseline[RunRows], others: int = 0) -> GateDecisions:
    """Whether anything became worse since an earlier result, of every configuration that either of them has.

    Times of a reference are never worse: it is the machine that they show. ``others`` counts the configurations of
    other results that are compared together with it.
    """
    rows = found.tests or found.rows
    nothing = changed_model(found) or ("" if rows else "the result has no configuration")
    if nothing:
        return report(run, found, [not_measured(nothing, _NO_WORSE)])
    of_accuracy: list[tuple[Criterion, Evidence]] = []
    of_references = _references_since(found, old) if found.tests else []
    timed: list[tuple[Criterion, Evidence]] = []
    decisions: list[Decision] = []
    warnings = [f"since {old.name}: {line}" for line in differences(old.result, found)]
    for row in rows:
        own = evidence_of(found, row, old.allowed, old)
        earlier, since = old.result.row(row.name), own.old or own
        if earlier is None or since.not_measured:
            decisions.append(not_measured(since.not_measured, _NO_WORSE, row.name, own.examples))
            continue
        of_accuracy += [(criterion, own) for criterion in _limits_since(old, row)]
        warnings += [
            f"not compared: {name} of {row.name}, which was 0; state its margin= in the task, or --margin"
            for name, figure in row.figures.items()
            if "accuracy" not in row.texts and _margin_since(old, row.name, name, figure) == 0
        ]
        others_of_row = _other_decisions(earlier, row, since, _is_same_model(old.result, found))
        decisions += [replace(each, examples=since.examples) for each in others_of_row]
        timed += [(slowdown(), own)] if since.ratio is not None else []
        warnings += [f"not compared: times of {row.name}, as not both have them"] if since.ratio is None else []
    is_same = _is_same_model(old.result, found) and not other_inputs(old.result, found)
    kept = [
        _kept_since(criterion, decision, own.old or own, is_same)
        for (criterion, own), decision in zip(of_accuracy, decide_together(of_accuracy, others), strict=True)
    ]
    worse = [each for each in decide_together(of_references, others + len(of_accuracy)) if each.verdict == "fail"]
    gone = [
        not_measured(not_in_new(old.name), _NO_WORSE, row.name)
        for row in old.result.rows
        if row.role == rows[0].role and found.row(row.name) is None
    ]
    return report(run, found, [*kept, *worse, *decisions, *decide_together(timed, others), *gone], warnings)


def _references_since(found: RunRows, old: Baseline[RunRows]) -> list[tuple[Criterion, Evidence]]:
    """The accuracy of references with the limits of a comparison: against a worse one every drop looks smaller."""
    rows = [row for row in found.rows if row.role == "reference" and old.result.row(row.name) is not None]
    held = [(row, evidence_of(found, row, old.allowed, old)) for row in rows]
    return [
        (criterion, own)
        for row, own in held
        if own.old is not None and not own.old.not_measured
        for criterion in _limits_since(old, row)
    ]


def differences(old: RunRows, new: RunRows) -> list[str]:
    """What was set up in another way, the model first."""
    found = [*_of_models(old.measured, new.measured), *other_inputs(old, new)]
    then, now = _packages(old), _packages(new)
    found += _changed(then, now, sorted({*then, *now}), "not installed")
    for row in new.rows:
        earlier = old.row(row.name)
        if earlier is not None:
            for then_or_now in (_ran_on, _flags):
                found += _changed({row.name: then_or_now(earlier)}, {row.name: then_or_now(row)}, [row.name])
    return found


def _changed(
    then: Mapping[str, object], now: Mapping[str, object], names: Sequence[str], none: object = 0
) -> list[str]:
    pairs = [(name, then.get(name, none), now.get(name, none)) for name in names]
    return [f"{name}: {before} then, {after} now" for name, before, after in pairs if before != after]


def _packages(found: RunRows) -> dict[str, str]:
    environment = found.environment
    return {} if environment is None else {"evaltools": environment.evaltools, **environment.packages}


def _ran_on(row: Row) -> str:
    used, other = row.runtime, row.other_model
    ran = f"{used.package} {used.version} with {used.kernels} kernels" if used else "no runtime"
    return ran if other is None else f"{ran}, {Path(other.file).name} ({other.sha256[:8]})"


def _flags(row: Row) -> str:
    return " ".join(row.flags) or "no flags"


def _is_same_model(old: RunRows, new: RunRows) -> bool:
    return old.measured is not None and new.measured is not None and old.measured.sha256 == new.measured.sha256


def _of_models(before: Model | None, now: Model | None) -> list[str]:
    """Another content of the model, and what differs in it; where its file lies does not matter."""
    if before is None or now is None or before.sha256 == now.sha256:
        return []
    new_file, old_file = (Path(each.file).name for each in (now, before))
    operators = list(dict.fromkeys([*before.operators, *now.operators]))
    found = [f"{before.size_bytes} bytes then, {now.size_bytes} now"]
    found += _changed(before.operators, now.operators, operators)
    for which in ("input", "output"):
        then, later = (_tensors(which, getattr(each, f"{which}s")) for each in (before, now))
        found += _changed(then, later, [name for name in then if name in later])
    which = f"the content of {new_file} has changed" if new_file == old_file else f"{new_file} instead of {old_file}"
    return [f"another model: {which}: {', '.join(found)}"]


def _tensors(which: str, tensors: Sequence[Tensor]) -> dict[str, str]:
    return {f"{which} {place}": _tensor(tensor) for place, tensor in enumerate(tensors)}


def _tensor(tensor: Tensor) -> str:
    quantised = f" scale {tensor.scale:.6g}, zero point {tensor.zero_point}" if tensor.scale is not None else ""
    return f"{tensor.name} {tensor.dtype} {tensor.shape}{quantised}"


def slowdown() -> Criterion:
    """The limit on times that a comparison sets by itself."""
    limit = parse_criterion(f"latency_ratio vs old <= {MOST_SLOWER:g} at 95 %")
    return replace(limit, text=f"no clear slowdown, {limit.text}", broken_from=SLOWER)


def _limits_since(old: Baseline[RunRows], row: Row) -> list[Criterion]:
    """The limits that a comparison sets by itself: on the accuracy, or on every mean of a task of one's own."""
    if "accuracy" in row.texts:
        _require_unit(old)
        points = 100 * (DEFAULT_MARGIN if old.margin is None else old.margin)
        return [parse_criterion(f"{row.texts['accuracy']} drop vs old <= {points:g} points at 95 %")]
    found = []
    for name, figure in row.figures.items():
        margin = _margin_since(old, row.name, name, figure)
        if margin:
            way = "rise" if figure.better == "lower" else "drop"
            found.append(parse_criterion(f"{name} {way} vs old <= {_in_unit(margin, figure)} at 95 %", "yes"))
    return found


def _margin_since(old: Baseline[RunRows], row: str, name: str, figure: Figure) -> float | None:
    """The change of a mean since an earlier result that counts as none; None for a figure that is no mean.

    What nobody states is half a point, or 1 % of what it was, and 0 where it was 0.
    """
    if figure.spread is None:
        return None
    if figure.margin is None and is_a_share(figure):
        _require_unit(old)
    stated = old.margin if figure.margin is None else figure.margin
    if stated is not None:
        return stated
    earlier = old.result.row(row)
    before = None if earlier is None else earlier.figures.get(name)
    value = figure.value if before is None else before.value
    return margin_of_mean(value or 0.0, figure.spread.bounds)


def _require_unit(old: Baseline[RunRows]) -> None:
    """Raise :class:`UsageError` for a margin without a unit that is to be one of a share."""
    if old.margin is not None and not old.margin_has_unit:
        raise UsageError(f"--margin={old.margin:g}{without_unit(f'{old.margin:g}', 'points')}")
    if old.margin is not None and old.margin >= 1:
        raise UsageError(f"--margin={100 * old.margin:g} points: use less than 100 points")


def _in_unit(margin: float, figure: Figure) -> str:
    return f"{100 * margin:g} points" if is_a_share(figure) else f"{margin:g}"


def _kept_since(criterion: Criterion, decision: Decision, since: Evidence, is_same: bool) -> Decision:
    """The decision on an accuracy, which is kept where the same model has the same answers on the same examples.

    That is seen where both results recorded them, and needs no interval then.
    """
    decision = replace(decision, limit=f"{criterion.figure} unchanged, or {criterion.text}")
    figure = since.figures.get(criterion.figure)
    change = None if figure is None else change_of(figure, since.base.get(criterion.figure), of_old=True)
    match change:
        case CountedChange(counts=counts):
            is_same = is_same and counts.lost + counts.gained == 0
        case MeanChange() | ResampledChange():
            is_same = is_same and change.differing == 0
        case _:
            is_same = False
    if decision.found is None or not is_same:
        return decision
    if since.examples == 1:
        return decision
    found = replace(decision.found, low=None, high=None)
    return replace(decision, verdict="pass", found=found, reason="", examples_needed=None)


def _other_decisions(earlier: Row, row: Row, since: Evidence, is_same_model: bool) -> Iterator[Decision]:
    """Whether the verdict against the reference, errors of outputs, or delegated nodes became worse.

    Errors of outputs that are not equivalent may grow by a tenth. Of nodes nothing is said where they were not known
    before.
    """
    if "accuracy" not in row.texts and earlier.verdict is not None and row.verdict is not None:
        yield _of_verdicts(row.name, earlier.verdict, row.verdict)
    if row.verdict is None or row.verdict.kind not in _ALIKE:
        then = {output.name: output for output in earlier.parts}
        for output in since.outputs:
            sides = [{name: each.value(name) for name in _ERRORS} for each in (then.get(output.name), output) if each]
            known = [name for name in _ERRORS if len(sides) == 2 and all(side[name] is not None for side in sides)]
            for name in known[:1]:
                before, value = (side[name] or 0.0 for side in sides)
                limit = f"{name}[{output.name}] <= {_GROWTH * before:.4g} (old {before:.4g})"
                verdict: GateVerdict = "pass" if value <= _GROWTH * before else "fail"
                yield Decision(row.name, limit, verdict, Found(name, value, output=output.name))
    nodes, now = (each.delegation.delegated_nodes if each.delegation else None for each in (earlier, row))
    if is_same_model and nodes is not None:
        limit = f"nodes on delegates >= {nodes} (old)"
        if now is None:
            yield not_measured("how many nodes a delegate took is not known now", limit, row.name)
        else:
            verdict = "pass" if now >= nodes else "fail"
            yield Decision(row.name, limit, verdict, Found("nodes on delegates", float(now)))


def _of_verdicts(name: str, then: Verdict, now: Verdict) -> Decision:
    worse: GateVerdict = "inconclusive" if now.kind in (NOT_DECIDED, ODD_REFERENCE) else "fail"
    verdict = worse if _rank(now) > _rank(then) else "pass"
    return Decision(name, f"verdict no worse than {then.kind}", verdict, reason=f"now {now.kind}")


def _rank(verdict: Verdict) -> int:
    """How bad a verdict is; of a figure it is all one how it is known that it did not get worse."""
    is_as_good = verdict.metric != OF_OUTPUTS and verdict.kind in (*_ALIKE, "better")
    kind = EQUIVALENT if is_as_good else verdict.kind
    grades: list[str] = list(GRADES)
    return grades.index(kind) if kind in grades else len(grades)

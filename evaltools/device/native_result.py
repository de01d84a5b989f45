"""From runs of TensorFlow's own evaluation binaries to our typed result.

:mod:`evaltools.device.native_inputs` says what such a run is given. A native tool gives figures, no records; of coco it
prints what it found in each picture, of which our own figures are made beside its mAP.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from evaltools.configuration import Configuration
from evaltools.datasets.image_folder import printable_name
from evaltools.device.native_inputs import NATIVE_CLASS_OFFSET, NativeInputs
from evaltools.device.native_program import ProgramRun, signal_of
from evaltools.engine.ledger import PassOutcome
from evaltools.engine.opening import comparison_pairs, describe_model
from evaltools.engine.run_folder import digest_of_files
from evaltools.engine.steps import Record
from evaltools.errors import DataError
from evaltools.gates.criteria import Criterion
from evaltools.gates.decide import check_limits
from evaltools.known_tasks import with_other_metrics
from evaltools.metrics.boxes import Detection
from evaltools.metrics.native_numbers import NativeError, shortest
from evaltools.native.logs.delegates import read_delegate_log
from evaltools.native.logs.delegation import FALLBACK_HINT, delegation_of, reference_delegation
from evaltools.native.logs.evaluation import (
    FAILED,
    UNCONSUMED,
    LoggedPicture,
    NativeEvaluationLog,
    parse_evaluation_log,
)
from evaltools.native.logs.figures import NativeFigures, merge_latencies, read_figures
from evaltools.result.environment import describe_environment
from evaltools.result.facts import RuntimeUsed
from evaltools.result.metrics import figures_of, figures_of_nodes
from evaltools.result.result import INVOKE, PREPROCESSING, Result, Row, warning
from evaltools.result.verdict import OF_OUTPUTS, Verdict
from evaltools.tasks.coco.boxes import Boxes
from evaltools.tasks.coco.boxes import conclude as conclude_boxes
from evaltools.tasks.coco.objects import FoundObjects
from evaltools.tasks.coco.truth import picture_size
from evaltools.tasks.framework.collecting import Concluded, RecordsOfRun, with_concluded
from evaltools.tasks.framework.request import given_of
from evaltools.tasks.framework.steps import ObservedScores
from evaltools.tasks.framework.topk_figures import accuracies
from evaltools.tasks.imagenet.data import LabelledImages
from evaltools.tasks.inference_diff.differences import concluded
from evaltools.tasks.inference_diff.figures import parts_of
from evaltools.tasks.inference_diff.output_comparison import output_names
from evaltools.tasks.inference_diff.result import DiffComparison, InferenceDiff, InputUsed

Limits = tuple[Criterion, ...]
_SIX_DIGITS: Final = (
    "the native tool prints detections with six digits; the figures of COCO and the comparisons of boxes are taken "
    "from those, the native mAP is the tool's own"
)
_WHAT_IS_NOT_KNOWN: Final = {
    "imagenet": "the native tool gives no single times and no single answers: there is no median, and nothing is known "
    "of NaN scores, of the number of different answers, and of which pictures changed sides",
    "coco": "the native tool gives no single times: there is no median",
    "inference_diff": "the native tool gives no single times: there is no median. Of an output it gives avg_error "
    "only, which is in raw numbers",
}
_INPUT_SOURCE: Final = "random numbers of the native tool, which are those of its C++ library"


class Outcome(Struct, frozen=True):
    """What the run of a configuration gave: its ``row``, which has no figures of the task yet, and its log.

    ``figures`` is None where it is not measured.
    """

    row: Row
    figures: NativeFigures | None
    log: NativeEvaluationLog
    delegate_lines: tuple[str, ...]


def assemble_native(
    inputs: NativeInputs[Any],
    runs: Mapping[str, Sequence[ProgramRun]],
    runtime: RuntimeUsed,
    started_at: str,
    elapsed_s: float = 0.0,
) -> Result:
    """The result of the runs of all configurations, in their order, at each place; a single place has no name.

    Where several places did the same, the reference is that of the first place, and those of others are tests; an
    inference_diff has one of each place. ``started_at`` is ISO 8601, ``elapsed_s`` what the command took until now, in
    seconds. A configuration is ``not measured``, with the reason, where a run of it did not come to its end, or where
    its log does not prove that the delegates that it asked for took nodes, unless the request allows a fallback.
    """
    outcomes = []
    for place, own in runs.items():
        for configuration, run in zip(inputs.configurations, own, strict=True):
            outcome = _outcome_of(inputs, configuration, run, runtime)
            is_reference = configuration is inputs.request.reference and place == next(iter(runs))
            name, role = _at(configuration, place), "reference" if is_reference else "test"
            outcomes.append(replace(outcome, row=replace(outcome.row, name=name, role=role, place=place)))
    rows = [outcome.row for outcome in outcomes]
    if inputs.task == "imagenet":
        found = _classified(inputs, outcomes)
    elif inputs.task == "coco":
        found = _detected(inputs, outcomes)
    else:
        rows, found = _with_references(inputs, outcomes, runtime), _compared(inputs, outcomes)
    is_measured = any(row.status == "measured" for row in rows)
    notes = [*inputs.warnings, *found.warnings]
    notes += [_WHAT_IS_NOT_KNOWN[inputs.task]] if is_measured else []
    result = Result(
        command=inputs.task,
        environment=describe_environment(list(inputs.request.command), started_at, elapsed_s),
        models=[describe_model(inputs.model)],
        rows=rows,
        examples_done=max((row.finished_examples for row in rows if row.status == "measured"), default=0),
        example_count=inputs.example_count,
        given={"pictures": digest_of_files(inputs.pictures)[:12]} if inputs.pictures else {},
        notes=[*map(warning, notes)],
    )
    return with_other_metrics(with_concluded(result, found))


def _at(configuration: Configuration, place: str) -> str:
    """The name of a configuration in the result."""
    return f"{configuration.name}@{place}" if place else configuration.name


def _outcome_of(
    inputs: NativeInputs[Any], configuration: Configuration, run: ProgramRun, runtime: RuntimeUsed
) -> Outcome:
    nodes, lines = inputs.model.node_count, run.delegate_lines
    reference_nodes = nodes if inputs.task == "inference_diff" else None
    taken = delegation_of(configuration, read_delegate_log(lines), nodes, reference_nodes)
    log, figures, reason = parse_evaluation_log(""), None, ""
    try:
        log = parse_evaluation_log(run.printed)
        found = _figures(inputs, run, log)
        if taken.why_not is not None and not inputs.request.allow_fallback:
            raise DataError(f"{taken.why_not}; {FALLBACK_HINT}")
        if inputs.task == "coco":
            _require_detections(inputs, found, log.pictures)
        figures = found
    except DataError as error:
        reason = str(error)
    row = Row(
        name=configuration.name,
        flags=configuration.to_flags(),
        num_threads=configuration.num_threads,
        status="not measured" if reason else "measured",
        reason=reason,
        fallback="" if reason else taken.why_not or "",
        runtime=replace(runtime, kernels=configuration.kernel_set, messages="; ".join(lines)),
        delegates=taken.delegates,
        delegation=taken.proof,
        figures=figures_of_nodes(taken.delegates, taken.proof),
    )
    if figures is not None:
        times = {INVOKE: figures.inference.native, PREPROCESSING: figures.preprocessing.native}
        row = replace(row, figures=row.figures | figures_of({"examples": figures.runs}), times=times)
    return Outcome(row, figures, log, lines)


def _figures(inputs: NativeInputs[Any], run: ProgramRun, log: NativeEvaluationLog) -> NativeFigures:
    """The figures of a run; raises :class:`DataError` where it has none."""
    if run.failure:
        raise DataError(run.failure)
    if run.code != 0 or FAILED in log.errors:
        signal, crash = signal_of(run.code), f": {run.crash}" if run.crash else ""
        ending = f"the signal {signal}" if signal else f"the exit code {run.code}"
        raise DataError(f"the native tool failed{f': {log.failure}' if log.failure else f' with {ending}{crash}'}")
    ignored = [text for text in log.warnings if text.startswith(UNCONSUMED)]
    if ignored:
        raise DataError(
            f'the native tool warned "{ignored[0]}", and went on without; take a binary that has these flags'
        )
    if run.output is None:
        raise DataError(
            "the native tool came to its end, but its result file is missing, and its text has six digits only"
        )
    try:
        figures = read_figures(run.output)
    except DataError as error:
        raise DataError(f"the native tool's result file cannot be read: {error}") from error
    if figures.task != inputs.task:
        raise DataError(f"the result file is one of {figures.task}; give the program of {inputs.task}")
    if figures.runs != inputs.example_count:
        raise DataError(f"the native tool evaluated {figures.runs} examples, there were {inputs.example_count}")
    outputs, compared = len(inputs.model.outputs), len(figures.errors)
    if inputs.task == "inference_diff" and compared != outputs:
        raise DataError(f"the native tool compared {compared} outputs, {inputs.model.path} has {outputs}")
    return figures


def _classified(inputs: NativeInputs[LabelledImages], outcomes: Sequence[Outcome]) -> Concluded:
    names = [printable_name(path.name) for path in inputs.pictures]
    return Concluded(
        figures={each.row.name: accuracies(each.figures.right, each.figures.runs) for each in outcomes if each.figures},
        given=given_of(inputs.request, names, inputs.given),
    )


def _require_detections(inputs: NativeInputs[Boxes], figures: NativeFigures, logged: Sequence[LoggedPicture]) -> None:
    """Raise :class:`DataError` where a run has not the detections of every picture, by which it is compared."""
    printed = (os.fsencode(path.name).decode("utf-8", errors="replace") for path in inputs.pictures)
    wanted, found = [name.strip() for name in printed], [picture.name for picture in logged]
    if found != wanted:
        missing = [name for name in wanted if name not in found]
        what = f"{missing[0]!r} is missing" if missing else "they stand in another order"
        raise DataError(
            f"the native tool's text has the detections of {len(found)} pictures, there were {len(wanted)}: {what}. "
            "Was it run with --debug_mode=true, and its text kept whole?"
        )
    if (figures.overall is None) != (inputs.data.data.pictures.truth is None):
        raise DataError("the native tool's ground truth was not the one that it was given: it could not read it")


def _detected(inputs: NativeInputs[Boxes], outcomes: Sequence[Outcome]) -> Concluded:
    """What the detections in the logs give, as records; the mAP is the tool's own, 0 without a ground truth."""
    asked, rows = inputs.request, [each.row for each in outcomes]
    to_tensor = inputs.data.data.sides[0].to_tensor
    raw_size = (to_tensor.width, to_tensor.height)
    sizes = [picture_size(path, raw_size) for path in inputs.pictures]
    records, stated = {}, {}
    for outcome in outcomes:
        if outcome.figures is not None:
            name, figures = outcome.row.name, outcome.figures
            found = zip(outcome.log.pictures, sizes, strict=True)
            records[name] = [
                Record(index, name, (), ObservedScores[Any](whole=_found_objects(picture.detections, size)))
                for index, (picture, size) in enumerate(found)
            ]
            precisions = tuple(shortest(value) for _, value in figures.precisions)
            stated[name] = precisions, shortest(figures.overall or 0.0)
    run = RecordsOfRun(
        examples=(),
        outcome=PassOutcome(records, names=[printable_name(path.name) for path in inputs.pictures]),
        measured=list(records),
        pairs=comparison_pairs(rows),
        margin=asked.margin,
        keeps_examples=asked.record_examples,
        pictures=asked.folder_of_pictures,
    )
    boxes = conclude_boxes(inputs.data, run, rows, stated)
    return replace(boxes, warnings=[*boxes.warnings, *([_SIX_DIGITS] if records else [])])


def _found_objects(detections: Sequence[Detection], size: tuple[int, int]) -> FoundObjects:
    finite = [
        found for found in detections if math.isfinite(found.score) and all(math.isfinite(side) for side in found.box)
    ]
    return FoundObjects(
        classes=np.array([found.category_id - NATIVE_CLASS_OFFSET for found in finite], np.int64),
        boxes=np.array([found.box for found in finite], np.float32).reshape(-1, 4),
        scores=np.array([found.score for found in finite], np.float32),
        stated=float(len(detections)),
        rows=len(detections),
        nonfinite=len(detections) - len(finite),
        fractional=0,
        width=size[0],
        height=size[1],
    )


def _compared(inputs: NativeInputs[Limits], outcomes: Sequence[Outcome]) -> Concluded:
    names, comparisons = output_names(inputs.model), []
    for outcome in outcomes:
        errors = [] if outcome.figures is None else list(outcome.figures.errors)
        comparison = DiffComparison(outcome.row.name, [], None, None, None, [], None, native_errors=errors)
        if inputs.data and outcome.figures is None:
            comparison = replace(comparison, within_limits=False)
        elif inputs.data:
            checks = check_limits(inputs.data, parts_of(comparison, names))
            comparison = replace(comparison, limits=checks, within_limits=all(check.kept for check in checks))
        comparisons.append(comparison)
    details = InferenceDiff(
        num_runs=inputs.example_count,
        seed=1,
        inputs=[
            InputUsed(tensor.signature_name or tensor.name, tensor.dtype, list(tensor.shape), _INPUT_SOURCE)
            for tensor in inputs.model.inputs
        ],
        noise_floor_runs=0,
        noise_floor=[],
        comparisons=comparisons,
    )
    return concluded(details, names, [], {})


def _with_references(inputs: NativeInputs[Limits], outcomes: Sequence[Outcome], runtime: RuntimeUsed) -> list[Row]:
    """The rows of an inference_diff with their verdicts, those of a place behind its reference."""
    rows = []
    for place in dict.fromkeys(outcome.row.place for outcome in outcomes):
        own = [outcome for outcome in outcomes if outcome.row.place == place]
        reference = _reference(inputs, own, place, runtime)
        verdicts = [_verdict(inputs, outcome, reference.name) for outcome in own]
        tests = [replace(each.row, verdicts=[verdict]) for each, verdict in zip(own, verdicts, strict=True)]
        rows += [reference, *tests]
    return rows


def _reference(inputs: NativeInputs[Limits], outcomes: Sequence[Outcome], place: str, runtime: RuntimeUsed) -> Row:
    """The reference inside the tool: one thread, the default kernels, no delegate, whatever the test's flags say.

    Each of the runs at a place has it, always the same; its times are taken over all of them.
    """
    configuration = inputs.request.reference or Configuration("reference")
    measured = [(outcome.figures, outcome.delegate_lines) for outcome in outcomes if outcome.figures is not None]
    taken = reference_delegation(measured[0][1] if measured else (), inputs.model.node_count)
    latency = merge_latencies([figures.reference for figures, _ in measured])
    return Row(
        name=_at(configuration, place),
        role="reference",
        status="measured" if measured else "not measured",
        reason="" if measured else "no run came to its end, and the reference is a part of each",
        runtime=runtime,
        delegates=taken.delegates,
        delegation=taken.proof,
        figures=figures_of({"examples": inputs.example_count if measured else None}),
        times={INVOKE: latency.native} if measured else {},
        place=place,
    )


def _verdict(inputs: NativeInputs[Limits], outcome: Outcome, reference: str) -> Verdict:
    """Only outputs that are the same to the last bit can be judged: the tool gives one number of each."""
    figures, reason = outcome.figures, outcome.row.reason
    if figures is None:
        return Verdict("not compared", OF_OUTPUTS, reference, texts=[reason] if reason else [])
    if figures.runs > 0 and all(error.avg_error == 0 for error in figures.errors):
        same = "the raw numbers are the same in every element of every run"
        return Verdict("identical", OF_OUTPUTS, reference, texts=[same])
    named = zip((shown[0] for shown in output_names(inputs.model)), figures.errors, strict=True)
    name, error = max(named, key=lambda pair: math.inf if pair[1].avg_error is None else pair[1].avg_error)
    return Verdict("not judged", OF_OUTPUTS, reference, name, texts=[_error_in_words(error)])


def _error_in_words(error: NativeError) -> str:
    if error.avg_error is None:
        return "avg_error is not a number: one side has NaN or infinite values, or the output has no elements"
    return (
        f"avg_error {error.avg_error:g} in raw numbers, at most {error.max_error:g} in a run; the native tool gives "
        "nothing to compare that with"
    )

"""What a run finds out before its pass: models are warmed up, the task looks at a few examples, and chooses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from msgspec import Struct, field
from msgspec.structs import replace

from evaltools.configuration import Configuration
from evaltools.engine.opening import OpenConfigurations, Opened, open_all
from evaltools.engine.run_folder import Fact
from evaltools.engine.steps import Steps
from evaltools.errors import ImageError, InferenceError, ModelError, TaskError, UsageError
from evaltools.model import ModelFile, TensorInfo
from evaltools.runs.task_run import TaskRun
from evaltools.runtime import BlockSession, Inference, Session, TensorSpec
from evaltools.runtime.process.isolated import open_isolated
from evaltools.runtime.session import Array
from evaltools.tasks.framework.definition import Checked, TopK
from evaltools.tasks.framework.pictures import picture_transform
from evaltools.tasks.framework.sound_reference import are_sound, fitting_normalization, other_range_in_words
from evaltools.tasks.framework.steps import prepared_for
from evaltools.tasks.framework.task import make_task
from evaltools.tasks.framework.trial import SessionTrial, call_check, warm_up

_NO_REFERENCE: Final = "the reference does not run, so that there is nothing to compare with"


class FirstLook(Struct, frozen=True):
    """What was found.

    ``can_run``: there is something to run; else ``trouble`` may say why not. ``checked`` is what the task's check
    gave. ``first_run_us`` has the time of the very first run of each configuration that was warmed up, in microseconds,
    None where it failed. ``advice`` says which normalisation fits better.
    """

    can_run: bool = False
    checked: Checked = field(default_factory=Checked)
    first_run_us: dict[str, float | None] = field(default_factory=dict)
    trouble: str = ""
    advice: str = ""


FOUND: Final = Fact[FirstLook]("first look", FirstLook)


def first_look(run: TaskRun, opened: OpenConfigurations) -> FirstLook:
    """Warm up, try a few of the examples, and let the task choose by them how models are fed and outputs read.

    A trial would change the state of a model that keeps one. There is nothing to run without outputs of the reference
    that a task needs, nor where the task cannot tell how to read outputs that no configuration gives. Raises
    :class:`UsageError` and its kinds for data, models and code that do not fit each other.
    """
    task, reference, can_run = run.task, run.request.reference_name, opened.runnable
    if can_run and task.whole is not None and task.whole.against_reference:
        can_run = reference in (None, *opened.sessions)
        if not can_run:
            return FirstLook(trouble=_NO_REFERENCE)
    if not can_run:
        return FirstLook()
    first_runs = _warmed_up(run, opened.sessions)
    times = {name: first.invokes_us[0] if first else None for name, first in first_runs.items()}
    found = FirstLook(True, first_run_us=times)
    if not run.keeps_state:
        try:
            checked = _checked(run, opened.entries, first_runs.get(reference or ""))
        except InferenceError as error:
            return replace(found, can_run=False, trouble=str(error))
        found = replace(found, checked=checked)
        if not task.in_order:
            name, session = next(iter(opened.sessions.items()))
            _try_examples(run.as_checked(checked).steps, run.wrap(name, session), name == reference)
    return replace(found, advice=_input_advice(run.as_checked(found.checked), opened.sessions))


def check_on_host(run: TaskRun) -> None:
    """Check on the reference, before a run on devices, what can be found out here, if the reference can run here.

    Raises :class:`UsageError` and its kinds.
    """
    configuration = run.request.reference or Configuration("check", kernels="builtin")
    if run.task.check is None or run.task.in_order:
        return
    wanted = [(run.model, configuration)]
    with open_all(wanted, open_isolated, run.request.allow_fallback) as entries, suppress(InferenceError):
        opened = [entry for entry in entries.values() if isinstance(entry, Opened)]
        if opened:
            _checked(run, opened)


def check_sessions(run: TaskRun, opened: OpenConfigurations) -> None:
    """Raise :class:`ModelError` for a model whose inputs are others in the runtime than in its file.

    So it is with the scores of a classifier.
    """
    advice = "convert the model again"
    if "input_shape" in run.request.values:
        advice += ", or state the shape with --input_shape"
    for entry in opened.entries:
        for stated, actual in zip(entry.model.inputs, entry.session.inputs, strict=True):
            _require_stated(entry.model, entry.session, "input", stated, actual, advice)
        if isinstance(run.task.whole, TopK):
            _require_stated(entry.model, entry.session, "output", entry.model.outputs[0], entry.session.outputs[0])


def _require_stated(
    model: ModelFile,
    session: Session,
    kind: str,
    stated: TensorInfo,
    actual: TensorSpec,
    advice: str = "convert the model again",
) -> None:
    """Raise :class:`ModelError` if a tensor has another type or shape in the runtime than in the model file."""
    dtype = "string" if actual.dtype.kind == "S" else actual.dtype.name
    if (dtype, actual.shape) != (stated.dtype, stated.shape):
        raise ModelError(
            f"{model.path}: the file states the {kind} {stated}, but {session.facts.package} makes it "
            f"{dtype}{list(actual.shape)}; {advice}"
        )


def _warmed_up(run: TaskRun, sessions: Mapping[str, BlockSession]) -> dict[str, Inference | None]:
    """The very first run of each configuration, which runs the first example as often as the task wants.

    An example that cannot be read is left to the pass to report.
    """
    task = run.task
    found: dict[str, Inference | None] = {}
    if task.warmup_runs:
        with suppress(ImageError, TaskError):
            inputs = prepared_for(task, run.tensors, 0).inputs
            for name, session in sessions.items():
                found[name] = warm_up(run.wrap(name, session), inputs, task.warmup_runs, task.invocations)
    return found


def _checked(run: TaskRun, entries: Sequence[Opened], first_of_reference: Inference | None = None) -> Checked:
    """Let the task look at a few examples of its models."""
    check = run.task.check
    if check is None:
        return Checked()
    own = [entry.session for entry in entries if entry.model is run.model]
    others = [entry.session for entry in entries if entry.model is not run.model]
    first = first_of_reference
    of_reference = SessionTrial(others, run.task, run.tensors[-1], warmed_up=first) if others else None
    first = first if run.reference_model is None else None
    return call_check(check, SessionTrial(own, run.task, run.tensors[0], of_reference, first))


def _input_advice(run: TaskRun, sessions: Mapping[str, BlockSession]) -> str:
    """Which normalisation fits, where pictures are fed other values than the model shows or can take."""
    request = run.request
    stated = request.values.get("normalization")
    session = sessions.get(run.request.reference_name or "")
    is_of_pictures = isinstance(run.task.examples[0].input, Path)
    if not isinstance(stated, str) or not is_of_pictures or session is None or run.reference_model is not None:
        return ""
    try:
        fed = run.task.fed_range or picture_transform(run.tensors[0].inputs[0], stated).value_range()
    except TaskError:
        return ""

    def outputs_with(name: str) -> Sequence[Array] | None:
        try:
            changed = {**request.values, "normalization": name}
            task = run.task if name == stated else make_task(request.loaded, changed, run.setting([run.model]))
            return session.run(prepared_for(task, run.tensors, 0).inputs).outputs
        except (UsageError, TaskError, ImageError, InferenceError):
            return None

    other = other_range_in_words(run.model, fed)
    outputs = None if other else outputs_with(stated)
    if outputs is None or are_sound(outputs):
        return other
    fitting = fitting_normalization(outputs_with)
    return f"outputs overflow where pictures are fed as {fed[0]:.4g}..{fed[1]:.4g}" + (
        f"; --normalization={fitting} fits" if fitting else ", and with every other normalization that has a name"
    )


def _try_examples(steps: Steps[Any], session: Session, is_reference: bool) -> None:
    """Raise :class:`UsageError` where the task's code fails on the first, the middle and the last example alike.

    ``is_reference``: the session runs the reference's model.
    """
    faults = []
    for example in dict.fromkeys((0, len(steps.names) // 2, len(steps.names) - 1)):
        fault = _fault(steps, example, session, is_reference)
        if fault is None:
            return
        faults.append(fault)
    raise UsageError(faults[0])


def _fault(steps: Steps[Any], example: int, session: Session, is_reference: bool) -> str | None:
    """The error of the task's own code on an example; None where there is none, or where something else fails."""
    try:
        prepared = steps.prepare(example)
        outputs = session.run(prepared.inputs).outputs
        steps.observe(prepared, outputs, outputs if is_reference else None, "")
    except TaskError as error:
        return str(error)
    except (ImageError, InferenceError):
        return None
    return None

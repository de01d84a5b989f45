"""Runs a few pictures to see whether the label list and the input values fit the model."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from evaltools.engine.execution import available_cores
from evaltools.engine.task import Prepared
from evaltools.errors import DataError, ImageError, InferenceError
from evaltools.preprocess import NORMALIZATION_NAMES, parse_normalization
from evaltools.runtime import Session
from evaltools.tasks.imagenet.label_check import (
    Diagnosis,
    clearly_better,
    count_hits,
    diagnose,
    offset_advice,
    offset_in_words,
    probe_positions,
    shifted,
)
from evaltools.tasks.imagenet.task import ImagenetTask

_LOW_ACCURACY_DIVISOR: Final = 5
"""Other input values are tried where at most one picture in five is right."""
_MADE_AT_ONCE: Final = 16


def require_fitting_labels(task: ImagenetTask, session: Session, labels: Sequence[str], offset: int) -> None:
    """Raise :class:`DataError` where another reading of the labels, or other input values, fit far better.

    ``labels`` are the lines of the label file, ``offset`` the class of its first line.
    """
    class_count = len(task.class_labels)
    answers, truths = first_answers(task, session)
    diagnosis = diagnose(answers, truths, labels, class_count, offset)
    as_given = count_hits(answers, truths, task.class_labels)
    if as_given * _LOW_ACCURACY_DIVISOR <= len(answers):
        diagnosis = _other_normalization(task, session, as_given) or diagnosis
    if diagnosis is not None:
        message = (
            f"{diagnosis.subject} do not fit the model: {diagnosis.finding}.\n"
            f"  Fix: {diagnosis.advice}. To evaluate all the same: --label_check=false"
        )
        raise DataError(message)


def explain_label_count(task: ImagenetTask, session: Session, labels: Sequence[str]) -> str:
    """What a few pictures say about a list with one line more or less than the model has outputs."""
    class_count = len(task.class_labels)
    answers, truths = first_answers(task, session)
    missing = class_count - len(labels)
    hits = {offset: count_hits(answers, truths, shifted(labels, class_count, offset)) for offset in (0, missing)}
    advice = offset_advice(missing)
    if hits[0] > hits[missing]:
        change = "add a last line" if missing > 0 else "delete the last line"
        advice = f"The lines are right from the first one on: {change}, or pass --label_offset=0"
    return (
        f"Of {len(answers)} pictures tried, {hits[0]} are right as given, {hits[missing]} {offset_in_words(missing)}.\n"
        f"  Fix: {advice}"
    )


def first_answers(task: ImagenetTask, session: Session) -> tuple[list[int], list[str]]:
    """For the probes: the class put first, and the right label.

    Pictures that fail are left out, and copies of one that was tried: they say nothing new.
    """
    answers, truths = [], []
    tried: set[bytes] = set()
    for prepared in _prepared(task, probe_positions(task.images.truths)):
        content = hashlib.sha256(prepared.inputs[0].tobytes()).digest()
        if content in tried:
            continue
        tried.add(content)
        try:
            observation = task.observe(prepared, session.run(prepared.inputs).outputs)
        except InferenceError:
            continue
        answers.append(observation.classes[0])
        truths.append(prepared.context)
    return answers, truths


def _prepared(task: ImagenetTask, positions: Sequence[int]) -> Iterator[Prepared]:
    """The inputs of those pictures that can be read, in order; a few are made at the same time, on all cores."""

    def prepared(position: int) -> Prepared | None:
        try:
            return task.prepare(task.examples[position])
        except ImageError:
            return None

    with ThreadPoolExecutor(available_cores()) as threads:
        for start in range(0, len(positions), _MADE_AT_ONCE):
            made = threads.map(prepared, positions[start : start + _MADE_AT_ONCE])
            yield from (each for each in made if each is not None)


def _other_normalization(task: ImagenetTask, session: Session, as_given: int) -> Diagnosis | None:
    """The named normalisation with which the model suddenly works, if there is one."""
    if task.to_tensor.dtype.kind != "f":
        return None
    hits = {}
    for name in NORMALIZATION_NAMES:
        answers, truths = first_answers(task.with_normalization(parse_normalization(name)), session)
        hits[name] = count_hits(answers, truths, task.class_labels)
    best = max(hits, key=lambda name: hits[name])
    if not clearly_better(hits[best], as_given, truths):
        return None
    table = ", ".join(f"{name} {count}" for name, count in hits.items())
    finding = f"only {as_given} pictures are right, but other input values give: {table} (of {len(answers)})"
    return Diagnosis(finding, f"The labels are fine; pass --normalization={best}", subject="the input values")

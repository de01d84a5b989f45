"""Sounds that have a label."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Final

from evaltools.task_kind import Accuracy
from evaltools.tasks.own import DeclaredKind
from evaltools.tasks.own.definition import Mean, Task, mean, pooled, task


@task
def audio(
    recordings: Annotated[Path, "Folder with a folder of WAV files for each label."],
    labels: Annotated[Path | None, "Label file: line i names output i of the model."] = None,
    sample_rate: Annotated[int, "Samples per second that the model takes."] = 16000,
    num_recordings: Annotated[int, "Evaluate the first N recordings; 0: all."] = 0,
) -> Task:
    """Accuracy and mAP of a model that tells sounds or keywords apart.

    The input is a window of samples, [1,samples] or [samples]: the middle of a recording, with silence around a shorter
    one. A .npy file in the place of a WAV file has the input itself, such as features. Without labels: how many answers
    are the reference's.
    """
    from evaltools.metrics.average_precision import mean_average_precision
    from evaltools.tasks.audio import sounds

    truth: list[Mean] = [mean("accuracy"), pooled("label_map", mean_average_precision)]
    agreement = [mean("same_answer"), mean("score_shift", better="lower")]
    return Task(
        examples=sounds.listed(recordings, labels, num_recordings),
        prepare=partial(sounds.model_input, sample_rate),
        score=sounds.score if labels else None,
        agree=sounds.agree,
        metrics=[*truth, *agreement] if labels else agreement,
    )


KIND: Final = DeclaredKind(
    audio,
    {
        "accuracy": "audio, text: share of examples whose best label is right, 0..1",
        "label_map": "audio, text: mean over the labels of the average precision of their scores, 0..1",
        "same_answer": "audio, text: share of examples with the reference's best label, 0..1",
        "score_shift": "audio, text: largest change of a score against the reference, mean over the examples",
    },
    Accuracy("accuracy", "accuracy"),
)

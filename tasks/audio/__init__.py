"""Sounds that have a label."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Final

from evaltools.command import Accuracy
from evaltools.tasks.framework import comes_with_evaltools
from evaltools.tasks.framework.common_options import ExampleOrder, Seed
from evaltools.tasks.framework.definition import Task, task


@task
def audio(
    recordings: Annotated[Path, "Folder with a folder of WAV files for each label."],
    labels: Annotated[Path | None, "Label file: line i names output i of the model."] = None,
    sample_rate: Annotated[int, "Samples per second that the model takes."] = 16000,
    num_recordings: Annotated[int, "Evaluate the first N recordings; 0: all."] = 0,
    order: ExampleOrder = "native",
    seed: Seed = 1,
) -> Task:
    """Accuracy and mAP of a model that recognises sounds or keywords.

    The input is a window of samples, [1,samples] or [samples]: the middle of a recording, with silence around a shorter
    one. A .npy file in the place of a WAV file has the input itself, such as features. Without labels: how many answers
    are the reference's.
    """
    from evaltools.tasks.audio import sounds
    from evaltools.tasks.framework import label_scores

    return Task(
        examples=sounds.listed(recordings, labels, num_recordings, order, seed),
        prepare=partial(sounds.model_input, sample_rate),
        score=label_scores.score if labels else None,
        agree=label_scores.agree,
        metrics=label_scores.metrics(has_truth=labels is not None),
    )


COMMAND: Final = comes_with_evaltools(audio, "evaltools.tasks.framework.label_scores", Accuracy("accuracy", "accuracy"))

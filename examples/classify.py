"""A classifier as a task of one's own: the same figures and verdicts as ``evaltools imagenet``; see docs/tasks.md."""

from functools import partial
from pathlib import Path

import evaltools as et


@et.task
def classify(images: Path, truths: Path, labels: Path) -> et.Task:
    """Top-1 to top-10 accuracy on labelled pictures."""
    answers = et.topk(labels.read_text().splitlines())
    pictures = zip(et.pairs(images, None), truths.read_text().splitlines(), strict=True)
    return et.Task(
        examples=[et.Example(picture.id, picture.input, truth) for picture, truth in pictures],
        prepare=partial(et.image_input, crop=0.875),
        score=answers.score,
        metrics=[answers],
    )

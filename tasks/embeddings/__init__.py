"""Embeddings of pictures."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Final

from evaltools.command import Accuracy
from evaltools.tasks.framework import comes_with_evaltools
from evaltools.tasks.framework.common_options import ExampleOrder, Images, Normalized, NumImages, Seed
from evaltools.tasks.framework.definition import Task, task


@task
def embeddings(
    images: Images,
    ground_truth: Annotated[Path | None, "Text file: line i is the label of picture i."] = None,
    output_index: Annotated[int, "The output that is the embedding, from 0."] = 0,
    normalization: Normalized = "auto",
    num_images: NumImages = 0,
    order: ExampleOrder = "native",
    seed: Seed = 1,
) -> Task:
    """Recall of pictures of the same label by embeddings, and their cosine to the reference's.

    The output may have any shape; its numbers are one vector. Without a ground truth: only the cosine.
    """
    from evaltools.tasks.embeddings import vectors
    from evaltools.tasks.framework.pictures import image_input

    return Task(
        examples=vectors.labelled(images, ground_truth, num_images, order, seed),
        prepare=partial(image_input, normalization=normalization),
        score=partial(vectors.score, output_index) if ground_truth else None,
        agree=partial(vectors.agree, output_index),
        metrics=vectors.metrics(has_truth=ground_truth is not None),
    )


COMMAND: Final = comes_with_evaltools(
    embeddings,
    "evaltools.tasks.embeddings.vectors",
    Accuracy("recall_at_1", "recall@1"),
)

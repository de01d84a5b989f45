"""Texts as numbers of tokens."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final, Literal

from evaltools.command import Accuracy
from evaltools.tasks.framework import comes_with_evaltools
from evaltools.tasks.framework.common_options import ExampleOrder, Seed
from evaltools.tasks.framework.definition import Task, task


@task
def text(
    table: Annotated[Path, "CSV file: a column for each input of the model by its name, numbers separated by spaces."],
    label: Annotated[str, "The column with the number of the right label, or with the right number; empty: none."] = "",
    answer: Annotated[
        Literal["label", "number"], "label: the output has a score for each label; number: it is a number."
    ] = "label",
    num_rows: Annotated[int, "Evaluate the first N rows; 0: all."] = 0,
    order: ExampleOrder = "native",
    seed: Seed = 1,
) -> Task:
    """Accuracy and mAP of a text classifier, or the error of a regression, on tokens that are given.

    A cell has the tokens of an input, or other numbers; fewer than it takes are filled up with 0. For a model with one
    input the column may have any name. Without a label: how far answers are the reference's.
    """
    from evaltools.tasks.framework import label_scores
    from evaltools.tasks.text import rows

    answers = label_scores if answer == "label" else rows
    return Task(
        examples=rows.listed(table, label, answer == "label", num_rows, order, seed),
        prepare=rows.model_inputs,
        score=answers.score if label else None,
        agree=answers.agree,
        metrics=answers.metrics(has_truth=bool(label)),
    )


COMMAND: Final = comes_with_evaltools(
    text,
    "evaltools.tasks.text.rows",
    Accuracy("accuracy", "accuracy"),
)

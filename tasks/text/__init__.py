"""Texts as numbers of tokens."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final, Literal

from evaltools.task_kind import Accuracy
from evaltools.tasks.own import DeclaredKind
from evaltools.tasks.own.definition import Mean, Task, mean, pooled, task


@task
def text(
    table: Annotated[Path, "CSV file: a column for each input of the model by its name, numbers separated by spaces."],
    label: Annotated[str, "The column with the number of the right label, or with the right number; empty: none."] = "",
    answer: Annotated[
        Literal["label", "number"], "label: the output has a score for each label; number: it is a number."
    ] = "label",
    num_rows: Annotated[int, "Evaluate the first N rows; 0: all."] = 0,
) -> Task:
    """Accuracy and mAP of a text classifier, or the error of a regression, on tokens that are given.

    A cell has the tokens of an input, or other numbers; fewer than it takes are filled up with 0. For a model with one
    input the column may have any name. Without a label: how far answers are the reference's.
    """
    from evaltools.metrics.average_precision import mean_average_precision
    from evaltools.tasks.text import rows

    truth: list[Mean]
    if answer == "label":
        truth = [mean("accuracy"), pooled("label_map", mean_average_precision)]
        agreement = [mean("same_answer"), mean("score_shift", better="lower")]
    else:
        truth = [mean("absolute_error", better="lower"), pooled("correlation", rows.correlation)]
        agreement = [mean("number_shift", better="lower")]
    return Task(
        examples=rows.listed(table, label, answer == "label", num_rows),
        prepare=rows.model_inputs,
        score=None if not label else rows.score_label if answer == "label" else rows.score_number,
        agree=rows.agree_label if answer == "label" else rows.agree_number,
        metrics=[*truth, *agreement] if label else agreement,
    )


KIND: Final = DeclaredKind(
    text,
    {
        "absolute_error": "text: mean absolute error of a regression",
        "correlation": "text: Pearson's correlation of a regression with the right numbers, -1..1",
        "number_shift": "text: mean distance of a regression to the reference's number",
        "accuracy": "audio, text: share of examples whose best label is right, 0..1",
        "label_map": "audio, text: mean over the labels of the average precision of their scores, 0..1",
        "same_answer": "audio, text: share of examples with the reference's best label, 0..1",
        "score_shift": "audio, text: largest change of a score against the reference, mean over the examples",
    },
    Accuracy("accuracy", "accuracy"),
)

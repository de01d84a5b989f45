"""The task that a task.yaml states, as a function whose parameters are options."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final

from evaltools.datasets.order import chosen
from evaltools.errors import UsageError
from evaltools.parameter import did_you_mean
from evaltools.preprocess import parse_normalization
from evaltools.tasks.own.definition import Task, TaskFunction
from evaltools.tasks.shared.options import ExampleOrder, Seed
from evaltools.tasks.task_file import schema
from evaltools.tasks.task_file.answers import Scoring, answer_of, metric_names
from evaltools.tasks.task_file.examples import Wanted, listed, preparation
from evaltools.tasks.task_file.reading import read_task_file, wrong

_DATA: Final[dict[type, tuple[str, str]]] = {
    schema.Pictures: ("images", "Folder of pictures, taken in order of their names."),
    schema.Recordings: ("recordings", "Folder with folders of WAV files."),
    schema.Rows: ("table", "CSV file with a column for each input of the model."),
    schema.Arrays: ("arrays", "Folder of .npz or .npy files, taken in order of their names."),
}
_GIVES: Final[dict[type, tuple[Wanted, ...]]] = {
    schema.Lines: ("label", "number"),
    schema.Files: ("file", "array"),
    schema.Folders: ("label",),
    schema.Column: ("label", "number"),
    schema.Array: ("label", "number", "array"),
}
_OF_INPUTS: Final[dict[type, tuple[type, ...]]] = {
    schema.Lines: tuple(_DATA),
    schema.Files: (schema.Pictures, schema.Arrays),
    schema.Folders: (schema.Recordings,),
    schema.Column: (schema.Rows,),
    schema.Array: (schema.Arrays,),
}
"""The inputs that a kind of truth can belong to."""


class StatedTask:
    """Makes the task of a file; its parameters are the paths in the file, and which examples count."""

    def __init__(self, task: schema.TaskFile, file: Path) -> None:
        self._task = task
        self._file = file
        options = _options(task, file.parent)
        self.__name__ = file.stem
        self.__doc__ = task.summary or f"The task that {file.name} states."
        self.__annotations__ = {name: kind for name, (kind, _) in options.items()}
        self.__signature__: Final = inspect.Signature(
            [
                inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)
                for name, (kind, default) in options.items()
            ]
        )

    def __call__(self, **options: Any) -> Task:
        """Make the task; raises :class:`UsageError` and its kinds."""
        task, answer = self._task, answer_of(self._task.output)
        count = options["num_examples"]
        if count < 0:
            raise UsageError(f"--num_examples={count}: give a number of examples, or 0 for all")
        data, _ = _DATA[type(task.inputs)]
        examples = listed(task, options[data], answer.wanted, options.get("truth"), options.get("labels"))
        metrics = answer.metrics(task.truth is not None)
        wanted = task.metrics or [metric.name for metric in metrics]
        agreement = metric_names(answer, has_truth=False)
        scoring = Scoring(answer, task.output.index, wanted)
        return Task(
            examples=chosen(examples, count, options["order"], options["seed"]),
            prepare=preparation(task.inputs),
            score=scoring.score if set(wanted) - set(agreement) else None,
            agree=scoring.agree if set(wanted) & set(agreement) else None,
            metrics=[metric for name in wanted for metric in metrics if metric.name == name],
        )

    def require_outputs(self, count: int) -> None:
        """Raise :class:`UsageError` where a model with so many outputs has not the one that the file names."""
        index = self._task.output.index
        if index >= count:
            message = f"there is no output {index}; the model has the outputs 0 to {count - 1}"
            raise wrong(self._file, ["output", "index"], message)


def task_in(file: Path) -> TaskFunction[...]:
    """The task of a file; raises :class:`UsageError` for one that cannot be used."""
    task = read_task_file(file)
    _require_fitting(task, file)
    return TaskFunction(StatedTask(task, file))


def _options(task: schema.TaskFile, folder: Path) -> Mapping[str, tuple[Any, Any]]:
    """Type and default of each option, by its name."""
    data, text = _DATA[type(task.inputs)]
    options: dict[str, tuple[Any, Any]] = {data: (Annotated[Path, text], folder / task.inputs.path)}
    if isinstance(task.truth, schema.Lines | schema.Files):
        options["truth"] = (Annotated[Path, "What is right for each example."], folder / task.truth.path)
    if isinstance(task.truth, schema.Lines | schema.Folders) and task.truth.labels:
        options["labels"] = (Annotated[Path, "Label file: line i names label i."], folder / task.truth.labels)
    options["num_examples"] = (Annotated[int, "Evaluate the first N examples; 0: all."], 0)
    return {**options, "order": (ExampleOrder, "native"), "seed": (Seed, 1)}


def _require_fitting(task: schema.TaskFile, file: Path) -> None:
    """Raise :class:`UsageError` for parts that cannot be together."""
    answer, inputs, truth = answer_of(task.output), type(task.inputs), type(task.truth)
    if task.truth is not None:
        of_output = [kind for kind, given in _GIVES.items() if answer.wanted in given]
        fitting = [kind for kind in of_output if inputs in _OF_INPUTS[kind]]
        if truth not in fitting:
            there_are = f"there fit {_told(fitting)}" if fitting else "leave the truth out"
            message = f"{_told([truth])} does not fit inputs of kind {_told([inputs])} and an output of kind "
            raise wrong(file, ["truth", "kind"], f"{message}{_told([type(task.output)])}; {there_are}")
    if isinstance(task.inputs, schema.Pictures):
        _require_steps(task.inputs.preprocess, file)
    known = metric_names(answer, task.truth is not None)
    for place, name in enumerate(task.metrics):
        if name in task.metrics[:place]:
            raise wrong(file, ["metrics", place], f"{name!r} is there twice; name each metric once")
        if name not in known:
            why = "needs a truth" if name in metric_names(answer, has_truth=True) else "is not a metric of this output"
            message = f"{name!r} {why}.{did_you_mean(name, known)} There are {', '.join(known)}"
            raise wrong(file, ["metrics", place], message)


def _require_steps(steps: schema.Preprocess, file: Path) -> None:
    keys = ["inputs", "preprocess"]
    if steps.crop is not None and steps.letterbox is not None:
        raise wrong(file, [*keys, "letterbox"], "a picture is cropped or put into a letterbox; give one of them")
    if steps.normalization != "auto":
        try:
            parse_normalization(steps.normalization)
        except UsageError as error:
            raise wrong(file, [*keys, "normalization"], str(error)) from None


def _told(kinds: list[type]) -> str:
    return ", ".join(str(kind.__struct_config__.tag) for kind in kinds)  # type: ignore[attr-defined]

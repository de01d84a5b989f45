"""What to do next about a configuration whose outputs differ, or may."""

from __future__ import annotations

import shlex
from typing import Final

from evaltools.report.tables.next_steps import SEARCH
from evaltools.result.evaluation import ConfigurationResult, EvaluationResult
from evaltools.tasks.inference_diff.options import GIVEN_TO_A_SEARCH, LOCATE

_ON_REAL_DATA: Final = (
    "imagenet, coco or a task of your own (evaltools run) say whether answers on real data change with it"
)
_OTHER_INPUTS: Final = (
    "inputs of the model's own kind may decide (--input_images=FOLDER, --input_files=...), and so may its accuracy: "
    "imagenet, coco or a task of your own (evaltools run)"
)


def next_steps(result: EvaluationResult, configuration: ConfigurationResult) -> list[str]:
    """Which operator makes the difference, unless the command looks for it itself; then what it means on real data."""
    verdict = configuration.verdict
    if verdict is None:
        return []
    words = [_name(word) for word in result.environment.command]
    search = [] if LOCATE in words or verdict.kind == "not judged" else [_search(result, configuration)]
    return [*search, _OTHER_INPUTS if verdict.kind == "not decided" else _ON_REAL_DATA]


def _search(result: EvaluationResult, configuration: ConfigurationResult) -> str:
    """The search with the inputs that the command states."""
    inputs = [word for word in result.environment.command if "=" in word and _name(word) in GIVEN_TO_A_SEARCH]
    command = f"{SEARCH}{shlex.join([result.model.file, *configuration.flags, *inputs])}"
    return f"{command} looks for the operator that makes the difference"


def _name(word: str) -> str:
    return word.removeprefix("--").partition("=")[0].replace("-", "_")

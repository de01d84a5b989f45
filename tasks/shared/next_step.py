"""The next question to ask where a verdict leaves one open."""

from __future__ import annotations

import shlex

from evaltools.result.evaluation import ConfigurationResult, EvaluationResult


def to_the_outputs(result: EvaluationResult, configuration: ConfigurationResult) -> str:
    """Of a configuration whose answers are worse, how far its outputs are apart; nothing where that is not decided."""
    if configuration.verdict is None or configuration.verdict.kind == "not decided":
        return ""
    flags = " ".join(flag.removeprefix("--") for flag in configuration.flags)
    command = ["evaltools", "diff", result.model.file, f"--config={configuration.name}: {flags}"]
    return f"{shlex.join(command)} says how far the outputs themselves are apart"


def to_the_answers(_result: EvaluationResult, configuration: ConfigurationResult) -> str:
    """Of a configuration whose outputs differ, or may: what they mean on real data."""
    if configuration.verdict is not None and configuration.verdict.kind == "not decided":
        return (
            "inputs of the model's own kind may decide (--input_images=FOLDER, --input_files=...), and so may its "
            "accuracy: imagenet, coco or a task of your own (evaltools run)"
        )
    return "imagenet, coco or a task of your own (evaltools run) say whether answers on real data change with it"

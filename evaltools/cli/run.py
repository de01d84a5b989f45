"""``evaltools run``: a task of your own, with the options that its function declares."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from evaltools.cli import configurations, execution_flags
from evaltools.cli.evaluation_flags import MARGIN, MAX_FAILED_EXAMPLES, OUTPUT_FILE_PATH
from evaltools.cli.exit_codes import EXIT_CODE_HELP
from evaltools.cli.flags import parse_flags
from evaltools.configuration import OWN_PARAMETERS
from evaltools.delegates import COMMON, DELEGATES
from evaltools.errors import UsageError
from evaltools.parameter import Parameter

if TYPE_CHECKING:
    from evaltools.cli.finished_shards import FinishedShards

MODEL: Final = Parameter("model_file", "string", "", "The .tflite model; may also stand behind the task.")
GROUPS: Final = {
    "evaluation": (
        MODEL,
        OUTPUT_FILE_PATH,
        MAX_FAILED_EXAMPLES,
        MARGIN,
        Parameter("record_examples", "bool", False, "Write the scores of every example to the JSON result."),
    ),
    "execution": execution_flags.PARAMETERS,
    "configurations": (*configurations.PARAMETERS, *OWN_PARAMETERS),
    **{f"delegate {delegate.name}": delegate.parameters for delegate in DELEGATES},
    "delegates, common": COMMON,
}
"""What every task has, whatever its own options."""
DESCRIPTION: Final = """\
A task of your own: evaltools run FILE.py:NAME MODEL.tflite --option=value ... (docs/own-tasks.md).
NAME is a function with @evaltools.task; its parameters are the options. An installed task needs its name alone."""


def run(arguments: list[str], shards: FinishedShards | None = None) -> int:
    """Run the command, or take the records from its finished ``shards``; returns the exit code."""
    named = [word for word in arguments[:2] if not word.startswith("-")]
    if not named:
        parse_flags("run FILE.py:NAME MODEL.tflite", DESCRIPTION, f"exit codes:\n{EXIT_CODE_HELP}", GROUPS, arguments)
        raise UsageError("which task? Write evaltools run FILE.py:NAME MODEL.tflite --option=value ...")
    from evaltools.tasks.own.faults import place_of
    from evaltools.tasks.own.loading import load_task
    from evaltools.tasks.own.options import options_of

    loaded = load_task(named[0])
    function = loaded.function
    options = options_of(function.function, place_of(function.function))
    _require_free_names([option.parameter.name for option in options], place_of(function.function))
    flags = parse_flags(
        f"run {named[0]} MODEL.tflite",
        function.summary or DESCRIPTION,
        f"exit codes:\n{EXIT_CODE_HELP}",
        {f"options of {function.name}": tuple(option.parameter for option in options), **GROUPS},
        [*(f"--model_file={word}" for word in named[1:]), *arguments[len(named) :]],
    )
    if not flags.text("model_file"):
        raise UsageError(f"missing: the model. Write evaltools run {named[0]} MODEL.tflite ...")
    from evaltools.cli.own_run import evaluate_own

    return evaluate_own(loaded, options, flags, ["evaltools", "run", *arguments], shards)


def _require_free_names(names: list[str], place: str) -> None:
    taken = {parameter.name for group in GROUPS.values() for parameter in group}
    for name in names:
        if name in taken:
            raise UsageError(f"{place}: every task has an option --{name} already; give the parameter another name")

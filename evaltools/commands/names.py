"""The names of commands: every task is one, any other is a function in ``evaltools.cli`` plus one line here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from evaltools.known_tasks import built_in_task, built_in_tasks, task_names


class Listed(NamedTuple):
    """A command as ``--help`` lists it: its function in ``evaltools.cli``, MODULE:FUNCTION, and its summary."""

    target: str
    summary: str


SAME_JOB: Final = "Does it do the same job as the CPU?"
"""The question that tasks answer."""
QUESTIONS: Final[Mapping[str, Mapping[str, Listed]]] = {
    SAME_JOB: {
        "run": Listed("evaluate:run_own_task", "A task of your own: run FILE.py:NAME MODEL.tflite --option=value ..."),
    },
    "How fast is it?": {
        "benchmark": Listed(
            "benchmark:run", "Load, first run, steady state, memory, operators; many options in one run"
        ),
    },
    "Which operator makes the difference, and why?": {
        "locate": Listed("locate:run", "Cause, proof, smallest model that shows it"),
    },
    "What is in this model, and what works here?": {
        "inspect": Listed("inspect:run", "What kind of model is this, which delegates fit, what do they take of it"),
        "doctor": Listed("doctor:run", "Which runtimes, delegates and tools work here, and what to do for the others"),
        "delegates": Listed("delegates:run", "The delegates, their flags, and where each one runs"),
        "demo": Listed("demo:run", "The sample pictures and models that come with evaltools"),
        "skill": Listed("skill:run", "How a coding agent uses evaltools: SKILL.md, printed"),
    },
    "Is it good enough?": {
        "gate": Listed("judge.gate:run", "Are the limits in gates.toml kept? For CI: JUnit, Markdown, exit code"),
        "power": Listed("judge.power:run", "How many pictures do I need to see a drop of accuracy"),
    },
    "What of many models, and of phones?": {
        "suite": Listed(
            "suite.command:run", "Many models in many configurations: one table, one report, what changed since"
        ),
        "device": Listed("device:run", "Phones and boards over adb: what they are; any task there"),
    },
    "What of a run that was begun, and of its results?": {
        "resume": Listed("runs.folders:resume", "Go on with an interrupted run, from the journal of its --run_dir"),
        "merge": Listed("runs.folders:merge", "One result from the shards of a run"),
        "capture": Listed("runs.capture:run", "What a run that goes on does now: a trace of its work and processes"),
        "report": Listed("report:run", "One page about results, to be forwarded: HTML without network, or Markdown"),
        "convert": Listed("convert:run", "Ground truth from COCO, YOLO or ILSVRC files; results from logs of iOS"),
    },
}
"""The commands that are not tasks, by the question that they answer."""
COMMANDS: Final = {name: command for commands in QUESTIONS.values() for name, command in commands.items()}


def task_of(command: str) -> str | None:
    """The task that a command evaluates, None for another command.

    >>> task_of("diff"), task_of("doctor")
    ('inference_diff', None)
    """
    if command in COMMANDS:
        return None
    name = command.replace("-", "_")
    if "_" not in command and built_in_task(name) is not None:
        return name
    named = (task for task in task_names() if task.replace("_", "-") == command)
    return next(named, None) or task_aliases().get(command)


def task_aliases() -> dict[str, str]:
    """The tasks that have a shorter command, by that command; only tasks of evaltools itself may have one."""
    return {task.alias: name for name, task in built_in_tasks().items() if task.alias}


def command_names() -> list[str]:
    """All commands, tasks first."""
    return [*(name.replace("_", "-") for name in task_names()), *task_aliases(), *COMMANDS]

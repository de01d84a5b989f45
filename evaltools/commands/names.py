"""The names of commands: every task is one, any other is a function in ``evaltools.cli`` plus one line here."""

from __future__ import annotations

from typing import Final, NamedTuple

from evaltools.task_kind import kind_names, tree_kinds


class Command(NamedTuple):
    """The function of a command in ``evaltools.cli``, MODULE:FUNCTION, and its summary."""

    target: str
    summary: str


COMMANDS: Final = {
    "benchmark": Command(
        "benchmark:run", "How fast: load, first run, steady state, memory, operators; many options in one run"
    ),
    "locate": Command("locate:run", "Which operator makes the difference, and why: cause, proof, smallest model"),
    "suite": Command(
        "suite.command:run", "Many models in many configurations: one table, one report, what changed since"
    ),
    "run": Command(
        "evaluate:run_own_task", "A task of your own: run FILE.py:NAME|FILE.yaml MODEL.tflite --option=value ..."
    ),
    "resume": Command("runs.folders:resume", "Go on with an interrupted run, from the journal of its --run_dir"),
    "merge": Command("runs.folders:merge", "One result from the shards of a run"),
    "capture": Command("runs.capture:run", "What a run that goes on does now: a trace of its work and its processes"),
    "gate": Command("judge.gate:run", "Are the limits in gates.toml kept? For CI: JUnit, Markdown, exit code"),
    "report": Command("report:run", "One page about results, to be forwarded: HTML without network, or Markdown"),
    "inspect": Command("inspect:run", "What kind of model is this, which delegates fit, what do they take of it"),
    "convert": Command("convert:run", "Ground truth from COCO, YOLO, VOC or ILSVRC files; results from logs of iOS"),
    "power": Command("judge.power:run", "How many pictures do I need to see a drop of accuracy"),
    "doctor": Command("doctor:run", "Which runtimes, delegates and tools work here, and what to do for the others"),
    "device": Command("device.command:run", "Phones and boards over adb: what they are; any task there"),
    "delegates": Command("delegates:run", "The delegates, their flags, and where each one runs"),
    "demo": Command("demo:run", "The sample pictures and models that come with evaltools"),
}


def task_of(command: str) -> str | None:
    """The task that a command evaluates, None for another command.

    >>> task_of("diff"), task_of("doctor")
    ('inference_diff', None)
    """
    if command in COMMANDS:
        return None
    named = (task for task in kind_names() if task.replace("_", "-") == command)
    return next(named, None) or task_aliases().get(command)


def task_aliases() -> dict[str, str]:
    """The tasks that have a shorter command, by that command; only tasks of evaltools itself may have one."""
    return {kind.alias: name for name, kind in tree_kinds().items() if kind.alias}


def command_names() -> list[str]:
    """All commands, tasks first."""
    return [*(name.replace("_", "-") for name in kind_names()), *task_aliases(), *COMMANDS]

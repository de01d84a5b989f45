"""``evaltools TASK`` and ``evaltools run``: flags become a request, which is carried out; whatever the task."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from evaltools.cli.shared.decided import decided_beside, import_beside
from evaltools.cli.shared.streams import complain
from evaltools.commands.evaluation import command_of, flags_of_words, request_of_task
from evaltools.errors import UsageError
from evaltools.known_tasks import task_command
from evaltools.request import Request
from evaltools.request.flags import GivenFlags
from evaltools.tasks.framework.common_options import MODEL_FILE

_USAGE_OF_RUN: Final = """\
usage: evaltools run FILE.py:NAME MODEL.tflite --option=value ...

A task of your own. NAME is a function with @evaltools.task in FILE.py; its parameters are the options. An installed
task needs only its name. evaltools run FILE.py:NAME --help lists all options."""


def run_own_task(arguments: list[str]) -> int:
    """Run ``evaltools run TASK``, with the options that the task declares; returns the exit code."""
    if arguments[:1] in (["--help"], ["--help=all"], ["-h"]):
        print(_USAGE_OF_RUN)
        return 0
    if not arguments or arguments[0].startswith("-"):
        raise UsageError("which task? Write evaltools run FILE.py:NAME MODEL.tflite --option=value ...")
    return run_task(arguments[0], arguments[1:])


def run_task(task: str, arguments: Sequence[str]) -> int:
    """Run the command of a task; returns the exit code."""
    asked = task_command(task)
    flags = flags_of_words(asked, arguments)
    command = command_of(asked, arguments)
    if len(flags.texts(MODEL_FILE.name)) > 1:
        from evaltools.cli.evaluated import evaluate_and_print_each
        from evaltools.commands.evaluation import compared_with_first, options_of_models

        of_models = options_of_models(flags, flags.texts(MODEL_FILE.name))
        requests = {name: request_of_task(asked, own, command) for name, own in of_models.items()}
        for name, one in requests.items():
            _say_what_was_found(of_models[name], one)
        decided_of = {}
        for name, one in requests.items():
            with decided_beside(of_models[name], one) as decided:
                decided_of[name] = decided()
        compared = compared_with_first({name: each.request for name, each in decided_of.items()})
        decided_of = {name: each._replace(request=compared[name]) for name, each in decided_of.items()}
        return evaluate_and_print_each(decided_of, flags.options(leave_out=(MODEL_FILE.name,)))
    request = request_of_task(asked, flags, command)
    _say_what_was_found(flags, request)
    from evaltools.runtime.process.server import start_server

    start_server()
    from evaltools.runtime.process.ahead import OpenedAhead

    with OpenedAhead() as ahead:
        with decided_beside(flags, request, ahead) as decided:
            from evaltools.cli.evaluated import evaluate_and_print

            import_beside()
            request, missing = decided()
        return evaluate_and_print(request, missing=missing, ahead=ahead).exit_code


def _say_what_was_found(flags: GivenFlags, request: Request) -> None:
    """Files that are read though no flag names them."""
    options = request.options
    found = [
        name
        for name in options.stated
        if name not in flags
        and options.parameters[name].role == "input_file"
        and options.text(name) != options.parameters[name].default
    ]
    for name in found if not options.is_on("quiet") else ():
        complain(f"found with the model: --{name}={options.text(name)}")

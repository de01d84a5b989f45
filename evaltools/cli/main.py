"""The command ``evaltools``.

Modules are imported when their command runs, so that ``evaltools --help`` needs neither NumPy nor a runtime.
"""

from __future__ import annotations

import errno
import faulthandler
import gc
import importlib
import io
import os
import shlex
import sys
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

from evaltools.cli.shared.streams import complain, discard, say_wrapped
from evaltools.commands.names import COMMANDS, QUESTIONS, SAME_JOB, command_names, task_aliases, task_of
from evaltools.errors import DEBUG, EvaltoolsError, UsageError
from evaltools.exit_codes import FAULT, INTERRUPTED, NOT_MEASURED, NOT_WRITTEN, OK, USAGE
from evaltools.extensions import package_version
from evaltools.known_tasks import task_command, task_names
from evaltools.parameter import BOOLEANS, did_you_mean
from evaltools.signals import heed_interrupts, interrupts_restored

_DEBUG: Final = "--debug"
_SWITCHES: Final = ("--help", "--version", _DEBUG)
_OBJECTS_PER_COLLECTION: Final = 100_000
"""Imports make many objects and hardly any garbage: to look for it after 10 000 takes a tenth of a short run's
time."""
_THREADS_OF_NUMPY: Final = ("OPENBLAS_NUM_THREADS", "GOTO_NUM_THREADS", "OMP_NUM_THREADS")
"""The variables by which the user may say how many the libraries of NumPy and SciPy start, each of them. Without one it
is as many as there are processors, which takes a fifth of a short run's processor time."""
_QUESTION: Final = "Does a delegate do the same job as the CPU, how fast, and can you prove it?"
_ENDING: Final = ".tflite"
_MODEL: Final = "MODEL.tflite"
_FIRST: Final = {
    "inspect": "what is in it, and which delegates take how much of it",
    "diff": "do its outputs differ with what works on this machine",
    "benchmark": "how fast it is with each of these",
}
"""The commands that most people want first; they need only a model."""
_WHERE_MORE_IS: Final = (
    "evaltools --help lists all commands, with accuracy on your data; evaltools demo has data to try."
)
_WITH_A_FOLDER: Final = "with --run_dir, evaltools resume goes on"
_INTERRUPTED: Final = {
    "benchmark": " before anything was measured",
    "capture": "; nothing was captured, and the run goes on",
    "convert": ", so files may be missing; the same command again completes them",
    "device": " before the devices had answered",
    "inspect": " before everything was found; --run=false leaves out what takes long",
    "locate": f" before there was an answer; {_WITH_A_FOLDER}",
}
"""What is said of a command that Ctrl-C ended before it could say something itself."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code. Where native code crashes, stderr names the line that called it."""
    if not faulthandler.is_enabled() and sys.__stderr__ is not None:
        with suppress(OSError, ValueError):  # a stderr without a file
            faulthandler.enable(sys.__stderr__)
    set_up_process()
    _open_standard_descriptors()
    arguments = _with_plain_switches(sys.argv[1:] if argv is None else argv)
    if _DEBUG in arguments:
        arguments.remove(_DEBUG)
        os.environ[DEBUG] = "1"
    return exit_code_of(lambda: _dispatch(arguments), _interrupted(arguments))


def set_up_process() -> None:
    """What every process does first that carries a command or a request out."""
    gc.set_threshold(_OBJECTS_PER_COLLECTION)
    if not any(name in os.environ for name in _THREADS_OF_NUMPY):
        os.environ[_THREADS_OF_NUMPY[0]] = "1"


def _with_plain_switches(words: Sequence[str]) -> list[str]:
    """The words with the switches of every command as they are without a value; one that is off is left out.

    >>> _with_plain_switches(["gate", "--debug=0", "--help=true"])
    ['gate', '--help']
    """
    found = []
    for word in words:
        name, _, text = word.partition("=")
        is_on = BOOLEANS.get(text) if name in _SWITCHES else None
        if is_on is not False:
            found.append(name if is_on else word)
    return found


def _open_standard_descriptors() -> None:
    """Open those that the shell has closed on nothing, so that no pipe and no file of ours gets their numbers."""
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)


def exit_code_of(act: Callable[[], int], when_interrupted: str) -> int:
    """Call ``act`` and return its exit code.

    Our errors are printed on stderr, and so is ``when_interrupted`` after a signal that ends it. Any other exception
    is our fault.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        with interrupts_restored():
            heed_interrupts()
            return act()
    except EvaltoolsError as error:
        if DEBUG in os.environ:
            traceback.print_exc()
        complain(f"evaltools: {error}")
        return error.exit_code
    except BrokenPipeError:  # nobody reads stdout any more, as in evaltools coco --help | head
        discard(sys.stdout)
        return NOT_WRITTEN
    except KeyboardInterrupt:
        complain(f"evaltools: {when_interrupted}")
        return INTERRUPTED
    except Exception as error:
        if DEBUG in os.environ:
            traceback.print_exc()
        if _is_lack_of_memory(error):
            complain(f"evaltools: there is too little memory ({error}); free some, or allow more (ulimit -v)")
            return NOT_MEASURED
        complain(
            f"evaltools: {' '.join(f'{type(error).__name__}: {error}'.split())}\n"
            "This is a fault of evaltools. The same command with --debug shows where; please report that"
        )
        return FAULT


def _is_lack_of_memory(error: Exception) -> bool:
    """Whether an error says that there is no memory; that of a library which cannot be loaded says so in words.

    >>> _is_lack_of_memory(ImportError("libx.so: failed to map segment from shared object"))
    True
    """
    text = str(error).lower()
    return (
        isinstance(error, MemoryError)
        or (isinstance(error, OSError) and error.errno == errno.ENOMEM)
        or (isinstance(error, ImportError) and ("failed to map segment" in text or "cannot allocate memory" in text))
    )


def _interrupted(arguments: Sequence[str]) -> str:
    if arguments[:2] == ["device", "run"]:
        stated = [word.partition("=")[2] for word in arguments if word.startswith("--run_dir=")]
        goes_on = f"evaltools resume {shlex.quote(stated[-1])} goes on" if stated else _WITH_A_FOLDER
        return f"interrupted, and ended on the devices, unless a line above says otherwise; {goes_on}"
    command = arguments[0] if arguments else ""
    return f"interrupted{_INTERRUPTED.get(command, f' before there was a result; {_WITH_A_FOLDER}')}"


def _dispatch(arguments: list[str]) -> int:
    if not arguments:
        return _printed(f"{_QUESTION}\n{_first_commands(_MODEL)}\n{_WHERE_MORE_IS}") or USAGE
    if arguments[0] in ("-h", "--help", "--help=all", "help"):
        return _printed(_help_text())
    if arguments[0] == "--version":
        return _printed(_version())
    try:
        os.getcwd()
    except OSError:
        raise UsageError("the current folder is not there any more; change to one that is") from None
    name, rest = arguments[0], arguments[1:]
    task = task_of(name)
    if task is not None:
        from evaltools.cli.evaluate import run_task

        return run_task(task, rest)
    if name not in COMMANDS:
        raise UsageError(_no_command(name))
    module, _, function = COMMANDS[name].target.partition(":")
    run: Callable[[list[str]], int] = getattr(importlib.import_module(f"evaltools.cli.{module}"), function)
    return run(rest)


def _no_command(name: str) -> str:
    """What is said of a word that is not a command; what was meant stands at the end, where it is seen."""
    if name.endswith(_ENDING):
        return f"{name} is a model, and the command comes before it:\n{_first_commands(name)}"
    from evaltools.gone import COMMANDS_GONE

    instead = COMMANDS_GONE.get(name)
    hint = f" It is gone: {instead}" if instead else did_you_mean(name, command_names())
    return f"{name!r} is not a command; evaltools --help lists all.{hint}"


def _first_commands(model: str) -> str:
    """The commands that most people want first, for a model."""
    commands = [f"evaltools {name} {shlex.quote(model)}" for name in _FIRST]
    width = max(map(len, commands))
    return "\n".join(f"  {command:<{width}}  {text}" for command, text in zip(commands, _FIRST.values(), strict=True))


def _printed(text: str) -> int:
    return OK if say_wrapped(text) else NOT_WRITTEN


def _help_text() -> str:
    shown = {question: {name: each.summary for name, each in of.items()} for question, of in QUESTIONS.items()}
    shown[SAME_JOB] = dict(map(_summary, task_names())) | shown[SAME_JOB]
    width = max(len(name) for commands in shown.values() for name in commands)
    groups = [
        "\n".join([question, *(f"  {name:<{width}}  {summary}" for name, summary in commands.items())])
        for question, commands in shown.items()
    ]
    return (
        f"usage: evaltools COMMAND --flag=value ...\n{_QUESTION}\n\n"
        + "\n".join(groups)
        + "\n\nevaltools COMMAND --help lists the flags of a command that most people need, --help=all every one.\n"
        "exit codes: 0 measured, 1 a broken limit, 2 wrong input, 3 not measured, 4 failed examples; --help=all: all\n"
        "evaltools --version prints the version; --debug shows where an error comes from."
    )


def _summary(task: str) -> tuple[str, str]:
    """The shortest command of a task and its summary; an installed task may be broken, or have a name that is taken."""
    if task in COMMANDS or task in task_aliases():
        return f"run {task}", f"cannot be used: {task} is a command of evaltools; its package must give another name"
    try:
        command = task_command(task)
    except EvaltoolsError as error:
        return task, f"cannot be used: {error}"
    return command.alias or command.words, command.summary.rstrip(".")


def _version() -> str:
    return f"evaltools {package_version('evaltools')}"


if __name__ == "__main__":
    sys.exit(main())

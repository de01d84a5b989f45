"""Every error that evaltools raises on purpose.

::

    EvaltoolsError
    ├── UsageError                what the user typed or pointed at is wrong           exit code 2
    │   ├── ModelError            the model file is missing, damaged or does not fit the task
    │   └── DataError             images, labels or lists are missing or do not fit each other
    ├── LimitNotKept              a limit is not kept, or nothing shows that it is     exit code 1
    ├── OutputError               a result cannot be written                           exit code 5
    ├── ConfigurationUnavailable  this machine cannot run a configuration              recorded, exit code 3
    │   └── DelegateTookNothing   a delegate was applied and took no node
    ├── MachineLost               the device that runs a model is away               exit code 3
    ├── ImageError                one picture cannot be read                           recorded, exit code 4
    ├── TaskError                 a task's own code failed on one example              recorded, exit code 4
    └── InferenceError            one inference failed                                 recorded, exit code 4
        ├── SessionEnded          its process died or hung; it may be started again
        └── ProgramEnded          the program that was started for it alone died or hung

A message says what was wrong, what was got, what would be right, and the next step.
"""

from __future__ import annotations

from typing import Final

DEBUG: Final = "EVALTOOLS_DEBUG"
"""The environment variable that has tracebacks printed, also by processes that are started; ``--debug`` sets it."""


class EvaltoolsError(Exception):
    """Base of all errors raised on purpose; ``str(error)`` is fit for a user."""

    exit_code = 2


class UsageError(EvaltoolsError):
    """A flag, a file or a list given by the user is wrong; nothing was measured."""


class ModelError(UsageError):
    """The model file is missing, damaged, foreign, or does not fit the task."""


class DataError(UsageError):
    """Images, labels or lists are missing or do not fit each other."""


class LimitNotKept(EvaltoolsError):
    """A limit that was set is not kept, or nothing shows that it is."""

    exit_code = 1


class OutputError(EvaltoolsError):
    """A result was measured but cannot be written."""

    exit_code = 5


class ConfigurationUnavailable(EvaltoolsError):
    """A configuration cannot run here: its runtime, or the delegate named ``delegate``, cannot be created.

    ``cannot_exist``: no Python runtime has the delegate, or the runtime's package is not installed. ``crashed``: the
    process that was to run it crashed, or ``hung`` and was ended.
    """

    exit_code = 3

    def __init__(
        self,
        message: str,
        delegate: str = "",
        cannot_exist: bool = False,
        crashed: bool = False,
        hung: bool = False,
    ) -> None:
        super().__init__(message)
        self.delegate = delegate
        self.cannot_exist = cannot_exist
        self.crashed = crashed
        self.hung = hung


class DelegateTookNothing(ConfigurationUnavailable):
    """A delegate was created and applied, but not one node of the model runs on it."""


class MachineAway(ConfigurationUnavailable):
    """The device that a configuration is to run on went away or is full, which says nothing of the configuration."""


class MachineLost(EvaltoolsError):
    """The device that runs a model went away, is full, or is used by others; what is done is not lost."""

    exit_code = 3


class ImageError(EvaltoolsError):
    """One picture cannot be turned into an input; the evaluation goes on without it."""

    exit_code = 4


class TaskError(EvaltoolsError):
    """The code of a task of your own failed on one example; the evaluation goes on with the next."""

    exit_code = 4


class InferenceError(EvaltoolsError):
    """One inference failed; the evaluation goes on with the next example."""

    exit_code = 4


class SessionEnded(InferenceError):
    """The process of a session died, or ``hung`` and was ended, during an inference; nothing more can be run on it."""

    def __init__(self, message: str, hung: bool = False) -> None:
        super().__init__(message)
        self.hung = hung


class ProgramEnded(InferenceError):
    """The program that was started for one inference died or hung; the next inference starts another one."""

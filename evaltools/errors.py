"""Every error that evaltools raises on purpose.

::

    EvaltoolsError
    ├── UsageError                what the user typed or pointed at is wrong         exit code 2
    │   ├── ModelError            the model file is missing, damaged or does not fit the task
    │   └── DataError             images, labels or lists are missing or do not fit each other
    ├── ConfigurationUnavailable  this machine cannot run a configuration            exit code 3
    │   └── DelegateTookNothing   a delegate was applied and took no node
    ├── ImageError                one picture cannot be read                         exit code 4, recorded
    └── InferenceError            one inference failed                               exit code 4, recorded

A message says what was wrong, what was got, what would be right, and the next step.
"""


class EvaltoolsError(Exception):
    """Base of all errors raised on purpose; ``str(error)`` is fit for a user."""


class UsageError(EvaltoolsError):
    """A flag, a file or a list given by the user is wrong; nothing was measured."""


class ModelError(UsageError):
    """The model file is missing, damaged, foreign, or does not fit the task."""


class DataError(UsageError):
    """Images, labels or lists are missing or do not fit each other."""


class ConfigurationUnavailable(EvaltoolsError):
    """A configuration cannot run here: its runtime or a delegate cannot be created."""


class DelegateTookNothing(ConfigurationUnavailable):
    """A delegate was created and applied, but not one node of the model runs on it."""


class ImageError(EvaltoolsError):
    """One picture cannot be turned into an input; the evaluation goes on without it."""


class InferenceError(EvaltoolsError):
    """One inference failed; the evaluation goes on with the next example."""

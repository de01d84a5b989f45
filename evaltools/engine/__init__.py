"""One pass over the examples, N configurations, one record per example and configuration."""

from evaltools.engine.opening import NotMeasured, Opened, close_all, open_configuration
from evaltools.engine.run import Outcome, run_pass
from evaltools.engine.task import Example, Failure, Record, Task

__all__ = [
    "Example",
    "Failure",
    "NotMeasured",
    "Opened",
    "Outcome",
    "Record",
    "Task",
    "close_all",
    "open_configuration",
    "run_pass",
]

"""One pass over the examples, N configurations, one record per example and configuration."""

from evaltools.engine.opening import NotMeasured, Open, Opened, open_all, open_configuration
from evaltools.engine.run import Outcome, Stop, run_pass
from evaltools.engine.task import Example, Failure, Prepared, Record, Task

__all__ = [
    "Example",
    "Failure",
    "NotMeasured",
    "Open",
    "Opened",
    "Outcome",
    "Prepared",
    "Record",
    "Stop",
    "Task",
    "open_all",
    "open_configuration",
    "run_pass",
]

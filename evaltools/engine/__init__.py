"""One pass over the examples, N configurations, one record per example and configuration."""

from evaltools.engine.execution import Execution, Shard, available_cores, sessions_of_workers, worker_count
from evaltools.engine.journal import Finished, Journal
from evaltools.engine.ledger import GivenUp, Stop, Tally
from evaltools.engine.opening import NotMeasured, Opened, open_all, open_configuration
from evaltools.engine.quiet import QuietTime, QuietTimes, examples_for_latency, measure_in_quiet, pooled
from evaltools.engine.run import PassOptions, PassOutcome, run_pass
from evaltools.engine.run_folder import run_journal
from evaltools.engine.stages import StageTimes
from evaltools.engine.task import Example, Failure, PortableTask, Prepared, Record, Task

__all__ = [
    "Example",
    "Execution",
    "Failure",
    "Finished",
    "GivenUp",
    "Journal",
    "NotMeasured",
    "Opened",
    "PassOptions",
    "PassOutcome",
    "PortableTask",
    "Prepared",
    "QuietTime",
    "QuietTimes",
    "Record",
    "Shard",
    "StageTimes",
    "Stop",
    "Tally",
    "Task",
    "available_cores",
    "examples_for_latency",
    "measure_in_quiet",
    "open_all",
    "open_configuration",
    "pooled",
    "run_journal",
    "run_pass",
    "sessions_of_workers",
    "worker_count",
]

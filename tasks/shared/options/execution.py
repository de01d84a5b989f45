"""Flags about how an evaluation is carried out: workers, safety, run folder, shards, latency, progress."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from evaltools.errors import UsageError
from evaltools.parameter import Parameter
from evaltools.request import Options

if TYPE_CHECKING:
    from evaltools.engine import Execution, Shard

_WORKERS: Final = "Examples at a time, each with sessions of its own: a number, or auto: one per core."
_SHARED: Final = (
    Parameter(
        "example_timeout", "float", 300.0, "Seconds after which an example, or loading the model, counts as hanging."
    ),
    Parameter(
        "max_crashes",
        "int32",
        3,
        "Give a configuration up after so many examples in a row at which its process died or hung.",
    ),
    Parameter(
        "run_dir",
        "string",
        "",
        "Folder for the journal of this run: the same command, or evaltools resume, goes on where it ended.",
    ),
    Parameter("shard_index", "int32", 0, "Evaluate part i (from 0) of --shard_count; evaltools merge joins them."),
    Parameter("shard_count", "int32", 1, "Number of parts, one per host."),
    Parameter(
        "executor",
        "string",
        "local",
        "Where the work is done: local, or ray: as shards on a Ray cluster (pip install 'evaltools[ray]').",
        choices=("local", "ray"),
    ),
    Parameter("ray_address", "string", "", "Address of the Ray cluster; without it, Ray is started here."),
    Parameter("ray_tasks", "int32", 0, "Number of shards on the cluster; 0: one per CPU."),
    Parameter(
        "latency_examples",
        "int32",
        -1,
        "Examples of the quiet latency phase; -1: a tenth, 10 to 100, and none with one worker, whose pass is quiet.",
    ),
    Parameter(
        "progress",
        "string",
        "auto",
        "Progress on stderr: auto (a bar on a terminal, else lines), lines, json (one object per line), none.",
        choices=("auto", "lines", "json", "none"),
    ),
    Parameter("trace", "string", "", "Write where the time went, for ui.perfetto.dev or chrome://tracing (JSON)."),
)
PARAMETERS: Final = (Parameter("workers", "string", "auto", _WORKERS), *_SHARED)
PARAMETERS_WITH_ONE_WORKER: Final = (Parameter("workers", "string", "1", _WORKERS), *_SHARED)
"""For a task whose latency is of all of its examples."""
MAY_DIFFER_ON_RESUME: Final = frozenset(
    {
        "workers",
        "example_timeout",
        "run_dir",
        "shard_index",
        "shard_count",
        "latency_examples",
        "progress",
        "trace",
        "output_file_path",
        "detections_path",
        "disagreements_path",
        "record_examples",
        "debug_mode",
        "margin",
        "bootstrap_resamples",
        "executor",
        "ray_address",
        "ray_tasks",
    }
)
_NAMED_BY_CONTENT: Final = frozenset(
    {
        "model_file",
        "ground_truth_images_path",
        "ground_truth_labels",
        "ground_truth_annotations",
        "ground_truth_proto",
        "model_output_labels",
        "denylist_file_path",
        "reference_model_file",
        "input_images",
        "load_reference",
        "configs",
    }
)
"""Files and folders: what is in them must not change, where they lie may."""
_FOR_RAY: Final = ("ray_address", "ray_tasks")
_NOT_FOR_RAY: Final = ("workers", "latency_examples", "shard_index", "shard_count", "trace")
_MOST_WORKERS: Final = 1024


def read_execution(flags: Options) -> Execution:
    """The execution that flags ask for; raises :class:`UsageError` for values that make no sense."""
    from evaltools.engine import Execution

    _refuse_flags_without_effect(flags)
    timeout = flags.real("example_timeout")
    if timeout <= 0:
        raise UsageError(f"--example_timeout={timeout:g}: use a number of seconds above 0")
    crashes = flags.number("max_crashes")
    if crashes < 1:
        raise UsageError(f"--max_crashes={crashes}: use 1 or more")
    latency_examples = flags.number("latency_examples")
    if latency_examples < -1 or latency_examples == 0:
        raise UsageError(f"--latency_examples={latency_examples}: use 1 or more examples, or -1 for the default")
    return Execution(
        workers=_workers(flags),
        example_timeout_s=timeout,
        max_crashes=crashes,
        run_dir=flags.path("run_dir"),
        shard=_shard(flags),
        latency_examples=None if latency_examples == -1 else latency_examples,
        trace=flags.path("trace"),
    )


def flags_to_repeat(flags: Options) -> dict[str, str]:
    """The flags that a resumed run, and each shard of one run, must have in common."""
    found: dict[str, str] = {}
    for name, text in flags.given:
        if name not in MAY_DIFFER_ON_RESUME | _NAMED_BY_CONTENT:
            found[f"--{name}"] = f"{found[f'--{name}']}, {text}" if f"--{name}" in found else text
    return found


def _refuse_flags_without_effect(flags: Options) -> None:
    on_ray = flags.text("executor") == "ray"
    for name in _NOT_FOR_RAY if on_ray else _FOR_RAY:
        if name in flags:
            why = "which has one worker per shard and makes the shards itself" if on_ray else "which makes no shards"
            raise UsageError(
                f"--{name} has no effect with --executor={flags.text('executor')}, {why}; leave one of them out"
            )


def _workers(flags: Options) -> int | None:
    text = flags.text("workers")
    if text == "auto":
        return None
    if not text.isdecimal() or not 1 <= int(text) <= _MOST_WORKERS:
        raise UsageError(f"--workers={text}: use a number from 1 to {_MOST_WORKERS}, or auto: one per core")
    return int(text)


def _shard(flags: Options) -> Shard:
    from evaltools.engine import Shard

    index, count = flags.number("shard_index"), flags.number("shard_count")
    if count < 1 or not 0 <= index < count:
        raise UsageError(f"--shard_index={index} --shard_count={count}: use an index from 0 to one less than the count")
    if count > 1 and flags.path("run_dir") is None:
        raise UsageError("a shard is of use only with a journal to merge; add --run_dir=FOLDER")
    return Shard(index, count)

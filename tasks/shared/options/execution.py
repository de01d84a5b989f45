"""Flags about how an evaluation is carried out: workers, safety, run folder, shards, latency, progress."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from evaltools.errors import UsageError
from evaltools.parameter import NotNative, Parameter, format_value
from evaltools.request import Options

if TYPE_CHECKING:
    from evaltools.engine.execution import Execution, Shard

_EXECUTOR: Final = "the devices are the executor"
_PARTS: Final = "the parts are made here; see --parts"
_SILENT: Final = "nothing is printed anyway"
_SHARED: Final = (
    Parameter(
        "example_timeout",
        "Seconds after which an example, or loading the model, counts as hanging.",
        default=300.0,
        about="execution",
        not_native=NotNative("a native run is bounded as a whole, by --part_timeout"),
    ),
    Parameter(
        "max_crashes",
        "Give a configuration up after so many examples in a row at which its process died or hung.",
        default=3,
        not_native=NotNative("a native tool that dies ends its run"),
    ),
    Parameter(
        "run_dir",
        "Folder for the journal of this run: the same command, or evaltools resume, goes on where it ended.",
        role="output_folder",
        about="run",
        not_native=NotNative("a native tool keeps no journal to go on from"),
    ),
    Parameter(
        "shard_index",
        "Evaluate part i (from 0) of --shard_count; evaltools merge joins them.",
        default=0,
        about="run",
        only_with=("executor=local",),
        refused_on_devices=_PARTS,
    ),
    Parameter(
        "shard_count",
        "Number of parts, one per host.",
        default=1,
        about="run",
        only_with=("executor=local",),
        refused_on_devices=_PARTS,
    ),
    Parameter(
        "executor",
        "Where the work is done: local, or ray: as shards on a Ray cluster (pip install 'evaltools[ray]').",
        default="local",
        choices=("local", "ray"),
        about="run",
        refused_on_devices=_EXECUTOR,
    ),
    Parameter(
        "ray_address",
        "Address of the Ray cluster; without it, Ray is started here.",
        about="execution",
        only_with=("executor=ray",),
        refused_on_devices=_EXECUTOR,
    ),
    Parameter(
        "ray_tasks",
        "Number of shards on the cluster; 0: one per CPU.",
        default=0,
        about="execution",
        only_with=("executor=ray",),
        refused_on_devices=_EXECUTOR,
    ),
    Parameter(
        "latency_examples",
        "Examples of the quiet latency phase; -1: a tenth, 10 to 100 (with two workers 40 where these say enough), and "
        "none with one worker, whose pass is quiet.",
        default=-1,
        about="execution",
        only_with=("executor=local",),
        not_native=NotNative("the native tool times every example"),
    ),
    Parameter(
        "output_format",
        "Format of the result file, whatever its name ends in; without it, the ending says which.",
        choices=("", "json", "html", "md", "csv", "pb"),
        about="result",
        only_with=("output_file_path",),
    ),
    Parameter(
        "progress",
        "Progress on stderr: auto (a bar on a terminal, else lines), lines, json (one object per line), none.",
        default="auto",
        choices=("auto", "lines", "json", "none"),
        about="result",
    ),
    Parameter(
        "plot",
        "PNG or SVG file: accuracy against latency and size, else latencies; of several models together.",
        role="output_file",
        about="result",
    ),
    Parameter(
        "report",
        "One page to forward: FILE.html, or FILE.md for its first screen; of several models together.",
        role="output_file",
        about="result",
        in_python="call .report(path) of the result",
    ),
    Parameter(
        "quiet", "Show the answer alone, no tables and no progress.", default=False, about="result", in_python=_SILENT
    ),
    Parameter("verbose", "Show all that is known of the run.", default=False, about="result", in_python=_SILENT),
    Parameter(
        "trace",
        "Write where the time went, for ui.perfetto.dev or chrome://tracing (JSON).",
        role="output_file",
        about="execution",
        only_with=("executor=local",),
        refused_on_devices="it is of one process on one machine",
    ),
)
_WORKERS: Final = Parameter(
    "workers",
    "Examples at a time, each with sessions of its own: a number, or auto: one per core.",
    default="auto",
    about="execution",
    only_with=("executor=local",),
    not_native=NotNative("a native tool has one worker", ("1", "auto")),
)
PARAMETERS: Final = (_WORKERS, *_SHARED)
PARAMETERS_WITH_ONE_WORKER: Final = (replace(_WORKERS, default="1"), *_SHARED)
"""For a task whose latency is of all of its examples."""
_MOST_WORKERS: Final = 1024


def read_execution(flags: Options) -> Execution:
    """The execution that flags ask for; raises :class:`UsageError` for values that make no sense."""
    from evaltools.engine.execution import Execution

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
        shard=read_shard(flags),
        latency_examples=None if latency_examples == -1 else latency_examples,
        trace=flags.path("trace"),
    )


def flags_to_repeat(options: Options) -> dict[str, str]:
    """The options that a resumed run, and each shard of one run, must have in common, as canonical texts.

    Files are known by what is in them, and a default that is stated is as good as none.
    """
    found: dict[str, str] = {}
    for name, value in sorted(options.stated.items()):
        parameter = options.parameters[name]
        if not parameter.must_agree or parameter.is_content:
            continue
        if isinstance(value, tuple):
            texts = map(_without_folder, value) if parameter.role == "named_files" else value
            found[f"--{name}"] = ", ".join(texts)
        elif not parameter.is_as_left_out(value):
            found[f"--{name}"] = format_value(value)
    return found


def _without_folder(named_file: str) -> str:
    """``NAME=PATH`` or ``PATH`` wherever the file lies.

    >>> _without_folder("in=/data/a.npy"), _without_folder("in=a.npy"), _without_folder("data/a.npy")
    ('in=a.npy', 'in=a.npy', 'a.npy')
    """
    folder, slash, file = named_file.rpartition("/")
    name = folder.partition("=")[0] + "=" if "=" in folder else ""
    return f"{name}{file}" if slash else named_file


def _workers(flags: Options) -> int | None:
    text = flags.text("workers")
    if text == "auto":
        return None
    if not text.isdecimal() or not 1 <= int(text) <= _MOST_WORKERS:
        raise UsageError(f"--workers={text}: use a number from 1 to {_MOST_WORKERS}, or auto: one per core")
    return int(text)


def read_shard(flags: Options) -> Shard:
    """The part of a run that is asked for; raises :class:`UsageError` for one that there is not."""
    from evaltools.engine.execution import Shard

    index, count = flags.number("shard_index"), flags.number("shard_count")
    if count < 1 or not 0 <= index < count:
        raise UsageError(f"--shard_index={index} --shard_count={count}: use an index from 0 to one less than the count")
    if count > 1 and flags.path("run_dir") is None:
        raise UsageError("a shard is of use only with a journal to merge; add --run_dir=FOLDER")
    return Shard(index, count)

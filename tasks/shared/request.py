"""The part of a request that every evaluation has, checked."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from msgspec import Struct, field

from evaltools.configuration import Configuration
from evaltools.engine.execution import Execution, Shard
from evaltools.errors import UsageError
from evaltools.parameter import format_value
from evaltools.request import Options, Request
from evaltools.tasks.shared.options import MARGIN

_MOST_WORKERS: Final = 1024


class TaskRequest(Struct, frozen=True, kw_only=True):
    """What an evaluation is asked for, checked; ``options`` are the task's own.

    ``reference_model_file`` None: the reference runs the same model. ``max_failed_examples`` None: no limit. ``flags``
    are those that a resumed run must repeat. ``command`` is only recorded. ``source`` is the request that a run folder
    keeps, None for a program of its own.
    """

    model_file: Path
    reference_model_file: Path | None = None
    reference: Configuration | None
    tests: tuple[Configuration, ...]
    allow_fallback: bool = False
    max_failed_examples: int | None = None
    execution: Execution = field(default_factory=Execution)
    flags: Mapping[str, str] = field(default_factory=dict)
    command: tuple[str, ...] = ()
    source: Request | None = None
    options: Any = None

    @property
    def configurations(self) -> tuple[Configuration, ...]:
        """The reference, if there is one, and the others."""
        return ((self.reference,) if self.reference else ()) + self.tests

    @property
    def reference_name(self) -> str | None:
        """The name of the reference, if there is one."""
        return None if self.reference is None else self.reference.name


def shared_fields(request: Request) -> dict[str, Any]:
    """The fields of :class:`TaskRequest` that a request gives, whatever the task."""
    options = request.options
    limit = options.number("max_failed_examples")
    other = options.path("reference_model_file") if "reference_model_file" in options else None
    if other is not None and request.is_native:
        raise UsageError("--compat=native compares a model with itself; leave --reference_model_file out")
    return {
        "model_file": Path(options.text("model_file")),
        "reference_model_file": other,
        "reference": request.reference,
        "tests": request.tests,
        "allow_fallback": options.is_on("allow_fallback"),
        "max_failed_examples": (0 if request.is_native else None) if limit < 0 else limit,
        "execution": read_execution(options),
        "flags": flags_to_repeat(options),
        "command": request.command,
        "source": request,
    }


def read_execution(flags: Options) -> Execution:
    """The execution that flags ask for; raises :class:`UsageError` for values that make no sense."""
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
    index, count = flags.number("shard_index"), flags.number("shard_count")
    if count < 1 or not 0 <= index < count:
        raise UsageError(f"--shard_index={index} --shard_count={count}: use an index from 0 to one less than the count")
    if count > 1 and flags.path("run_dir") is None:
        raise UsageError("a shard is of use only with a journal to merge; add --run_dir=FOLDER")
    return Shard(index, count)


def require_margin(margin: float) -> None:
    """Raise :class:`UsageError` for a value of ``--margin`` that is not a share."""
    if not 0 < margin < 1:
        raise UsageError(f"--{MARGIN.name}={margin:g}: use a share above 0 and below 1; 0.005 is half a point")

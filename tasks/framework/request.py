"""What a task is asked for, checked: models and configurations, how the work is done, the options of its function."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, cast

from msgspec import Struct, field

from evaltools.configuration import Configuration
from evaltools.engine.execution import Execution, Shard
from evaltools.engine.run_folder import digest
from evaltools.errors import UsageError
from evaltools.gates.units import amount_of_flag, without_unit
from evaltools.parameter import Parameter, format_value
from evaltools.request import Options, Request
from evaltools.tasks.framework.common_options import CHANNEL_ORDER, INPUT_LAYOUT, MARGIN, PICTURES
from evaltools.tasks.framework.definition import name_of
from evaltools.tasks.framework.image_input import StatedLayout, require_native
from evaltools.tasks.framework.loading import Loaded
from evaltools.tasks.framework.options import Option, values_of

_MOST_WORKERS: Final = 1024


class TaskRequest(Struct, frozen=True, kw_only=True):
    """What an evaluation is asked for, checked.

    ``reference_model_file`` None: the reference runs the same model. ``loaded`` is the task, ``values`` are what its
    function is called with. ``margin`` is the change of a metric that counts as none in verdicts, None where it was not
    stated; ``margin_has_unit``: it was stated as a share, else as a number in the metric's own unit. ``input_layout``
    and ``channel_order`` are of pictures; the latter is empty where it was not stated. ``native`` is
    ``--compat=native``. ``pictures`` is the option whose folder has the pictures that are the examples. ``decisive``
    are the options by which scores can differ, None: all. ``content`` has the files and folders that options name,
    where what lies there is read.

    ``flags`` are those that a resumed run must repeat. ``command`` is only recorded. ``source`` is the request that a
    run folder keeps, None for a program of its own.
    """

    model_file: Path
    reference_model_file: Path | None = None
    reference: Configuration | None
    tests: tuple[Configuration, ...]
    loaded: Loaded
    values: Mapping[str, Any] = field(default_factory=dict)
    record_examples: bool = False
    margin: float | None = None
    margin_has_unit: bool = True
    input_layout: StatedLayout = "auto"
    channel_order: str = ""
    native: bool = False
    pictures: str = ""
    decisive: frozenset[str] | None = None
    content: Mapping[str, Sequence[Path]] = field(default_factory=dict)
    allow_fallback: bool = False
    execution: Execution = field(default_factory=Execution)
    flags: Mapping[str, str] = field(default_factory=dict)
    command: tuple[str, ...] = ()
    source: Request | None = None

    @property
    def configurations(self) -> tuple[Configuration, ...]:
        """The reference, if there is one, and the others."""
        return ((self.reference,) if self.reference else ()) + self.tests

    @property
    def reference_name(self) -> str | None:
        """The name of the reference, if there is one."""
        return None if self.reference is None else self.reference.name

    @property
    def recorded(self) -> dict[str, Any]:
        """The options by which scores can differ."""
        values = {name: each for name, each in self.values.items() if self.decisive is None or name in self.decisive}
        return {**values, **({"channel_order": "bgr"} if self.channel_order == "bgr" else {})}

    @property
    def folder_of_pictures(self) -> str:
        """The folder that an option of the task names; empty where it takes no pictures."""
        return next((str(self.recorded[name]) for name in PICTURES if self.recorded.get(name) is not None), "")


def given_of(request: TaskRequest, ids: Iterable[str], facts: Mapping[str, str]) -> dict[str, str]:
    """What decides the figures: task and file, the ids of the examples, facts, options, of paths their last part."""
    loaded = request.loaded
    origin = None if loaded.is_built_in else loaded.origin
    own = {
        "task": name_of(loaded.function),
        "the task's file": origin.sha256[:12] if origin else "",
        "ids of examples": digest(ids)[:12],
    }
    stated = {name: str(value) for name, value in request.recorded.items() if value is not None}
    named = {f"--{name}": value.rstrip("/").rpartition("/")[2] for name, value in stated.items()}
    return own | dict(facts) | named


def read_request(
    request: Request, loaded: Loaded, options: Sequence[Option], has_native_tool: bool = False
) -> TaskRequest:
    """Parse and check the options of a request; raises :class:`UsageError` for values that make no sense."""
    given = request.options
    output = given.path("output_file_path")
    if not has_native_tool and output is not None and output.suffix.lower() in (".pb", ".bin"):
        raise UsageError(
            f"--output_file_path={output}: a task of your own has no native protobuf; give a name that ends in .json, "
            ".md or .csv"
        )
    if loaded.origin is None and given.text("executor") == "ray":
        raise UsageError(f"executor=ray: the task {loaded.name} is in no file that others could load; put it into one")
    names = [option.parameter.name for option in options]
    has_margin = "margin" in given.parameters
    margin, margin_has_unit = None, True
    if has_margin and "margin" in given:
        margin, margin_has_unit = amount_of_flag(MARGIN.name, given.text(MARGIN.name))
    if margin is not None and not 0 < margin < math.inf:
        raise UsageError(f"--margin={given.text(MARGIN.name)}: use a number above 0")
    other = given.path("reference_model_file") if "reference_model_file" in given else None
    if other is not None and request.is_native:
        raise UsageError("--compat=native compares a model with itself; leave --reference_model_file out")
    layout = cast(StatedLayout, given.text("input_layout")) if "input_layout" in given else "auto"
    channel_order = given.text("channel_order") if "channel_order" in given else ""
    channel_order = "" if channel_order == "auto" else channel_order
    if request.is_native:
        require_native((INPUT_LAYOUT, layout), (CHANNEL_ORDER, channel_order or "rgb"))
    values = values_of(tuple(options), {name: given.stated[name] for name in names if name in given}, loaded.name)
    return TaskRequest(
        model_file=Path(given.text("model_file")),
        reference_model_file=other,
        reference=request.reference,
        tests=request.tests,
        loaded=loaded,
        values=values,
        record_examples=has_margin and given.is_on("record_examples"),
        margin=margin,
        margin_has_unit=margin_has_unit,
        input_layout="auto" if "input_layout" in names else layout,
        channel_order="" if "channel_order" in names else channel_order,
        native=request.is_native,
        pictures=next((each.parameter.name for each in options if each.parameter.role == "pictures"), ""),
        decisive=frozenset(each.parameter.name for each in options if each.parameter.must_agree),
        content={each.parameter.name: _content(each.parameter, values[each.parameter.name]) for each in options},
        allow_fallback=given.is_on("allow_fallback"),
        execution=read_execution(given, request.is_native),
        flags=flags_to_repeat(given),
        command=request.command,
        source=None if loaded.origin is None else request,  # no other process could go on with a function of this one
    )


def _content(parameter: Parameter, value: Any) -> list[Path]:
    """What lies at the paths of an option and is read; none for an option without such paths."""
    if parameter.role == "named_files":
        return [Path(text.rpartition("=")[2]) for text in value]
    return [value] if parameter.is_content and isinstance(value, Path) else []


def read_execution(flags: Options, is_native: bool = False) -> Execution:
    """The execution that flags ask for; raises :class:`UsageError` for values that make no sense.

    ``is_native``: a failed example ends it where no limit is stated, as it ends the native tool.
    """
    timeout = flags.real("example_timeout")
    if timeout <= 0:
        raise UsageError(f"--example_timeout={timeout:g}: use a number of seconds above 0")
    crashes = flags.number("max_crashes")
    if crashes < 1:
        raise UsageError(f"--max_crashes={crashes}: use 1 or more")
    most_failed = flags.number("max_failed_examples")
    latency_examples = flags.number("latency_examples")
    if latency_examples < -1 or latency_examples == 0:
        raise UsageError(f"--latency_examples={latency_examples}: use 1 or more examples, or -1 for the default")
    return Execution(
        workers=_workers(flags),
        example_timeout_s=timeout,
        max_crashes=crashes,
        max_failed_examples=(0 if is_native else None) if most_failed < 0 else most_failed,
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


def require_margin(request: TaskRequest) -> None:
    """Raise :class:`UsageError` for a stated ``--margin`` that is not a share, or that is one without a unit."""
    margin = request.margin
    if margin is None:
        return
    if not request.margin_has_unit:
        raise UsageError(f"--{MARGIN.name}={margin:g}{without_unit(f'{margin:g}', 'points')}")
    if not 0 < margin < 1:
        raise UsageError(f"--{MARGIN.name}={100 * margin:g} points: use less than 100 points")

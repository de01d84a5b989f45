"""What a task is asked for: its function, the values of its options, and how its scores are judged."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from msgspec import Struct, field

from evaltools.errors import UsageError
from evaltools.gates.accuracy_verdict import DEFAULT_MARGIN
from evaltools.parameter import Parameter
from evaltools.request import Request
from evaltools.tasks.own.loading import Loaded
from evaltools.tasks.own.options import Option, values_of
from evaltools.tasks.shared.image_input import StatedLayout, require_native_channels
from evaltools.tasks.shared.request import TaskRequest, shared_fields


class OwnOptions(Struct, frozen=True):
    """Which task, and with which options.

    ``values`` are what the task's function is called with. ``margin`` is the change of a metric that counts as none
    in verdicts. ``input_layout`` and ``channel_order`` are of pictures; the latter is empty where it was not stated.
    ``native`` is ``--compat=native``. ``pictures`` is the option whose folder has the pictures that are the examples.
    ``decisive`` are the options by which scores can differ, None: all. ``content`` has the files and folders that
    options name, where what lies there is read. ``has_page``: a page is made of the result.
    """

    loaded: Loaded
    values: Mapping[str, Any] = field(default_factory=dict)
    record_examples: bool = False
    margin: float = DEFAULT_MARGIN
    input_layout: StatedLayout = "auto"
    channel_order: str = ""
    native: bool = False
    pictures: str = ""
    decisive: frozenset[str] | None = None
    content: Mapping[str, Sequence[Path]] = field(default_factory=dict)
    has_page: bool = False

    @property
    def recorded(self) -> dict[str, Any]:
        """The options by which scores can differ."""
        values = {name: each for name, each in self.values.items() if self.decisive is None or name in self.decisive}
        return {**values, **({"channel_order": "bgr"} if self.channel_order == "bgr" else {})}


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
    margin = given.real("margin") if has_margin else DEFAULT_MARGIN
    if not 0 < margin < math.inf:
        raise UsageError(f"--margin={margin:g}: use a number above 0, in the unit of the metrics")
    fields = shared_fields(request)
    if loaded.origin is None:
        fields["source"] = None  # no other process could go on with it
    layout = cast(StatedLayout, given.text("input_layout")) if "input_layout" in given else "auto"
    channel_order = given.text("channel_order") if "channel_order" in given else ""
    channel_order = "" if channel_order == "auto" else channel_order
    if request.is_native:
        require_native_channels(layout, channel_order or "rgb")
    values = values_of(tuple(options), {name: given.stated[name] for name in names if name in given}, loaded.name)
    own = OwnOptions(
        loaded=loaded,
        values=values,
        record_examples=has_margin and given.is_on("record_examples"),
        margin=margin,
        input_layout="auto" if "input_layout" in names else layout,
        channel_order="" if "channel_order" in names else channel_order,
        native=request.is_native,
        pictures=next((each.parameter.name for each in options if each.parameter.role == "pictures"), ""),
        decisive=frozenset(each.parameter.name for each in options if each.parameter.must_agree),
        content={each.parameter.name: _content(each.parameter, values[each.parameter.name]) for each in options},
        has_page=bool(given.text("report")),
    )
    return TaskRequest(**fields, options=own)


def _content(parameter: Parameter, value: Any) -> list[Path]:
    """What lies at the paths of an option and is read; none for an option without such paths."""
    if parameter.role == "named_files":
        return [Path(text.rpartition("=")[2]) for text in value]
    return [value] if parameter.is_content and isinstance(value, Path) else []

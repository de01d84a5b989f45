"""The request of an evaluation of one's own task, checked."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import field

from evaltools.errors import UsageError
from evaltools.gates.accuracy_verdict import DEFAULT_MARGIN
from evaltools.request import Request
from evaltools.tasks.own.loading import Loaded
from evaltools.tasks.own.options import Option, values_of
from evaltools.tasks.shared.request import TaskRequest, shared_fields


class OwnRequest(TaskRequest, frozen=True):
    """What to evaluate with which configurations.

    ``options`` are what the task's function is called with. ``margin`` is the change of a metric that counts as none
    in verdicts.
    """

    loaded: Loaded
    options: Mapping[str, Any] = field(default_factory=dict)
    record_examples: bool = False
    margin: float = DEFAULT_MARGIN


def read_request(request: Request, loaded: Loaded, options: Sequence[Option]) -> OwnRequest:
    """Parse and check the options of a request; raises :class:`UsageError` for values that make no sense."""
    given = request.options
    output = given.path("output_file_path")
    if output is not None and output.suffix.lower() in (".pb", ".bin"):
        raise UsageError(
            f"--output_file_path={output}: a task of your own has no native protobuf; give a name that ends in .json, "
            ".md or .csv"
        )
    if loaded.origin is None and given.text("executor") == "ray":
        raise UsageError(f"executor=ray: the task {loaded.name} is in no file that others could load; put it into one")
    names = [option.parameter.name for option in options]
    margin = given.real("margin")
    if not 0 < margin < math.inf:
        raise UsageError(f"--margin={margin:g}: use a number above 0, in the unit of the metrics")
    fields = shared_fields(request)
    if loaded.origin is None:
        fields["source"] = None  # no other process could go on with it
    return OwnRequest(
        **fields,
        loaded=loaded,
        options=values_of(tuple(options), {name: given.stated[name] for name in names if name in given}, loaded.name),
        record_examples=given.is_on("record_examples"),
        margin=margin,
    )

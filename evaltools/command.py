"""What makes requests: the command of a benchmark, a search or a suite, and that of a task.

It needs neither NumPy nor a runtime; what a command does is imported when it runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct

from evaltools.extensions import named
from evaltools.parameter import Parameter

if TYPE_CHECKING:
    from evaltools.metrics.metric import Metric

Groups = Mapping[str, Sequence[Parameter]]
"""Options under their headings."""


@dataclass(frozen=True, eq=False)
class Command:
    """A command that makes requests.

    ``name`` is what requests and results call it, ``words`` what the command line does. ``options`` gives all options
    when they are first asked for. ``modules_on_devices`` are those that a device must be able to import.
    """

    name: str
    words: str
    options: Callable[[], Groups]
    modules_on_devices: Sequence[str] = ()

    @cached_property
    def groups(self) -> Groups:
        """All options under their headings."""
        return self.options()

    @cached_property
    def parameters(self) -> dict[str, Parameter]:
        """All options by name."""
        return {parameter.name: parameter for group in self.groups.values() for parameter in group}


class ReferenceOutputs(Protocol):
    """A module by which the host runs the reference once, for all devices."""

    def saving_reference(self, request: Any, folder: Path) -> Any:
        """The request by which the host saves the reference's outputs to ``folder``.

        None if ``request`` loads such outputs anyway.
        """

    def against_saved(self, request: Any, folder: Path) -> Any:
        """The request that compares with the outputs in ``folder``, which :meth:`saving_reference` saved."""

    def for_places(self, request: Any) -> Any:
        """The request for each of several places, of which only the host measures what all are compared with."""


class Accuracy(Struct, frozen=True):
    """The figure that is the accuracy of a task, a share from 0 to 1, and what it is called beside a latency."""

    figure: str
    label: str


@dataclass(frozen=True, eq=False, kw_only=True)
class TaskCommand(Command):
    """The command of a task: one that comes with evaltools, one of an installed package, or one in a file.

    ``summary`` is a line for ``--help``, ``description`` a few lines for the command's own. ``alias`` is a shorter name
    of the command. Tasks that come with evaltools are listed by ascending ``place``, equal ones by name. ``source`` is
    the task's function and where it is from, an ``evaltools.tasks.framework.loading.Loaded``. ``accuracy`` is None for
    a task without a ground truth.

    What ends in ``_at`` is ``MODULE:NAME``, or a module with the functions. ``next_steps_at(result, configuration)``
    gives commands that answer the question which a bad or open verdict leaves, or sentences about them. ``native_at``
    has the lines and the protobuf of the native tool that does the same, as :mod:`evaltools.native.lines.evaluation`
    asks for them; empty for none. ``reference_outputs_at`` says how one reference serves several devices.
    ``file_option`` is an option that names a JSON file for each configuration, with the content ``file_at(result,
    name)``. ``metrics_at`` is the module that has the metrics, as ``METRICS``.

    ``compares_models``: of several models in one command, the
    first is the reference of the others; else each is compared with itself. ``native_reference`` are the kernels of the
    native tool's reference. ``complete`` gives options that follow from those that were stated; relative paths start at
    the folder that it is given.
    """

    summary: str
    description: str
    alias: str = ""
    place: int = 100
    source: Any = None
    accuracy: Accuracy | None = None
    native_at: str = ""
    next_steps_at: str = "evaltools.tasks.framework.next_steps:next_steps"
    file_option: str = ""
    file_at: str = ""
    reference_outputs_at: str = ""
    metrics_at: str = "evaltools.tasks.framework.topk_figures"
    compares_models: bool = True
    native_reference: str = "builtin"
    complete: Callable[[Mapping[str, Any], Path], Mapping[str, str]] | None = None

    @property
    def reference_outputs(self) -> ReferenceOutputs | None:
        """How the outputs of one reference serve several devices; None where each device runs its own."""
        found: ReferenceOutputs | None = named(self.reference_outputs_at) if self.reference_outputs_at else None
        return found

    @property
    def metrics(self) -> Sequence[Metric]:
        """The metrics of the task's own figures, without those that all tasks have."""
        found: Sequence[Metric] = named(self.metrics_at).METRICS
        return found

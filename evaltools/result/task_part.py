"""What every part of a result that a task adds can say of itself, also with the names that files have on the host."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from msgspec import Struct, field
from msgspec.structs import replace

from evaltools.metrics.metric import Metric
from evaltools.parameter import Value
from evaltools.result.evaluation import ExecutionUsed

if TYPE_CHECKING:
    from evaltools.result.evaluation import DelegateUsed


class HostNames(Struct, frozen=True):
    """The names that files and folders have on the host, by their names on devices.

    evaltools made the names on devices, so that nothing else in a text is one of them.
    ``reference`` is the name for outputs of the reference that the host computed, empty where it computed none.

    >>> names = HostNames({"/store/1f/m.tflite": "models/m.tflite"})
    >>> names.value("/store/1f/m.tflite"), names.text("/store/1f/m.tflite is damaged")
    ('models/m.tflite', 'models/m.tflite is damaged')
    """

    by_device_name: Mapping[str, str] = field(default_factory=dict)
    reference: str = ""

    def value(self, value: Value) -> Value:
        """The value of an option, replaced if it is the name of a file or folder on devices."""
        return self.by_device_name.get(value, value) if isinstance(value, str) else value

    def delegates(self, delegates: Sequence[DelegateUsed]) -> list[DelegateUsed]:
        """Delegates with their options' values replaced as by :meth:`value`."""
        return [
            replace(used, options={name: self.value(value) for name, value in used.options.items()})
            for used in delegates
        ]

    def text(self, text: str) -> str:
        """A text that a program printed, with all names in it replaced; the longest first, for one may begin another.

        >>> HostNames({"folder-1": "a", "folder-10": "b"}).text("in folder-10")
        'in b'
        """
        for on_device in sorted(self.by_device_name, key=len, reverse=True):
            text = text.replace(on_device, self.by_device_name[on_device])
        return text

    def reason(self, reason: str | None) -> str | None:
        """A reason with all names in it replaced; None stays None."""
        return None if reason is None else self.text(reason)


class TaskPart(Struct, frozen=True):
    """What a task adds to a result, without its figures: these its metrics read.

    What ends in ``_at`` is ``MODULE:NAME`` of a function. ``sections_at(result)`` gives what there is to show beside
    the figures. ``next_steps_at(result, configuration)`` gives commands that answer the question which a bad or open
    verdict leaves, or sentences about them. ``file_option`` is the option that names the files of :meth:`file_of`.
    """

    sections_at: ClassVar[str]
    next_steps_at: ClassVar[str]
    file_option: ClassVar[str] = ""

    @property
    def given(self) -> Mapping[str, str]:
        """Everything that decides the figures beside model and configurations, as texts by name.

        That is data, labels, preprocessing and options: two results with the same texts are of the same examples.
        """
        return {}

    @property
    def own_metrics(self) -> Sequence[Metric]:
        """The metrics that only this result knows."""
        return ()

    def nan_outputs(self, configuration: str) -> int:  # noqa: ARG002
        """How many outputs of a configuration, or elements of them, are NaN or infinite."""
        return 0

    def times_us(self, configuration: str, execution: ExecutionUsed | None) -> Sequence[float]:  # noqa: ARG002
        """The single times behind a latency, in the order of the examples, where the part holds them."""
        return ()

    @property
    def not_saved(self) -> str | None:
        """What a run could not write while it measured, and why; None where nothing is missing."""
        return None

    def without_examples(self) -> TaskPart:
        """The part without what is kept of single examples only for other files, as it is saved."""
        return self

    def file_of(self, configuration: str) -> bytes:  # noqa: ARG002
        """The content of the JSON file of a configuration that ``file_option`` asks for."""
        return b""

    @property
    def breaks_limits(self) -> bool:
        """Whether a limit that was given as an option is broken."""
        return False

    def with_host_names(self, names: HostNames) -> TaskPart:  # noqa: ARG002
        """The part of a result from devices, with the names that files have on the host."""
        return self

"""Results and messages from devices, with the names that files and folders have on the host."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from evaltools.parameter import Value
from evaltools.result.evaluation import DelegateUsed


@dataclass(frozen=True)
class HostNames:
    """The names that files and folders have on the host, by their names on devices.

    ``files`` and ``folders`` are paths. ``texts`` are further pieces of messages to be replaced. ``reference`` is the
    name for outputs of the reference that the host computed, empty where it computed none.

    >>> names = HostNames({"/store/1f/m.tflite": "models/m.tflite"})
    >>> names.value("/store/1f/m.tflite"), names.text("/store/1f/m.tflite is damaged")
    ('models/m.tflite', 'models/m.tflite is damaged')
    """

    files: Mapping[str, str] = field(default_factory=dict)
    folders: Mapping[str, str] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)
    reference: str = ""

    def value(self, value: Value) -> Value:
        """The value of an option, replaced if it is the path of a file on devices."""
        return self.files.get(value, value) if isinstance(value, str) else value

    def delegates(self, delegates: Sequence[DelegateUsed]) -> list[DelegateUsed]:
        """Delegates with their options' values replaced as by :meth:`value`."""
        return [
            replace(used, options={name: self.value(value) for name, value in used.options.items()})
            for used in delegates
        ]

    def text(self, text: str) -> str:
        """A text that a program printed, with all names in it replaced."""
        for on_device, on_host in {**self.files, **self.texts}.items():
            text = text.replace(on_device, on_host)
        return text

    def reason(self, reason: str | None) -> str | None:
        """A reason with all names in it replaced; None stays None."""
        return None if reason is None else self.text(reason)

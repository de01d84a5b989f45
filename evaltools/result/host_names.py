"""The names that files have on the host, for results from devices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from evaltools.parameter import Value
from evaltools.result.section import Section

if TYPE_CHECKING:
    from evaltools.result.facts import DelegateUsed
    from evaltools.result.result import Result


class HostNames(Struct, frozen=True):
    """The names that files and folders have on the host, by their names on devices.

    evaltools made the names on devices, so that nothing else in a text is one of them.

    >>> names = HostNames({"/store/1f/m.tflite": "models/m.tflite"})
    >>> names.value("/store/1f/m.tflite"), names.text("/store/1f/m.tflite is damaged")
    ('models/m.tflite', 'models/m.tflite is damaged')
    """

    by_device_name: Mapping[str, str] = field(default_factory=dict)

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


def with_host_names(result: Result, names: HostNames) -> Result:
    """The result with the host's names in what decides its figures, and in what its task shows."""
    given = {name: names.text(text) for name, text in result.given.items()}
    blocks = msgspec.convert(_renamed(msgspec.to_builtins(result.blocks), names), list[Section])
    return replace(result, given=given, blocks=blocks)


def _renamed(value: Any, names: HostNames) -> Any:
    if isinstance(value, str):
        return names.text(value)
    if isinstance(value, Mapping):
        return {key: _renamed(item, names) for key, item in value.items()}
    return [_renamed(item, names) for item in value] if isinstance(value, list | tuple) else value

"""What a device said of files and folders, with the names that these have here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from evaltools.parameter import Value
from evaltools.result.evaluation import DelegateUsed


@dataclass(frozen=True)
class NamesHere:
    """Names here ``by_name_there``, and those of whole folders that are fields of their own.

    >>> NamesHere({"/data/store/1f/m.tflite": "models/m.tflite"}).text("--model_file=/data/store/1f/m.tflite")
    '--model_file=models/m.tflite'
    """

    by_name_there: Mapping[str, str] = field(default_factory=dict)
    folders: Mapping[str, str] = field(default_factory=dict)

    def text(self, text: str) -> str:
        """A text in which names there may stand."""
        for there, here in self.by_name_there.items():
            text = text.replace(there, here)
        return text

    def reason(self, reason: str | None) -> str | None:
        """The same of a reason, where there is one."""
        return None if reason is None else self.text(reason)

    def flags(self, flags: Sequence[str]) -> list[str]:
        """The same of flags."""
        return list(map(self.text, flags))

    def delegates(self, delegates: Sequence[DelegateUsed]) -> list[DelegateUsed]:
        """The same of the options of delegates."""
        return [
            replace(used, options={name: self._value(value) for name, value in used.options.items()})
            for used in delegates
        ]

    def _value(self, value: Value) -> Value:
        return self.text(value) if isinstance(value, str) else value

"""What a device said of files and folders, with the names that these have here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from evaltools.parameter import Value
from evaltools.result.evaluation import DelegateUsed


@dataclass(frozen=True)
class NamesHere:
    """Names of ``files`` and ``folders`` here by those there, and of what stands in ``texts`` only.

    ``reference`` is what the outputs of the reference are called where they were computed here.

    >>> names = NamesHere({"/store/1f/m.tflite": "models/m.tflite"})
    >>> names.value("/store/1f/m.tflite"), names.text("/store/1f/m.tflite is damaged")
    ('models/m.tflite', 'models/m.tflite is damaged')
    """

    files: Mapping[str, str] = field(default_factory=dict)
    folders: Mapping[str, str] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)
    reference: str = ""

    def value(self, value: Value) -> Value:
        """The value of an option, which may be a path."""
        return self.files.get(value, value) if isinstance(value, str) else value

    def delegates(self, delegates: Sequence[DelegateUsed]) -> list[DelegateUsed]:
        """The same of the options of delegates."""
        return [
            replace(used, options={name: self.value(value) for name, value in used.options.items()})
            for used in delegates
        ]

    def text(self, text: str) -> str:
        """What a program printed, or a reason, in which names may stand."""
        for there, here in {**self.files, **self.texts}.items():
            text = text.replace(there, here)
        return text

    def reason(self, reason: str | None) -> str | None:
        """The same of a reason, where there is one."""
        return None if reason is None else self.text(reason)

"""What a device said of files and folders, with the names that these have here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from evaltools.parameter import Value
from evaltools.result.evaluation import DelegateUsed


@dataclass(frozen=True)
class NamesHere:
    """Names of files and folders here by those there, which evaltools made: nothing else that is said contains them.

    ``reference`` is what the outputs of the reference are called where they were computed here.

    >>> names = NamesHere({"/store/1f/m.tflite": "models/m.tflite"})
    >>> names.value("/store/1f/m.tflite"), names.text("/store/1f/m.tflite is damaged")
    ('models/m.tflite', 'models/m.tflite is damaged')
    """

    by_name_there: Mapping[str, str] = field(default_factory=dict)
    reference: str = ""

    def value(self, value: Value) -> Value:
        """The value of an option, which may be a path."""
        return self.by_name_there.get(value, value) if isinstance(value, str) else value

    def delegates(self, delegates: Sequence[DelegateUsed]) -> list[DelegateUsed]:
        """The same of the options of delegates."""
        return [
            replace(used, options={name: self.value(value) for name, value in used.options.items()})
            for used in delegates
        ]

    def text(self, text: str) -> str:
        """What a program printed, or a reason, in which names may stand; the longest first, for one may begin another.

        >>> NamesHere({"folder-1": "a", "folder-10": "b"}).text("in folder-10")
        'in b'
        """
        for there in sorted(self.by_name_there, key=len, reverse=True):
            text = text.replace(there, self.by_name_there[there])
        return text

    def reason(self, reason: str | None) -> str | None:
        """The same of a reason, where there is one."""
        return None if reason is None else self.text(reason)

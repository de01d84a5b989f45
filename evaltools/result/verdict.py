"""A verdict as data: what was concluded, from which numbers, and why; ``report/words/verdicts.py`` makes sentences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from msgspec import Struct, field

VerdictKind = Literal[
    "identical",
    "equivalent",
    "better",
    "worse",
    "not decided",
    "fp16",
    "bf16",
    "int8",
    "the reference is the odd one out",
    "diverged",
    "not judged",
    "not measured",
]
"""A precision means: different, but within what is expected of it."""
TEXT: Final = "text"
"""The kind of a reason that is a sentence already, in ``names["text"]``."""

CANNOT_EXIST: Final = "cannot_exist"
"""The same kind of reason, for what no Python runtime can create, or whose package is not installed here."""

IDENTICAL_ANSWERS: Final = "identical_answers"
"""The reason where all answers are bit for bit the other's; ``most_differing`` is the share that can differ at most."""
UNCHANGED_ANSWERS: Final = "unchanged_answers"
"""The same where answers differ, but the figure does not, whichever examples are taken."""

TOO_FEW_PICTURES: Final = "too_few_pictures"
"""The reason where nothing can be decided: there are so many ``pictures``, and ``fewest`` would be needed."""

FEW_UNEQUAL: Final = "few_unequal"
"""The reason where a metric states no bounds and only ``differing`` examples differ; ``fewest`` would be needed."""

FEW_DIFFERING: Final = "few_differing"
"""The reason why no number of examples is given: only ``differing`` examples differ; ``fewest`` would give one."""


class Reason(Struct, frozen=True):
    """One thing that a verdict rests on: its ``kind``, the ``numbers`` and ``names`` that belong to it.

    A number is null where there is none.
    """

    kind: str
    numbers: Mapping[str, int | float | None] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of_text(cls, text: str) -> Reason:
        """A reason that is known only as a sentence.

        >>> Reason.of_text("no GPU here").names
        {'text': 'no GPU here'}
        """
        return cls(TEXT, names={"text": text})


class Verdict(Struct, frozen=True):
    """What was concluded of a configuration that was held ``against`` another one.

    ``metric`` is the figure that was judged, or ``outputs``; then ``output`` is the one that decides, ``boxes`` where
    those of a detector do. Of a figure, ``change`` is how far it is from the other's, from ``low`` to ``high`` with
    95 % confidence; a change within ``margin`` counts as none; ``p_value`` is that of the test, corrected where several
    are compared with one; and ``examples_needed`` would decide what is not decided, in 80 % of cases. Shares are 0..1.
    """

    kind: VerdictKind
    metric: str
    against: str = ""
    output: str = ""
    change: float | None = None
    low: float | None = None
    high: float | None = None
    margin: float | None = None
    p_value: float | None = None
    examples_needed: int | None = None
    reasons: list[Reason] = field(default_factory=list)

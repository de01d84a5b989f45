"""A verdict: what was concluded, from which numbers, and why, in the words of the function that judged."""

from __future__ import annotations

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
OF_OUTPUTS: Final = "outputs"
"""The metric of verdicts on the outputs themselves."""
_PRECISIONS: Final = ("fp16", "bf16", "int8")


class Verdict(Struct, frozen=True):
    """What was concluded of a configuration that was held ``against`` another one.

    ``metric`` is the figure that was judged, or ``outputs``; then ``output`` is the one that decides, ``boxes`` where
    those of a detector do. ``texts`` say it in words: of a figure in one sentence, of outputs each thing that the
    verdict rests on, the most important first. Of a figure, ``change`` is how far it is from the other's, from ``low``
    to ``high`` with 95 % confidence; a change within ``margin`` counts as none; ``p_value`` is that of the test,
    corrected where several are compared with one; and ``examples_needed`` would decide what is not decided, in 80 % of
    cases. ``differing`` examples have another score; ``fewest_examples`` are needed for any interval, where there are
    fewer. ``seen`` says that all answers are ``identical`` bit for bit, or that none changed the figure. Shares are
    0..1.
    """

    kind: str
    metric: str
    against: str = ""
    output: str = ""
    change: float | None = None
    low: float | None = None
    high: float | None = None
    margin: float | None = None
    p_value: float | None = None
    examples_needed: int | None = None
    texts: list[str] = field(default_factory=list)
    differing: int | None = None
    fewest_examples: int | None = None
    seen: Literal["", "identical", "unchanged"] = ""

    @property
    def why(self) -> str:
        """The output that decides, and all that the verdict rests on."""
        texts = "; ".join(self.texts)
        return f"{self.output}: {texts}" if self.output else texts

    @property
    def sentence(self) -> str:
        """The verdict with what it is about.

        >>> Verdict("fp16", "outputs", output="scores", texts=["run 3 is worst", "answers changed: 0 of 20"]).sentence
        'within expected precision of fp16: scores: run 3 is worst; answers changed: 0 of 20'
        """
        return f"{kind_in_words(self.kind)}: {self.why}" if self.metric == OF_OUTPUTS else f"{self.metric} {self.why}"


def kind_in_words(kind: str) -> str:
    """The verdict on outputs in words.

    >>> kind_in_words("fp16"), kind_in_words("diverged")
    ('within expected precision of fp16', 'diverged')
    """
    return f"within expected precision of {kind}" if kind in _PRECISIONS else kind

"""A verdict: what was concluded, from which numbers, and why, in the words of the function that judged."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Literal

from msgspec import Struct, field
from msgspec.structs import replace

from evaltools import exit_codes
from evaltools.metrics.words import change
from evaltools.result.section import Tone

VerdictKind = Literal[
    "identical",
    "unchanged",
    "equivalent",
    "better",
    "worse",
    "mixed",
    "not decided",
    "fp16",
    "bf16",
    "int8",
    "the reference is the odd one out",
    "diverged",
    "not judged",
    "not compared",
    "not measured",
]
"""A precision means: different, but within what is expected. ``mixed``: worse by one metric, better by another."""
GateVerdict = Literal["skipped", "pass", "inconclusive", "fail", "not measured"]
"""The kinds of verdicts on limits; ``skipped`` is what cannot exist here, where the gate has ``allow_missing``."""
GATE_VERDICTS: Final[tuple[GateVerdict, ...]] = ("skipped", "pass", "inconclusive", "fail", "not measured")
"""From best to worst."""
_TONES: Final[Mapping[str, Tone]] = {
    "identical": "good", "unchanged": "good", "equivalent": "good", "better": "good", "fp16": "near", "bf16": "near",
    "int8": "near", "worse": "bad", "diverged": "bad", "not compared": "missing", "pass": "good", "fail": "bad",
    "not measured": "missing", "skipped": "missing", "mixed": "",
}  # fmt: skip
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
    fewer. ``identical`` are all answers bit for bit, ``unchanged`` is a figure that no answer changed: each of as many
    examples as there were. Shares are 0..1.
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

    @property
    def is_open(self) -> bool:
        """Whether more examples may say otherwise: not decided, or the same in too few to be sure of the others.

        >>> Verdict("unchanged", "top1", low=-0.1, high=0.1, margin=0.005).is_open
        True
        """
        if self.kind not in ("identical", "unchanged"):
            return self.kind == "not decided"
        low, high, margin = self.low, self.high, self.margin
        is_sure = low is not None and high is not None and -(margin or 0.0) <= low and high <= (margin or 0.0)
        return self.metric != OF_OUTPUTS and not is_sure

    @property
    def tone(self) -> Tone:
        """The colour of its kind; open ones say neither yes nor no."""
        return "near" if self.kind == "unchanged" and self.is_open else _TONES.get(self.kind, "open")

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


NOTHING_CHANGED: Final = ("identical", "unchanged")
"""Verdicts on answers of which none is another: a share of examples says how sure that is, and no interval."""


def kind_in_words(kind: str) -> str:
    """The verdict on outputs in words.

    >>> kind_in_words("fp16"), kind_in_words("diverged")
    ('within expected precision of fp16', 'diverged')
    """
    return f"within expected precision of {kind}" if kind in _PRECISIONS else kind


_OF_FIGURES: Final = ("worse", "not decided", "better", "equivalent", "unchanged", "identical")
"""Verdicts on figures of one metric, from worst to best."""
_OPEN: Final = "not decided"


def of_all_metrics(verdicts: Sequence[Verdict]) -> Verdict | None:
    """The one verdict on what was compared with the same as in the first of these, by one metric or several.

    It is the worst of them; ``mixed`` where one metric is better and another one worse. Its metric and its text name
    all that are worse, or all that are not decided, and the numbers are those of the first of these.

    >>> better, worse = Verdict("better", "iou", change=0.03), Verdict("worse", "margin", change=-0.1)
    >>> found = of_all_metrics([better, worse])
    >>> found.kind, found.sentence
    ('mixed', 'margin worse: -0.1; iou better: +0.03')
    """
    own = against_the_same(verdicts)
    by_kind = {kind: [each for each in own if each.kind == kind] for kind in _OF_FIGURES}
    if sum(map(len, by_kind.values())) < len(own):
        return own[0]
    worst = next(filter(None, by_kind.values()), [])
    is_mixed = bool(by_kind["worse"] and by_kind["better"])
    if not is_mixed and (len(worst) < 2 or worst[0].kind not in ("worse", _OPEN)):
        return worst[0] if worst else None
    named = [
        f"{_metrics(found)} {found[0].kind}: {', '.join(map(_change, found))}"
        for found in (worst, by_kind["better"] if is_mixed else [])
        if found
    ]
    needed = [each.examples_needed for each in worst if each.examples_needed is not None]
    if needed and worst[0].kind == _OPEN:
        named.append(f"{'' if len(needed) == len(worst) else 'at least '}about {max(needed)} examples would decide")
    return replace(
        worst[0],
        kind="mixed" if is_mixed else worst[0].kind,
        metric=_metrics(worst),
        texts=["; ".join(named).removeprefix(f"{_metrics(worst)} ")],
        examples_needed=max(needed, default=None),
    )


def against_the_same(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """Those against what the first one is against: one for each metric."""
    return [each for each in verdicts if each.against == verdicts[0].against]


def _metrics(verdicts: Iterable[Verdict]) -> str:
    return ", ".join(each.metric for each in verdicts)


def _change(verdict: Verdict) -> str:
    return "-" if verdict.change is None else change(verdict.change, verdict.low, verdict.high, is_share=False)


class Ending(Struct, frozen=True):
    """What becomes of a verdict on a limit; ``junit`` and ``github`` are None where nothing is to be said.

    An element ``failure`` or ``error``, an exit code other than 0 and a test that failed go together.
    """

    exit_code: int
    junit: Literal["failure", "error", "skipped"] | None
    test: Literal["pass", "fail", "skip"]
    github: Literal["error", "warning", "notice"] | None


_ENDINGS: Final[Mapping[str, Ending]] = {
    "skipped": Ending(exit_codes.OK, "skipped", "skip", "notice"),
    "pass": Ending(exit_codes.OK, None, "pass", None),
    "inconclusive": Ending(exit_codes.INCONCLUSIVE, "failure", "fail", "error"),
    "fail": Ending(exit_codes.LIMIT_BROKEN, "failure", "fail", "error"),
    "not measured": Ending(exit_codes.NOT_MEASURED, "error", "fail", "error"),
}
_ALLOWED_INCONCLUSIVE: Final = Ending(exit_codes.OK, "skipped", "skip", "warning")


def ending_of(kind: str, is_inconclusive_allowed: bool) -> Ending:
    """Exit code, element of JUnit, outcome of a test, and line on GitHub of a verdict on a limit.

    >>> ending_of("inconclusive", is_inconclusive_allowed=True).exit_code, ending_of("not measured", True).exit_code
    (0, 3)
    """
    is_allowed = kind == "inconclusive" and is_inconclusive_allowed
    return _ALLOWED_INCONCLUSIVE if is_allowed else _ENDINGS[kind]


def worst_verdict(kinds: Iterable[GateVerdict]) -> GateVerdict:
    """The worst verdict on limits; ``not measured`` if there are none, since nothing was shown."""
    return max(kinds, key=GATE_VERDICTS.index, default="not measured")

"""A limit as a user writes it: ``top1 >= 0.70``, ``top1 drop <= 0.005 at 95 %``, ``max_quanta[scores] <= 2``."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Final, Literal

from evaltools.errors import UsageError
from evaltools.parameter import did_you_mean
from evaltools.stats.resampled import MOST_CONFIDENCE

Kind = Literal["value", "drop", "ratio"]

TOP_K: Final = {f"top{k}": k for k in range(1, 11)}
"""The accuracies of classifiers, with the number of best classes that the right label is looked for in."""
_COCO: Final = ("ap", "ap50", "ap75", "ap_small", "ap_medium", "ap_large",
                "ar_1", "ar_10", "ar_100", "ar_small", "ar_medium", "ar_large")  # fmt: skip
FIGURES: Final[dict[str, str]] = {
    **{name: f"Top-{k} accuracy, 0..1" for name, k in TOP_K.items()},
    "agreement": "imagenet: share of examples with the reference's best class, 0..1",
    "distinct_answers": "imagenet: how many classes came first at least once",
    **dict.fromkeys(_COCO, "COCO figure of that name, 0..1; ap is mAP"),
    "matched_boxes": "coco: share of the reference's boxes that were found again, 0..1",
    "avg_error": "inference_diff: mean absolute error as the native tool prints it (raw numbers of quantised outputs)",
    "max_error": "inference_diff: largest absolute error, real units",
    "max_quanta": "inference_diff: largest error of a quantised output in quanta",
    "snr_db": "inference_diff: signal to noise, dB; no number where nothing differs",
    "relative_rms": "inference_diff: RMS of the error by that of the reference",
    "latency_ms": "median time of invoke, ms",
    "latency": "only as `latency ratio`: time by that of the reference, on the same examples",
    "peak_memory_mb": "largest resident memory of the configuration's process (Python, runtime, model, delegate), MB",
    "delegated_nodes": "share of the model's nodes that ran on delegates, 0..1",
    "partitions": "number of partitions of all delegates",
    "failed_examples": "examples without an answer",
}
"""Every figure that a limit can be about, with its meaning."""
PER_OUTPUT: Final = frozenset({"avg_error", "max_error", "max_quanta", "snr_db", "relative_rms"})
"""Figures that each output has: ``max_quanta[NAME]`` is about one of them, ``max_quanta`` about all."""
WITH_DROP: Final = frozenset({*TOP_K, *_COCO})
"""Figures whose change against the reference has an interval."""
_OF_REFERENCE: Final = PER_OUTPUT | {"agreement", "matched_boxes"}
_FROM_0_TO_1: Final = WITH_DROP | {"agreement", "matched_boxes", "delegated_nodes"}
LARGER_IS_BETTER: Final = frozenset({"delegated_nodes", "snr_db"})
"""Figures without an interval that are better when they are larger."""
_MAY_BE_NEGATIVE: Final = frozenset({"snr_db"})
_MOST_FOR_RATIO: Final = 0.975
_HUNDREDTHS: Final = ("%", "point", "points")
_ALIASES: Final = {"map": "ap", "mAP": "ap"}
_LIMIT: Final = re.compile(
    r"\s*(?P<figure>\w+)\s*(?:\[(?P<output>[^\]]+)\])?\s*(?P<kind>drop|ratio)?\s*(?P<sign><=|>=)\s*"
    r"(?P<value>[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*(?P<unit>%|points?|ms)?\s*"
    r"(?:at\s+(?P<confidence>\d+(?:\.\d+)?)\s*%)?\s*"
)


@dataclass(frozen=True)
class Criterion:
    """One limit on one figure.

    ``kind``: the figure itself, its ``drop`` against the reference, or its ``ratio`` to that of the reference.
    ``at_most`` tells ``<=`` from ``>=``. ``confidence``, 0.5..1, asks for a bound instead of the figure as it is found.
    """

    text: str
    figure: str
    output: str | None
    kind: Kind
    at_most: bool
    value: float
    confidence: float | None

    @property
    def is_relative(self) -> bool:
        """Whether it is about a comparison with the reference."""
        return self.kind != "value" or self.figure in _OF_REFERENCE


def parse_criterion(text: str) -> Criterion:
    """Read a limit; raises :class:`UsageError` for what is none, and for what could never be decided.

    >>> criterion = parse_criterion("top1 drop <= 0.5 points at 95 %")
    >>> criterion.figure, criterion.kind, criterion.value, criterion.confidence
    ('top1', 'drop', 0.005, 0.95)
    """
    found = _LIMIT.fullmatch(text)
    if found is None:
        raise UsageError(f"{text!r} is no limit; write such as 'top1 >= 0.70' or 'top1 drop <= 0.005 at 95 %'")
    figure = _ALIASES.get(found["figure"], found["figure"])
    if figure not in FIGURES:
        known = ", ".join(FIGURES)
        raise UsageError(f"{text!r}: no such figure {figure!r}.{did_you_mean(figure, FIGURES)} Known are {known}")
    kind: Kind = found["kind"] or "value"  # type: ignore[assignment]
    unit = found["unit"] or ""
    criterion = Criterion(
        text=" ".join(text.split()),
        figure=figure,
        output=found["output"].strip() if found["output"] else None,
        kind=kind,
        at_most=found["sign"] == "<=",
        value=_value(found["value"], unit),
        confidence=float(found["confidence"]) / 100 if found["confidence"] else None,
    )
    _require_sense(criterion)
    _require_unit(criterion, unit)
    _require_possible(criterion)
    return criterion


def _value(number: str, unit: str) -> float:
    """The number as a user means it: 70 % is the 0.7 that 7 of 10 give, to the last bit."""
    return float(Decimal(number) / 100) if unit in _HUNDREDTHS else float(number)


def _require_sense(criterion: Criterion) -> None:
    text, figure, kind = criterion.text, criterion.figure, criterion.kind
    if kind == "drop" and figure not in WITH_DROP:
        raise UsageError(f"{text!r}: only {', '.join(sorted(WITH_DROP))} can drop")
    if (kind == "ratio") != (figure == "latency"):
        raise UsageError(f"{text!r}: write 'latency ratio <= 0.8', or 'latency_ms <= 5' for the time itself")
    if criterion.output is not None and figure not in PER_OUTPUT:
        raise UsageError(f"{text!r}: {figure} is not a figure of one output; leave [{criterion.output}] out")
    if kind == "drop" and not criterion.at_most:
        raise UsageError(f"{text!r}: a drop is limited from above: {figure} drop <= ...")
    if criterion.confidence is not None:
        if not 0.5 < criterion.confidence < 1:
            raise UsageError(f"{text!r}: use a confidence above 50 % and below 100 %")
        if kind == "ratio" and criterion.confidence > _MOST_FOR_RATIO:
            raise UsageError(
                f"{text!r}: results hold the 95 % interval of the ratio, so 97.5 % on one side is the most"
            )
        if kind == "drop" and figure in _COCO and criterion.confidence > MOST_CONFIDENCE:
            raise UsageError(f"{text!r}: figures of COCO are judged by a thousand draws, so 99 % is the most")
        if kind == "value" and figure not in TOP_K:
            raise UsageError(
                f"{text!r}: only top1 to top10, drops and the latency ratio have an interval; leave 'at ...' out"
            )


def _require_unit(criterion: Criterion, unit: str) -> None:
    text, figure = criterion.text, criterion.figure
    if unit == "ms" and figure != "latency_ms":
        raise UsageError(f"{text!r}: {figure} is not measured in ms; leave the unit out")
    if unit in _HUNDREDTHS and figure not in _FROM_0_TO_1:
        raise UsageError(f"{text!r}: {figure} is no share, so it has no {unit}; leave the unit out")


def _require_possible(criterion: Criterion) -> None:
    """Refuse a number that the figure can never be on the right side of, or that lies outside what it can be."""
    text, figure, value = criterion.text, criterion.figure, criterion.value
    if not math.isfinite(value):
        raise UsageError(f"{text!r}: {value:g} limits nothing; give a finite number")
    lowest = -1.0 if criterion.kind == "drop" else 0.0
    if figure in _FROM_0_TO_1 and not lowest <= value <= 1:
        raise UsageError(
            f"{text!r}: {figure} is a share, 0..1, and {value:g} is none; write such as 0.70 or 70 %, "
            "and a drop as 0.005 or 0.5 points"
        )
    if value < 0 and criterion.kind != "drop" and figure not in _MAY_BE_NEGATIVE:
        raise UsageError(f"{text!r}: {figure} is never negative; give a number of 0 or more")

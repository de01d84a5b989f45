"""Verdicts and their reasons as sentences; no other module turns them into words."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from evaltools.known_tasks import metric_named
from evaltools.metrics.power import POWER
from evaltools.report.words.numbers import change as change_text
from evaltools.report.words.numbers import points, two_digits
from evaltools.result.verdict import (
    FEW_DIFFERING,
    FEW_UNEQUAL,
    IDENTICAL_ANSWERS,
    TEXT,
    TOO_FEW_PICTURES,
    UNCHANGED_ANSWERS,
    Reason,
    Verdict,
)

OF_OUTPUTS: Final = "outputs"
"""The metric of verdicts on the outputs themselves."""
_PRECISIONS: Final = ("fp16", "bf16", "int8")
_OTHER_INPUTS: Final = "try others (--input_images, --input_files)"
_REAL_DATA: Final = "accuracy on real data decides (imagenet, coco, a task of your own)"
_UNCHANGED: Final = {
    IDENTICAL_ANSWERS: "identical: all {count} answers are bit for bit the reference's; "
    "95 % confident: fewer than {most} % of such examples differ",
    UNCHANGED_ANSWERS: "unchanged: no answer of {count} changed it; 95 % confident: fewer than {most} % of such "
    "examples do",
}


def kind_in_words(kind: str) -> str:
    """The verdict on outputs in words.

    >>> kind_in_words("fp16"), kind_in_words("diverged")
    ('within expected precision of fp16', 'diverged')
    """
    return f"within expected precision of {kind}" if kind in _PRECISIONS else kind


def change_in_words(verdict: Verdict) -> str:
    """A verdict on a share, with the 95 % interval of its change in percentage points.

    >>> change_in_words(Verdict("worse", "top1", change=-0.0272, low=-0.0332, high=-0.0216, margin=0.005))
    'WORSE by 2.72 points [-3.32, -2.16]'

    Where nothing was seen to change, that comes first, and an interval is left to limits.
    """
    if unchanged := _unchanged(verdict):
        return unchanged
    if verdict.reasons and (verdict.low is None or verdict.high is None):
        return _without_interval(verdict)
    change = _change(verdict, is_share=True)
    within = "" if verdict.margin is None else f" within {100 * verdict.margin:g} points"
    if verdict.kind == "equivalent":
        return f"equivalent{within}: {change}"
    if verdict.kind in ("worse", "better"):
        return f"{'WORSE' if verdict.kind == 'worse' else 'better'} by {change.lstrip('+-')}"
    return f"not decided: {change}{_needed(verdict, within)}"


def _without_interval(verdict: Verdict) -> str:
    """The change, if it is known, and why nothing says how sure it is."""
    change = [] if verdict.change is None else [f"{points(verdict.change)} points"]
    return f"{verdict.kind}: {'; '.join([*change, reasons_in_words(verdict.reasons)])}"


def _unchanged(verdict: Verdict) -> str:
    """The sentence on a figure that was not seen to change; empty for others."""
    for reason in verdict.reasons:
        if reason.kind in _UNCHANGED:
            most = f"{100 * (reason.numbers['most_differing'] or 0):.2g}"
            return _UNCHANGED[reason.kind].format(count=reason.numbers["examples"], most=most)
    return ""


def _needed(verdict: Verdict, within: str) -> str:
    if verdict.examples_needed is None:
        return ""
    return (
        f"; about {verdict.examples_needed} examples would decide in {100 * POWER:g} % of cases whether it is{within}"
    )


def score_change_in_words(verdict: Verdict) -> str:
    """A verdict on the mean of a score, with the 95 % interval of its change in the score's own numbers.

    >>> score_change_in_words(Verdict("worse", "iou", change=-0.027, low=-0.033, high=-0.021, margin=0.005))
    'WORSE: -0.027 [-0.033, -0.021]'
    """
    if unchanged := _unchanged(verdict):
        return unchanged
    within = "" if verdict.margin is None else f" within {verdict.margin:g}"
    words = {"worse": "WORSE", "equivalent": f"equivalent{within}"}
    needed = _needed(verdict, within) if within else ""
    for reason in verdict.reasons:
        if reason.kind in (FEW_UNEQUAL, FEW_DIFFERING):
            needed = f"; {_reason(reason)}"
    return f"{words.get(verdict.kind, verdict.kind)}: {_change(verdict, is_share=False)}{needed}"


def _change(verdict: Verdict, is_share: bool) -> str:
    return change_text(verdict.change or 0.0, verdict.low, verdict.high, is_share)


def is_share(verdict: Verdict) -> bool:
    """Whether a verdict is about a share, whose changes are in points."""
    metric = metric_named(verdict.metric)
    return metric is not None and metric.is_share


def judged_in_words(verdict: Verdict) -> str:
    """The verdict in words; of one on outputs its first reason, where that says why nothing is decided."""
    if verdict.metric == OF_OUTPUTS:
        kind = kind_in_words(verdict.kind)
        why = reasons_in_words(verdict.reasons[:1])
        return f"{kind}: {why}" if why else kind
    metric = metric_named(verdict.metric)
    if metric is None or metric.is_of_own_task:
        return f"{verdict.metric} {score_change_in_words(verdict)}"
    return f"{metric.heading or metric.name} {change_in_words(verdict)}"


def verdict_in_words(verdict: Verdict) -> str:
    """Any verdict of a configuration, with what it is about.

    >>> verdict_in_words(Verdict("worse", "top1", change=-0.0272, low=-0.0332, high=-0.0216, margin=0.005))
    'top1 WORSE by 2.72 points [-3.32, -2.16]'
    """
    metric = metric_named(verdict.metric)
    if verdict.change is None and metric is None:
        return outputs_in_words(verdict)
    is_share = metric is not None and not metric.is_of_own_task
    return f"{verdict.metric} {change_in_words(verdict) if is_share else score_change_in_words(verdict)}"


def outputs_in_words(verdict: Verdict) -> str:
    """A verdict on outputs, the output that decides, and why.

    >>> outputs_in_words(Verdict("equivalent", "outputs", output="scores", reasons=[Reason("identical")]))
    'equivalent: scores: identical in every element'
    """
    return f"{kind_in_words(verdict.kind)}: {why_in_words(verdict)}"


def why_in_words(verdict: Verdict) -> str:
    """The output that decides, and why."""
    why = reasons_in_words(verdict.reasons)
    return f"{verdict.output}: {why}" if verdict.output else why


def reasons_in_words(reasons: Sequence[Reason]) -> str:
    """All reasons in one line; one of a kind that is not known here with its numbers.

    >>> reasons_in_words([Reason("identical"), Reason("answers", {"changed": 3, "of": 20})])
    'identical in every element; answers changed: 3 of 20'
    """
    text = ""
    for reason in reasons:
        found = _reason(reason)
        text += f"; {found}" if text else found
    return text


def _reason(reason: Reason) -> str:
    try:
        if reason.kind in _SENTENCES:
            return _SENTENCES[reason.kind].format(**{"side": "test", **reason.numbers, **reason.names})
        return _OTHERS.get(reason.kind, any_reason_in_words)(reason)
    except (KeyError, TypeError, ValueError):  # a result that was edited lacks a number
        return any_reason_in_words(reason)


def any_reason_in_words(reason: Reason) -> str:
    """A reason without a sentence of its own: its kind, then its numbers and names."""
    numbers = [f"{name} {'no number' if value is None else f'{value:.4g}'}" for name, value in reason.numbers.items()]
    return " ".join([reason.kind.replace("_", " "), ", ".join([*numbers, *reason.names.values()])]).strip()


def _not_finite(reason: Reason) -> str:
    sides = {
        side: [f"{reason.numbers[f'{side}_{what}']} {word}" for what, word in (("nan", "NaN"), ("infinite", "infinite"))
               if reason.numbers[f"{side}_{what}"]]
        for side in ("test", "reference")
    }  # fmt: skip
    counts = " and ".join(f"the {side} has {' and '.join(found)}" for side, found in sides.items() if found)
    return f"{counts} of {reason.numbers['elements']} values"


def _identical(reason: Reason) -> str:
    at_most = reason.numbers.get("at_most")
    if at_most is None:
        return "identical in every element"
    runs = reason.numbers["runs"]
    share = f"{100 * at_most:.2g} %"
    return f"identical in every element of {runs} runs; 95 % confident: fewer than {share} of such inputs differ"


def _worst_run(reason: Reason) -> str:
    """The run that decides, with the limit that its size was compared with."""
    value, tolerance = reason.numbers["value"], reason.numbers["tolerance"]
    explanation, kind = reason.names["explanation"], reason.names["kind"]
    what = {
        "exact": "of the less frequent elements differ",
        "boxes": "is how far boxes move or scores change on average",
    }.get(kind, "relative RMS")
    name = "CPU kernels explain" if explanation == "equivalent" else f"rounding to {explanation} explains"
    is_kept = value is not None and tolerance is not None and value <= tolerance
    size = f"run {reason.numbers['index']} is worst, {two_digits(value)} {what}"
    return f"{size}, {'no more' if is_kept else 'more'} than {name} ({two_digits(tolerance)})"


def _worst_channel(reason: Reason) -> str:
    value, tolerance = (two_digits(reason.numbers[name]) for name in ("value", "tolerance"))
    return f"only channel {reason.numbers['index']} is off by {value}, where {tolerance} is explained"


def _noise_floor(reason: Reason) -> str:
    variant = f" ({reason.names['variant']})" if reason.names["variant"] else ""
    return f"worst run of the CPU variants: {two_digits(reason.numbers['value'])}{variant}"


def _quanta(reason: Reason) -> str:
    numbers = reason.numbers
    equal, one, two, more = (
        f"{100 * (numbers[name] or 0):.3g} %" for name in ("equal", "off_by_1", "off_by_2", "off_by_more")
    )
    return (
        f"{equal} of the elements are equal, {one} off by 1 quantum, {two} by 2, {more} by more; RMS "
        f"{two_digits(numbers['rms'])}, max {numbers['largest']} quanta"
    )


def _gain(reason: Reason) -> str:
    value = reason.numbers["value"] or 0.0
    return f"all values together are {100 * abs(value):.2g} % {'larger' if value > 0 else 'smaller'}"


def _boxes(reason: Reason) -> str:
    numbers = reason.numbers
    iou = "" if numbers["mean_iou"] is None else f" (mean IoU {numbers['mean_iou']:.3f})"
    return (
        f"{numbers['matched']} boxes matched{iou}, {numbers['lost']} lost, {numbers['new']} new, "
        f"{numbers['other_class']} of another class"
    )


def _avg_error(reason: Reason) -> str:
    average, largest = reason.numbers["avg_error"], reason.numbers["max_error"]
    if average is None:
        return "avg_error is not a number: one side has NaN or infinite values, or the output has no elements"
    return (
        f"avg_error {average:g} in raw numbers, at most {largest:g} in a run; the native tool gives nothing to "
        "compare that with"
    )


_SENTENCES: Final[Mapping[str, str]] = {
    TEXT: "{text}",
    "no_elements": "it has no elements, so nothing was compared",
    "same_raw_numbers": "the raw numbers are the same in every element of every run",
    FEW_UNEQUAL: "only {differing} examples differ and the metric states no bounds, so others may decide",
    FEW_DIFFERING: "only {differing} examples differ, so nothing says how many would decide",
    TOO_FEW_PICTURES: "{pictures} pictures, {fewest} are the fewest for an interval",
    "other_shape": "the shapes of the outputs differ",
    "no_counterpart": "{missing} of {elements} elements have no counterpart of their type",
    "never_written": "{elements} denormal numbers (below 1e-37) stand where the other side has ordinary values: memory "
    "that was never written looks like this",
    "constant": "the {side}'s output is {value:g} everywhere, in every run",
    "same_in_every_run": "the {side}'s output is the same in every run, whatever the input",
    "repeated": "the outputs of {repeated} of {runs} runs are earlier ones, where the other side gives others",
    "level": "in {level} of {runs} runs one side has the same number everywhere, and the other has not",
    "first_inference": "the first inference after loading gave other outputs than the same inputs later",
    "reference_not_repeatable": "a second time, the same inputs gave other outputs, of the reference too; compare with "
    'another (--reference="num_threads=1 use_xnnpack=false")',
    "not_repeatable": "not repeatable: a second time, the same inputs gave other outputs",
    "amplifies_rounding": f"this model amplifies rounding on these inputs; {_REAL_DATA}",
    "rounding_of_int8": f"rounding in another way explains it, but so may a fault; {_REAL_DATA}",
    "all_answers": f"all answers changed, more than rounding explains; {_REAL_DATA}",
    "other_answers": f"more answers changed than rounding explains, but few; {_REAL_DATA}",
    "cancellation": "no difference is larger than one rounding of the largest value inside of the model "
    f"({{largest:.3g}}), compared with which the output is small; {_REAL_DATA}",
    "few_outputs": f"there are {{distinct}} different outputs in {{runs}} runs, which show little; {_OTHER_INPUTS}",
    "all_zero": f"all outputs are 0 everywhere, as they are where nothing is written; {_OTHER_INPUTS}",
    "no_boxes": f"no box scores enough to matter on these inputs; {_OTHER_INPUTS}",
    "interrupted": "interrupted before all CPU variants and precisions were measured; run it again to the end",
    "out_of_time": "not all CPU variants and precisions were measured in time; --max_secs=0 measures all",
    "no_noise_floor": "no noise floor was measured (--noise_floor_runs)",
    "odd_reference": "its own kernels with all tensors kept give what the test gives; compare with other kernels "
    '(--reference="kernels=default")',
    "answers": "answers changed: {changed} of {of}",
}
"""With the numbers and names of the reason."""
_OTHERS: Final[Mapping[str, Callable[[Reason], str]]] = {
    "identical": _identical,
    "avg_error": _avg_error,
    "not_finite": _not_finite,
    "worst_run": _worst_run,
    "worst_channel": _worst_channel,
    "gain": _gain,
    "noise_floor": _noise_floor,
    "quanta": _quanta,
    "boxes": _boxes,
}

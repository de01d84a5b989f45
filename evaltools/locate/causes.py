"""The table of known ways to be wrong: each with its test, what it says, what to do. They explain, and decide nothing.

Tests are in ``cause_tests``: they give the facts that a sentence names, or None. The first row of :data:`TABLE` that
fits is the cause, for each explains all values by itself. First come those that say where each value comes from, with
nothing that was fitted, then those with fitted numbers; what is known of an operator comes last: that it was wrong
before does not show that it is now. Where none fits, :data:`PLACES` says which values are wrong, which can be several
things at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Final

import numpy as np
from msgspec import Struct

from evaltools.errors import EvaltoolsError
from evaltools.locate import cause_tests as tests
from evaltools.locate.view import View
from evaltools.operators.part import Case

_LITERT: Final = "https://github.com/google-ai-edge/LiteRT/issues/"
_TENSORFLOW: Final = "https://github.com/tensorflow/tensorflow/issues/"
_QUANTISATION: Final = "https://ai.google.dev/edge/litert/models/quantization_spec"
_SCALES: Final = (
    "compare the scale and zero point that the delegate uses with the model's, of inputs, weights and output"
)
_PAD_BEFORE: Final = "put a PAD before the operator and let it be VALID, so that nothing is left to the delegate"


class Cause(Struct, frozen=True):
    """A known way to be wrong that fits: what it is, what shows it, what to do, and where it is described."""

    name: str
    shown_by: str
    remedy: str
    link: str = ""


class Row(Struct, frozen=True):
    """A cause: its name, its test, and the sentences, in which ``{...}`` stand for the facts that the test gives."""

    name: str
    test: Callable[[View], Mapping[str, object] | None]
    shown_by: str
    remedy: str
    link: str = ""


TABLE: Final[Sequence[Row]] = (
    Row(
        "another shape",
        tests.another_shape,
        "the output is {given}, and {expected} on the CPU",
        "fix all shapes in the model before the delegate sees it; it may have been prepared for other ones",
    ),
    Row(
        "division by zero",
        tests.division_by_zero,
        "{count} values are others, each where the divisor is 0: {cpu} on the CPU, whose kernel keeps to numbers, and "
        "{here} here",
        "neither is a result to go on with: keep the divisor away from 0, as by MAXIMUM or by adding a small number",
    ),
    Row(
        "fp16 overflow",
        tests.fp16_overflow,
        "{what} up to {largest:.6g}, which fp16 cannot hold (at most 65504); {count} such values came as {words}",
        "compute it in fp32: --gpu_precision_loss_allowed=false, without xnnpack_force_fp16, or enforce_f32 of "
        "CompiledModel; or scale the values down before",
        f"{_LITERT}9249",
    ),
    Row(
        "the operator was skipped",
        tests.skipped,
        "all {size} values are those of operand {place}, {operand!r}, while {wrong} of them should be others, up to "
        "{off_by} away",
        "keep this operator on the CPU, or write it in another way; the delegate skips it",
    ),
    Row(
        "an operand was returned",
        tests.operand_returned,
        "all {size} values are those of operand {place}, {operand!r}, while {wrong} of them should be others, up to "
        "{off_by} away",
        "do not use the tensor as an output and as an operand of the next operator; a copy of it by RESHAPE as the "
        "output cures that",
        f"{_LITERT}8599",
    ),
    Row(
        "the output of the run before",
        tests.stale,
        "all {size} values are what the CPU gives for the inputs of the run before; {wrong} of them should be others",
        "the output is read before it is written: wait for the delegate, or use another way to bind the output buffer",
    ),
    Row(
        "one value everywhere",
        tests.one_value,
        "all {size} values are {value:g}; the CPU's are from {low:.6g} to {high:.6g}",
        "the output is not written, or overwritten: try it without buffer reuse, or keep the operator on the CPU",
        f"{_TENSORFLOW}27240",
    ),
    Row(
        "padded otherwise",
        tests.padded_otherwise,
        "but for the border all values are those that the CPU gives for a picture that stands {where}; {wrong} are "
        "wrong",
        _PAD_BEFORE,
    ),
    Row(
        "sampled otherwise",
        tests.sampled_otherwise,
        "all {size} values are those that the CPU gives with {told}; {wrong} are wrong",
        "the delegate leaves these options out: convert the model with others, or keep the operator on the CPU",
    ),
    Row(
        "values cut at a bound",
        tests.cut_at_a_bound,
        "{count} values stand at {bounds}, where the CPU has {low:.6g} to {high:.6g}; all others are right",
        "the delegate computes in a smaller range, of a type or a scale, or adds an activation: give it the model's "
        "scale and zero point, ask for fp32, or keep the operator on the CPU",
    ),
    Row(
        "sign flipped",
        tests.negated,
        "all {size} values are the CPU's with the other sign",
        "negate the result (NEG) as a way round, and report it",
    ),
    Row("multiplied by a constant", tests.multiplied, "all {size} values are {factor:.6g} times the CPU's", _SCALES),
    Row(
        "moved by a constant",
        tests.moved,
        "all {size} values are the CPU's {by}",
        "compare the zero points that the delegate uses with the model's, and whether a bias is added twice or not",
    ),
    Row(
        "wrong scale of channels",
        tests.multiplied_channels,
        "{channels} are multiplied by a constant of their own, from {low:.6g} to {high:.6g}",
        f"{_SCALES}; scales per channel are read as one scale, or in another order",
        _QUANTISATION,
    ),
    Row(
        "channels moved by constants",
        tests.moved_channels,
        "{channels} are moved by a constant of their own, from {low:+.6g} to {high:+.6g}",
        "compare the bias that the delegate uses with the model's: left out, added twice, or of another channel",
    ),
    Row("a known fault of the GPU", tests.known_gpu_fault, "{wrong}: {source}", "{way_round}"),
)
PLACES: Final[Sequence[Row]] = (
    Row(
        "NaN or infinity",
        tests.some_not_finite,
        "{count} values are {words}, where the CPU has numbers up to {largest:.6g}; the first is at {first}",
        "{remedy}",
        f"{_TENSORFLOW}48523",
    ),
    Row(
        "wrong at the border",
        tests.at_the_border,
        "{count} pixels of {height} x {width} are wrong, each within {depth} of the border ({sides}); the {inner} "
        "pixels inside are right",
        _PAD_BEFORE,
    ),
    Row(
        "wrong in the last lanes",
        tests.last_lanes,
        "all {wrong} wrong values lie in the last {tail} of {length} channels of the last dimension",
        "the rest of a vector loop: make that size a multiple of 4, 8 or 16 by padding, or keep the operator on the "
        "CPU",
    ),
    Row(
        "wrong in few channels",
        tests.few_channels,
        "all {wrong} wrong values lie in {some} of {channels} channels: {named}",
        "look at what is special there: weights, scales, biases of these channels, or the delegate's tiles",
    ),
)


def find_causes(case: Case) -> tuple[Cause, ...]:
    """The cause that explains the numbers of a case, else what is known of the values that are wrong; may be nothing.

    A test that cannot read or run the part, or whose arrays have other shapes than it takes, has nothing to say.
    """
    view = View(case)
    cause = next((found for found in (_cause(row, view) for row in TABLE) if found is not None), None)
    if cause is not None:
        return (cause,)
    return tuple(found for found in (_cause(row, view) for row in PLACES) if found is not None)


def _cause(row: Row, view: View) -> Cause | None:
    with suppress(EvaltoolsError, ValueError), np.errstate(all="ignore"):
        facts = row.test(view)
        if facts is not None:
            return Cause(row.name, row.shown_by.format(**facts), row.remedy.format(**facts), row.link)
    return None

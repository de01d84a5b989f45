"""``evaltools power``: how many examples it takes to see a drop of accuracy."""

from __future__ import annotations

from typing import Final

from evaltools.cli.shared.streams import say_wrapped
from evaltools.errors import UsageError
from evaltools.exit_codes import NOT_WRITTEN, OK
from evaltools.gates.units import share_of_flag
from evaltools.parameter import Parameter
from evaltools.request.flags import GivenFlags, parse_flags

DESCRIPTION: Final = """\
How many examples do I need to see a drop of accuracy, or how surely do as many as I have show it? For the exact McNemar
test on examples that are right or wrong with either configuration."""
_SUREST: Final = 0.9999
PARAMETERS: Final = (
    Parameter("drop", "The drop to be seen, with its unit, such as '0.5 points'. Required."),
    Parameter(
        "flip_rate",
        "Share of examples, such as '1 %', that one configuration has right and the other wrong: lost and gained, by "
        "the number of examples in a first small run. Required.",
    ),
    Parameter("power", "How surely the drop shall be seen, 0..1.", default=0.8),
    Parameter("confidence", "Confidence of the test, 0..1; 0.95 calls p <= 0.05 a difference.", default=0.95),
    Parameter("num_images", "Say how surely as many examples show the drop.", default=0),
)


def run(arguments: list[str]) -> int:
    """Compute and print."""
    flags = parse_flags("power", DESCRIPTION, "", {"flags": PARAMETERS}, arguments)
    drop, flip_rate, power, confidence = _rates(flags)
    images = flags.number("num_images")
    if images < 0:
        raise UsageError(f"--num_images={images}: use 1 or more")
    from evaltools.metrics.power import MOST_EXAMPLES, examples_to_see, mcnemar_power

    what = f"a drop of {100 * drop:g} points with {100 * flip_rate:g} % flips"
    lines = []
    if images:
        seen = mcnemar_power(images, drop, flip_rate, 1 - confidence)
        lines.append(f"{images} examples show {what} with a probability of {100 * seen:.1f} %")
    needed = examples_to_see(drop, flip_rate, power, 1 - confidence)
    number = f"more than {MOST_EXAMPLES}" if needed is None else str(needed)
    lines.append(f"{number} examples show {what} with a probability of {100 * power:g} %")
    lines.append(f"(exact McNemar test, p <= {1 - confidence:.3g})")
    return OK if say_wrapped("\n".join(lines)) else NOT_WRITTEN


def _rates(flags: GivenFlags) -> tuple[float, float, float, float]:
    missing = [f"--{name}=..." for name in ("drop", "flip_rate") if name not in flags]
    if missing:
        raise UsageError(f"missing: {' '.join(missing)}. See evaltools power --help")
    drop = share_of_flag("drop", flags.text("drop"))
    flip_rate = share_of_flag("flip_rate", flags.text("flip_rate"), "%")
    if drop > flip_rate:
        message = f"a drop of {100 * drop:g} points with {100 * flip_rate:g} % flips"
        raise UsageError(f"{message}: the drop is at most the share of flips, because every lost example is a flip")
    for name in ("power", "confidence"):
        if not 0.5 <= flags.real(name) <= _SUREST:
            raise UsageError(f"--{name}={flags.real(name):g}: use 0.5 to {_SUREST:g}")
    return drop, flip_rate, flags.real("power"), flags.real("confidence")

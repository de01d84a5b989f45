"""``evaltools power``: how many examples it takes to decide a limit on a drop of accuracy."""

from __future__ import annotations

from typing import Final

from evaltools.cli.shared.streams import say_wrapped
from evaltools.errors import UsageError
from evaltools.exit_codes import NOT_WRITTEN, OK
from evaltools.gates.units import share_of_flag
from evaltools.parameter import Parameter
from evaltools.request.flags import GivenFlags, parse_flags

DESCRIPTION: Final = """\
How many examples do I need to decide the limit 'top1 drop <= 0.5 points at 95 %', or how surely do as many as I have
decide it? For a configuration that is as accurate as the reference, and the bounds that a gate takes."""
_LEAST_SURE: Final = 0.5
_SUREST: Final = 0.9999
PARAMETERS: Final = (
    Parameter("drop", "The drop that the limit allows, with its unit, such as '0.5 points'. Required."),
    Parameter(
        "flip_rate",
        "Share of examples, such as '1 %', that one configuration has right and the other wrong: lost and gained, by "
        "the number of examples in a first small run; 0 where no answer changes. Required.",
    ),
    Parameter("power", "How surely the limit shall be decided, 0..1.", default=0.8),
    Parameter("confidence", "Confidence of the limit, 0..1; 0.95 is that of 'at 95 %'.", default=0.95),
    Parameter("num_images", "Say how surely as many examples decide the limit.", default=0),
)


def run(arguments: list[str]) -> int:
    """Compute and print."""
    flags = parse_flags("power", DESCRIPTION, "", {"flags": PARAMETERS}, arguments)
    drop, flip_rate, power, confidence = _rates(flags)
    images = flags.number("num_images")
    if images < 0:
        raise UsageError(f"--num_images={images}: use 1 or more")
    from evaltools.metrics.power import MOST_EXAMPLES, chance_to_decide, examples_to_keep

    what = f"decide 'top1 drop <= {100 * drop:g} points at {100 * confidence:g} %'"
    lines = []
    if images:
        chance = chance_to_decide(images, flip_rate / 2, flip_rate / 2, drop, confidence)
        lines.append(f"{images} examples {what} with a probability of {100 * chance:.1f} %")
    needed = examples_to_keep(drop, flip_rate, power, confidence)
    number = f"more than {MOST_EXAMPLES}" if needed is None else str(needed)
    lines.append(f"{number} examples {what} with a probability of {100 * power:g} %")
    lines.append(f"(of a configuration that is as accurate as the reference, with {100 * flip_rate:g} % flips)")
    return OK if say_wrapped("\n".join(lines)) else NOT_WRITTEN


def _rates(flags: GivenFlags) -> tuple[float, float, float, float]:
    missing = [f"--{name}=..." for name in ("drop", "flip_rate") if name not in flags]
    if missing:
        raise UsageError(f"missing: {' '.join(missing)}. See evaltools power --help")
    drop = share_of_flag("drop", flags.text("drop"))
    flips = flags.text("flip_rate")
    flip_rate = 0.0 if flips == "0" else share_of_flag("flip_rate", flips, "%")
    for name in ("power", "confidence"):
        if not _LEAST_SURE < flags.real(name) <= _SUREST:
            raise UsageError(f"--{name}={flags.real(name):g}: use more than {_LEAST_SURE:g}, and at most {_SUREST:g}")
    return drop, flip_rate, flags.real("power"), flags.real("confidence")

"""The options of every task that are about configurations, beside those that describe one."""

from __future__ import annotations

from typing import Final

from evaltools.parameter import Parameter

CANDIDATES: Final = (
    Parameter(
        "config",
        'One more configuration, "NAME: flag=value flag=value". May be repeated.',
        repeatable=True,
        about="configurations",
    ),
    Parameter(
        "configs",
        "YAML file that maps names to flags. May be repeated.",
        repeatable=True,
        role="input_file",
        about="configurations",
    ),
    Parameter(
        "sweep",
        'Values to combine, as in "threads:1,2,4 use_xnnpack:true,false", each a configuration. May be repeated.',
        repeatable=True,
        about="configurations",
    ),
)
ALLOW_FALLBACK: Final = Parameter(
    "allow_fallback",
    "Measure a configuration on the CPU where its delegate cannot be created or takes nothing; the result says so.",
    default=False,
)
PARAMETERS: Final = (
    *CANDIDATES,
    Parameter(
        "reference",
        "Flags of the configuration that the others are held against; builtin kernels and one thread unless stated. "
        "none: no reference.",
        only_with=("load_reference=",),
    ),
    ALLOW_FALLBACK,
    Parameter(
        "compat",
        "native: do what the native tool does also where that is a trap (docs/native-differences.md).",
        choices=("", "native"),
    ),
)

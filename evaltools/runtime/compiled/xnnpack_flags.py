"""The bits that LiteRT's CPU options pass on to XNNPACK."""

from __future__ import annotations

from typing import Final

from evaltools.configuration import Configuration
from evaltools.errors import UsageError

_QUANTISED: Final = 3
"""QS8 and QU8, which the native tools always set beside other flags: flags replace those of the delegate."""
_FORCE_FP16: Final = 4


def xnnpack_flags(configuration: Configuration) -> int | None:
    """The bits that a configuration asks for, None where it leaves them to the delegate.

    Raises :class:`UsageError` for a negative number.

    >>> xnnpack_flags(Configuration.from_text("c", "use_xnnpack=true xnnpack_force_fp16=true"))
    7
    """
    asked_for = int(configuration.delegates.value("xnnpack_runtime_flags"))
    if asked_for < 0:
        raise UsageError("--xnnpack_runtime_flags is a set of bits, 0 or more; a negative number is none")
    asked_for |= _FORCE_FP16 if configuration.delegates.value("xnnpack_force_fp16") else 0
    return asked_for | _QUANTISED if asked_for else None

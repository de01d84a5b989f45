"""How many examples a property is tried with, and files that are nearly right."""

from __future__ import annotations

import os
from typing import Final

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

_STATED: Final = os.environ.get("EVALTOOLS_HOSTILE_EXAMPLES", "")
IS_LONG: Final = bool(_STATED)
"""Whether all is tried, as ``make hostile`` does, instead of a choice."""
EXAMPLES: Final = int(_STATED or 40)
PARTS: Final = range(8 if IS_LONG else 1)
"""Cases that have numbers are tried in so many tests, which run beside each other."""


def numbers_of(part: int) -> range:
    """The numbers of the cases of a part."""
    return range(part, EXAMPLES, len(PARTS))


tried = settings(
    max_examples=EXAMPLES,
    derandomize=not IS_LONG,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
"""A few examples, always the same, or many new ones."""

_PIECES: Final = st.binary(max_size=8) | st.sampled_from(
    [
        b"",
        b"\0",
        b"\n",
        b"-1",
        b"1e999",
        b"NaN",
        b"null",
        b"[[[[",
        b"\xff\xfe",
        b"9" * 5000,
        b"\xc2\xb2",
        b"\xef\xbb\xbf",
    ]
)
"""Among them a number that int() refuses for its length, and a digit that it does not take."""


@st.composite
def damaged(draw: st.DrawFn, whole: st.SearchStrategy[bytes]) -> bytes:
    """A valid file in which one to three places are replaced by something else."""
    content = draw(whole)
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(content)))
        end = draw(st.integers(start, min(len(content), start + 12)))
        content = content[:start] + draw(_PIECES) + content[end:]
    return content

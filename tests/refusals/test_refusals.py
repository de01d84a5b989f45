"""What a user mistypes is refused with what was wrong and what would be right, as it was looked at once."""

from __future__ import annotations

import pytest

from tests.refusals.record import READERS, refused, said_of

CASES = [(name, *case) for name in READERS for case in refused(name)]


@pytest.mark.parametrize(("name", "text", "said"), CASES, ids=[f"{name}: {text}" for name, text, _ in CASES])
def test_each_text_is_refused_with_its_message(name: str, text: str, said: str) -> None:
    """``python -m tests.refusals.record`` writes them anew."""
    assert said
    assert said_of(name, text) == said

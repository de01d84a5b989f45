"""What some tests need and not every machine has: without it they are skipped on a user's machine and fail in CI."""

from __future__ import annotations

import os
from typing import NoReturn

import pytest


def leave_out(what: str, reason: object) -> NoReturn:
    """Skip, or fail where ``EVALTOOLS_EXPECT_{what}`` says that this machine has it."""
    variable = f"EVALTOOLS_EXPECT_{what}"
    if os.environ.get(variable):
        pytest.fail(f"{variable} says that this machine has it: {reason}")
    pytest.skip(str(reason), allow_module_level=True)

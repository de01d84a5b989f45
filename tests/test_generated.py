"""Files derived from code are up to date."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SPEC = importlib.util.spec_from_file_location("generate", ROOT / "scripts" / "generate.py")
assert SPEC is not None
assert SPEC.loader is not None
generate = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(generate)


@pytest.mark.parametrize("name", generate.GENERATED)
def test_file_is_up_to_date(name: str) -> None:
    assert (ROOT / name).read_bytes() == generate.GENERATED[name](), f"{name}: run python scripts/generate.py"

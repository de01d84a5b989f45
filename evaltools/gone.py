"""Flags of earlier versions, with what to do instead. A message about an unknown flag says it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

GONE: Final[Mapping[str, str]] = {
    "disagreements_path": "--report=page.html shows the pictures that changed",
    "method": "evaltools locate takes each look that it needs; --operators=FIRST-LAST looks at fewer operators",
}

"""The stages of a pass, by the names that results and traces use.

They stand apart, as processes that make inputs import little.
"""

from __future__ import annotations

from typing import Final

READ: Final = "read"
DECODE: Final = "decode"
RESIZE: Final = "resize"
PREPARATION: Final = "prepare"
INFERENCE: Final = "inference"
METRICS: Final = "metrics"
JOURNAL: Final = "journal"
INPUT_STAGES: Final = (READ, DECODE, RESIZE, PREPARATION)
STAGES: Final = (READ, DECODE, RESIZE, PREPARATION, INFERENCE, METRICS, JOURNAL)
"""Those of every pass."""

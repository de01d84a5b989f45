"""The signals that end a command."""

from __future__ import annotations

import signal
from typing import Final

ENDINGS: Final = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP", "SIGQUIT") if hasattr(signal, name))
"""Those beside Ctrl-C; Windows has the first alone."""
INTERRUPTS: Final = (signal.SIGINT, *ENDINGS)

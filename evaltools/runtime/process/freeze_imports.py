"""What the server of children imports last.

From then on all that it has imported is not garbage, and no child that looks for some goes through it, which would cost
12 ms, and a copy of most of the memory that children share.

It outlives what ends a command, as it does Ctrl-C: it ends with the command, which still starts or ends children.

A command that is killed while it starts a child cuts off what the server or the child reads: they say nothing.
"""

import gc
import signal
import sys
from types import TracebackType

from evaltools.signals import ENDINGS


def _tell(kind: type[BaseException], error: BaseException, where: TracebackType | None) -> None:
    if not isinstance(error, EOFError):
        sys.__excepthook__(kind, error, where)


gc.freeze()
sys.excepthook = _tell
for number in ENDINGS:
    signal.signal(number, signal.SIG_IGN)

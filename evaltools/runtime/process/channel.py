"""Messages between our processes: each is framed, and of bounded length.

Native code in the same process may write to any descriptor. A secret at the head of each frame distinguishes
our messages from its junk, and the sender's number those of a process from those of its copy, which a fork in native
code leaves behind.
"""

from __future__ import annotations

import os
import pickle
import selectors
import socket
import struct
import time
from contextlib import suppress
from typing import Any, Final

SECRET_BYTES: Final = 16
LONGEST_MESSAGE: Final = 1 << 31
_HEAD: Final = struct.Struct(f"<{SECRET_BYTES}sIQ")
_PIECE: Final = 1 << 16
_COPY: Final = 86
"""The exit code of a copy."""
_AT_ONCE: Final = getattr(socket, "MSG_DONTWAIT", 0)
_Selector: Final = getattr(selectors, "PollSelector", selectors.DefaultSelector)
"""One that takes no descriptor, where the platform has it."""


class WrongMessage(Exception):
    """What arrived is none of our messages; the text says what it is."""


class Channel:
    """One end of a pair of sockets, in one process.

    An end with a limit of its waiting does not block; one that does may wait for ever. ``alive`` is another
    channel from the same process.
    """

    def __init__(self, end: socket.socket, secret: bytes, alive: Channel | None = None) -> None:
        self._end = end
        self._secret = secret
        self._owner = os.getpid()
        self._sender: int | None = None
        self._arrived = bytearray()
        self._alive = alive
        self._incoming: selectors.BaseSelector | None = None

    def fileno(self) -> int:
        """The descriptor."""
        return self._end.fileno()

    def only_from(self, process_id: int) -> None:
        """Take messages only of that process."""
        self._sender = process_id

    def send(self, message: Any, seconds: float | None = None) -> None:
        """Send a message; raises :class:`OSError` where the other end is closed or takes nothing for so long.

        A copy of the process tells that it is there, and leaves.
        """
        content = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
        sender = os.getpid()
        frame = memoryview(_HEAD.pack(self._secret, sender, len(content)) + content)
        while frame:
            try:
                frame = frame[self._end.send(frame, _AT_ONCE) :]
            except BlockingIOError:
                self._wait_for_room(seconds)
        if sender != self._owner:
            os._exit(_COPY)

    def receive(self, seconds: float | None = None) -> Any:
        """The next message, after any time where ``seconds`` is None.

        Raises :class:`TimeoutError` where it does not come within so long, :class:`EOFError` where none will, because
        the other end is closed or something comes by ``alive``, and :class:`WrongMessage`.
        """
        deadline = None if seconds is None else time.monotonic() + seconds
        while (content := self._content()) is None:
            may_come = deadline is None or self._wait(deadline)
            try:
                piece = self._end.recv(_PIECE)
            except BlockingIOError:
                if may_come:
                    continue
                raise EOFError from None
            if not piece:
                raise EOFError
            self._arrived += piece
        return _unpacked(content)

    def send_no_more(self) -> None:
        """Let the other end see that nothing more will come; what it sent can still be received."""
        with suppress(OSError):
            self._end.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """Close this end."""
        if self._incoming is not None:
            self._incoming.close()
        self._end.close()

    def _content(self) -> bytes | None:
        """What a whole frame holds, None where more must come."""
        if len(self._arrived) < _HEAD.size:
            self._require_secret(bytes(self._arrived))
            return None
        secret, sender, length = _HEAD.unpack_from(self._arrived)
        self._require_secret(secret)
        if length > LONGEST_MESSAGE:
            raise WrongMessage(f"a message of {length} bytes, at most {LONGEST_MESSAGE} are taken")
        if self._sender not in (None, sender):
            raise WrongMessage("an answer of a copy of the process: native code called fork, and both went on")
        end = _HEAD.size + length
        if len(self._arrived) < end:
            return None
        content = bytes(memoryview(self._arrived)[_HEAD.size : end])
        del self._arrived[:end]
        return content

    def _require_secret(self, found: bytes) -> None:
        if not self._secret.startswith(found[:SECRET_BYTES]):
            raise WrongMessage("bytes that are no message: native code wrote to a descriptor that is not its own")

    def _wait(self, deadline: float) -> bool:
        """Wait until something comes; returns False where it comes by ``alive``."""
        if self._incoming is None:
            self._incoming = _Selector()
            for channel in (self, self._alive):
                if channel is not None:
                    self._incoming.register(channel._end, selectors.EVENT_READ)
        ready = self._incoming.select(max(0.0, deadline - time.monotonic()))
        if not ready:
            raise TimeoutError
        return all(key.fileobj is self._end for key, _ in ready)

    def _wait_for_room(self, seconds: float | None) -> None:
        with _Selector() as selector:
            selector.register(self._end, selectors.EVENT_WRITE)
            if not selector.select(seconds):
                raise TimeoutError


def _unpacked(content: bytes) -> Any:
    try:
        return pickle.loads(content)
    except Exception as error:  # whatever a damaged pickle raises
        raise WrongMessage(f"a message that cannot be read ({error!r})") from error

"""Messages between processes, and what is none."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import socket
import struct
from collections.abc import Callable

import pytest

from evaltools.runtime.process.channel import LONGEST_MESSAGE, SECRET_BYTES, Channel, WrongMessage

SECRET = bytes(range(SECRET_BYTES))
forks = pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no copies of a process here")


@pytest.fixture
def raw() -> tuple[socket.socket, Channel]:
    """An end to write anything to, and the channel at the other end."""
    theirs, ours = socket.socketpair()
    ours.setblocking(False)
    return theirs, Channel(ours, SECRET)


def head(secret: bytes = SECRET, sender: int = 7, length: int = 0) -> bytes:
    return struct.pack("<16sIQ", secret, sender, length)


def test_a_message_may_come_in_pieces(raw: tuple[socket.socket, Channel]) -> None:
    theirs, channel = raw
    content = pickle.dumps("whole")
    frame = head(length=len(content)) + content
    for place in range(len(frame) - 1):
        theirs.send(frame[place : place + 1])
        with pytest.raises(TimeoutError):
            channel.receive(0)
    theirs.send(frame[-1:])
    assert channel.receive(1) == "whole"


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        (b"junk", "bytes that are no message"),
        (b"\0" * 100, "bytes that are no message"),
        (SECRET[:3] + b"?", "bytes that are no message"),
        (head(length=LONGEST_MESSAGE + 1), "a message of 2147483649 bytes, at most 2147483648 are taken"),
        (head(length=4) + b"junk", "a message that cannot be read"),
        (head(sender=8), "an answer of a copy of the process: native code called fork, and both went on"),
    ],
)
def test_what_is_no_message_of_the_other_process_is_refused(
    raw: tuple[socket.socket, Channel], sent: bytes, said: str
) -> None:
    theirs, channel = raw
    channel.only_from(7)
    theirs.send(sent)
    with pytest.raises(WrongMessage, match=said):
        channel.receive(1)


def test_half_a_message_ends_with_its_sender(raw: tuple[socket.socket, Channel]) -> None:
    theirs, channel = raw
    theirs.send(head(length=10) + b"half")
    theirs.close()
    with pytest.raises(EOFError):
        channel.receive(60)


def test_a_channel_beside_tells_of_an_end_that_this_one_does_not_show() -> None:
    theirs, ours = socket.socketpair()
    control, far_control = socket.socketpair()
    ours.setblocking(False)
    channel = Channel(ours, SECRET, alive=Channel(control, SECRET))
    Channel(theirs, SECRET).send("last words")
    far_control.close()
    assert channel.receive(60) == "last words"
    with pytest.raises(EOFError):
        channel.receive(60)


def test_nobody_who_reads_ends_a_send_in_time(raw: tuple[socket.socket, Channel]) -> None:
    _, channel = raw
    with pytest.raises(TimeoutError):
        channel.send(b"x" * (8 << 20), seconds=0.05)


@forks
def test_a_copy_of_the_sender_tells_that_it_is_there_and_leaves(raw: tuple[socket.socket, Channel]) -> None:
    theirs, channel = raw
    channel.only_from(os.getpid())
    sender = Channel(theirs, SECRET)

    def copied(send: Callable[[object], None]) -> int:
        copy = os.fork()
        if not copy:
            send("mine")
            os._exit(0)  # never reached: the copy leaves while it sends
        return os.waitstatus_to_exitcode(os.waitpid(copy, 0)[1])

    assert copied(sender.send) != 0
    with pytest.raises(WrongMessage, match="native code called fork"):
        channel.receive(1)

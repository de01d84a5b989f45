"""A device's end of adb over TCP, for what a real daemon does not show on demand.

The messages are those of Android's protocol.txt and SYNC.TXT: CNXN, AUTH, OPEN, OKAY, WRTE and CLSE; the services
``shell`` (with and without shell_v2) and ``sync`` (STAT, SEND, RECV). Commands run in /bin/sh of this machine, with
/data/local/tmp standing for a folder of the test.
"""

from __future__ import annotations

import os
import queue
import signal
import socket
import struct
import subprocess
import threading
from contextlib import suppress
from pathlib import Path
from typing import IO, Final

from msgspec import Struct, field

WORK_FOLDER: Final = "/data/local/tmp"
_HEADER: Final = struct.Struct("<4s5I")
_TOKEN: Final = 1
_STDOUT: Final = 1
_STDERR: Final = 2
_EXIT: Final = 3
_SYNC_BLOCK: Final = 65536


class Dropped(Exception):
    """The link is gone."""


class Behaviour(Struct):
    """``state``: what adb shall see. ``drop_after``: bytes from the host after which the link breaks, once; and
    ``drop_after_sent``: bytes to the host. Both count from when they are set, and greetings not at all.

    ``legacy``: no shell_v2. ``stalled``: nothing is answered from now on. ``spoiled``: files get one wrong byte.
    """

    state: str = "device"
    legacy: bool = False
    drop_after: int | None = None
    drop_after_sent: int | None = None
    stalled: bool = False
    spoiled: bool = False
    model: str = "Fake_1"
    environment: dict[str, str] = field(default_factory=dict)


class FakeDevice:
    """Listens on a free port of 127.0.0.1; ``serial`` is what adb calls it after ``adb connect``.

    ``heard`` is set when the host has taken something that a service wrote.
    """

    def __init__(self, folder: Path, behaviour: Behaviour | None = None) -> None:
        self.folder = folder
        self.behaviour = behaviour or Behaviour()
        self.heard = threading.Event()
        self.processes: list[subprocess.Popen[bytes]] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.serial = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._sockets: list[socket.socket] = []
        (folder / "tmp").mkdir(parents=True)
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()

    def path(self, remote: str) -> Path:
        """The file of this machine that stands for one of the device."""
        return Path(self.local(remote))

    def local(self, text: str) -> str:
        return text.replace(WORK_FOLDER, str(self.folder / "tmp"))

    def cut(self) -> None:
        """Pull the cable; the device can be connected again."""
        for link in self._sockets:
            with suppress(OSError):
                link.shutdown(socket.SHUT_RDWR)
        self._sockets.clear()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._accepting.join()  # else it might accept on the next listener, which gets the same number
        self._listener.close()
        self.cut()
        for process in self.processes:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def _accept(self) -> None:
        while True:
            try:
                link, _ = self._listener.accept()
            except OSError:
                return
            self._sockets.append(link)
            threading.Thread(target=_Link(self, link).serve, daemon=True).start()


class _Link:
    """One connection from a host."""

    def __init__(self, device: FakeDevice, link: socket.socket) -> None:
        self.device = device
        self.largest = 4096 if device.behaviour.legacy else 1 << 18
        self._version = 0x01000000 if device.behaviour.legacy else 0x01000001
        self._link = link
        self._streams: dict[int, _Stream] = {}
        self._lock = threading.Lock()
        self._opened = 0
        self._is_over = False

    def serve(self) -> None:
        try:
            while True:
                command, first, second, length, _, _ = _HEADER.unpack(self._read(_HEADER.size))
                payload = self._read(length)
                if command != b"CNXN":
                    self._count(length)
                self._handle(command, first, second, payload)
        except (Dropped, OSError):
            pass
        finally:
            for stream in list(self._streams.values()):
                stream.forget()
            with self._lock:
                self._is_over = True
                self._link.close()

    def send(self, command: bytes, first: int, second: int, payload: bytes = b"") -> None:
        magic = int.from_bytes(command, "little") ^ 0xFFFFFFFF
        header = _HEADER.pack(command, first, second, len(payload), sum(payload) & 0xFFFFFFFF, magic)
        with self._lock:
            if self._is_over:
                raise Dropped
            if command != b"CNXN":
                self._count_sent(len(payload))
            self._link.sendall(header + payload)

    def close_stream(self, stream: _Stream) -> None:
        if self._streams.pop(stream.number, None) is not None:
            with suppress(Dropped, OSError):
                self.send(b"CLSE", stream.number, stream.remote)
        stream.forget()

    def _read(self, length: int) -> bytes:
        data = bytearray()
        while len(data) < length:
            received = self._link.recv(length - len(data))
            if not received:
                raise Dropped
            data += received
        return bytes(data)

    def _count(self, length: int) -> None:
        behaviour = self.device.behaviour
        if behaviour.drop_after is not None:
            behaviour.drop_after -= length
            if behaviour.drop_after < 0:
                behaviour.drop_after = None
                raise Dropped

    def _count_sent(self, length: int) -> None:
        behaviour = self.device.behaviour
        if behaviour.drop_after_sent is not None:
            behaviour.drop_after_sent -= length
            if behaviour.drop_after_sent < 0:
                behaviour.drop_after_sent = None
                self._is_over = True
                self._link.shutdown(socket.SHUT_RDWR)
                raise Dropped

    def _handle(self, command: bytes, first: int, second: int, payload: bytes) -> None:
        behaviour = self.device.behaviour
        if behaviour.stalled:
            return
        if command == b"CNXN" and behaviour.state == "device":
            self._greet()
        elif command in (b"CNXN", b"AUTH") and behaviour.state == "unauthorized":
            if command == b"CNXN" or first == 2:
                self.send(b"AUTH", _TOKEN, 0, os.urandom(20))
        elif command == b"OPEN":
            self._open(first, payload.rstrip(b"\0").decode())
        elif second in self._streams:
            self._hand_on(self._streams[second], command, payload)

    def _greet(self) -> None:
        model = self.device.behaviour.model
        features = "" if self.device.behaviour.legacy else "features=shell_v2,cmd"
        names = f"ro.product.name={model};ro.product.model={model};ro.product.device={model};{features}"
        self.send(b"CNXN", self._version, self.largest, f"device::{names}".encode())

    def _open(self, remote: int, service: str) -> None:
        kind, _, argument = service.partition(":")
        self._opened += 1
        stream = _Stream(self, self._opened, remote)
        if kind.split(",")[0] not in ("shell", "sync"):
            self.send(b"CLSE", 0, remote)
            return
        self._streams[stream.number] = stream
        self.send(b"OKAY", stream.number, remote)
        serve = _serve_sync if kind == "sync" else _serve_shell
        threading.Thread(target=stream.run, args=(serve, "v2" in kind.split(","), argument), daemon=True).start()

    def _hand_on(self, stream: _Stream, command: bytes, payload: bytes) -> None:
        if command == b"WRTE":
            stream.arrived.put(payload)
            self.send(b"OKAY", stream.number, stream.remote)
        elif command == b"OKAY":
            stream.ready.release()
        elif command == b"CLSE":
            self._streams.pop(stream.number, None)
            stream.forget()


class _Stream:
    """One service that the host has opened."""

    def __init__(self, link: _Link, number: int, remote: int) -> None:
        self.link, self.number, self.remote = link, number, remote
        self.arrived: queue.Queue[bytes | None] = queue.Queue()
        self.ready = threading.Semaphore(0)
        self._rest = b""
        self._is_over = False
        self._lock = threading.Lock()

    def run(self, serve: object, is_v2: bool, argument: str) -> None:
        assert callable(serve)
        with suppress(Dropped, OSError):
            serve(self, is_v2, argument)
        self.link.close_stream(self)

    def write(self, data: bytes) -> None:
        with self._lock:
            for start in range(0, len(data), self.link.largest):
                if self._is_over:
                    raise Dropped
                self.link.send(b"WRTE", self.number, self.remote, data[start : start + self.link.largest])
                self.ready.acquire()
                if not self._is_over:
                    self.link.device.heard.set()

    def read(self, length: int) -> bytes:
        while len(self._rest) < length:
            data = self.arrived.get()
            if data is None:
                raise Dropped
            self._rest += data
        data, self._rest = self._rest[:length], self._rest[length:]
        return data

    def forget(self) -> None:
        self._is_over = True
        self.arrived.put(None)
        self.ready.release()


def _serve_shell(stream: _Stream, is_v2: bool, command: str) -> None:
    device = stream.link.device
    process = subprocess.Popen(
        ["/bin/sh", "-c", device.local(command)],
        cwd=device.folder,
        env={**os.environ, **device.behaviour.environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE if is_v2 else subprocess.STDOUT,
        start_new_session=True,
    )
    device.processes.append(process)
    pumps = [
        threading.Thread(target=_pump, args=(stream, output, number if is_v2 else None), daemon=True)
        for output, number in ((process.stdout, _STDOUT), (process.stderr, _STDERR))
        if output is not None
    ]
    for pump in pumps:
        pump.start()
    for pump in pumps:
        pump.join()
    code = process.wait()
    if is_v2:
        stream.write(struct.pack("<BIB", _EXIT, 1, code & 255))


def _pump(stream: _Stream, output: IO[bytes], number: int | None) -> None:
    """Send what a process prints: in packets of shell_v2, or as a terminal of before that does."""
    with output, suppress(Dropped, OSError):
        while data := os.read(output.fileno(), 32768):
            packet = data.replace(b"\n", b"\r\n") if number is None else struct.pack("<BI", number, len(data)) + data
            stream.write(packet)


def _serve_sync(stream: _Stream, _is_v2: bool, _argument: str) -> None:
    while True:
        request, length = struct.unpack("<4sI", stream.read(8))
        if request == b"QUIT":
            return
        argument = stream.read(length).decode()
        if request == b"STAT":
            stream.write(b"STAT" + _stat(stream.link.device.path(argument)))
        elif request == b"SEND":
            stream.write(_receive(stream, argument.rpartition(",")[0]))
        elif request == b"RECV":
            _send(stream, stream.link.device.path(argument))
        else:
            return


def _stat(path: Path) -> bytes:
    if not path.exists():
        return bytes(12)
    found = path.stat()
    return struct.pack("<III", found.st_mode, found.st_size, int(found.st_mtime))


def _receive(stream: _Stream, remote: str) -> bytes:
    """Write what the host sends; a file that does not come whole is deleted, as adbd does."""
    path = stream.link.device.path(remote)
    content = bytearray()
    while True:
        part, length = struct.unpack("<4sI", stream.read(8))
        if part == b"DONE":
            break
        content += stream.read(length)
    if stream.link.device.behaviour.spoiled and content:
        content[0] ^= 1
    try:
        path.write_bytes(content)
    except OSError as error:
        return _failure(error)
    return b"OKAY" + bytes(4)


def _send(stream: _Stream, path: Path) -> None:
    try:
        content = path.read_bytes()
    except OSError as error:
        stream.write(_failure(error))
        return
    for start in range(0, len(content), _SYNC_BLOCK):
        block = content[start : start + _SYNC_BLOCK]
        stream.write(b"DATA" + struct.pack("<I", len(block)) + block)
    stream.write(b"DONE" + bytes(4))


def _failure(error: OSError) -> bytes:
    text = str(error.strerror).encode()
    return b"FAIL" + struct.pack("<I", len(text)) + text

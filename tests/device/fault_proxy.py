"""A link between adb's server and a device that breaks, stalls or is slow on demand.

The proxy runs as a process in the network of the device, as ``python fault_proxy.py PORT DEVICE_PORT``. It takes a
command per line from its stdin, and answers each with ``ok`` and the bytes that have passed up and down.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from types import TracebackType
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from tests.device.real_device import Network, RealDevice

PROXY_PORT: Final = 17655
"""As those of the devices: outside 5555-5585."""
Direction = Literal["up", "down"]
_BLOCK: Final = 65536
_BLOCKS_PER_S: Final = 20


class FaultProxy:
    """A link to a device, from entering the context to its end; ``serial`` is the device's name through it.

    ``up`` is towards the device, ``down`` towards adb.
    """

    def __init__(self, network: Network, device: RealDevice, port: int = PROXY_PORT) -> None:
        self.device = device
        self.serial = f"127.0.0.1:{port}"
        self._command = network.command(sys.executable, __file__, str(port), str(device.port))

    @property
    def log(self) -> str:
        """What the device's daemon wrote."""
        return self.device.log

    def __enter__(self) -> FaultProxy:
        self._process = subprocess.Popen(self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._read()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.communicate()

    def cut(self) -> None:
        """Break the link; the next connection is fine."""
        self._say("cut")

    def cut_after(self, direction: Direction, count: int) -> None:
        """Break the link when ``count`` more bytes have passed; the next connection is fine."""
        self._say(f"cut_after {direction} {count}")

    def hold_after(self, direction: Direction, count: int) -> None:
        """Forward nothing once ``count`` more bytes have passed, until :meth:`release`, or the link is broken here."""
        self._say(f"hold_after {direction} {count}")

    def release(self) -> None:
        """Let what is held go on; nothing where nothing is held."""
        self._say("release")

    def go_away(self) -> None:
        """Break the link, and every new one at once, until :meth:`go_on`."""
        self._say("go_away")

    def stall(self) -> None:
        """Accept everything and forward nothing until :meth:`go_on`."""
        self._say("stall")

    def slow_down(self, bytes_per_s: int) -> None:
        """Let no more through in either direction until :meth:`go_on`."""
        self._say(f"slow_down {bytes_per_s}")

    def go_on(self) -> None:
        """Let everything through at full speed."""
        self._say("go_on")

    def passed(self, direction: Direction) -> int:
        """The bytes that have passed since the proxy started."""
        return self._say("count")[direction]

    def _say(self, line: str) -> dict[Direction, int]:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()
        return self._read()

    def _read(self) -> dict[Direction, int]:
        assert self._process.stdout is not None
        word, up, down = self._process.stdout.readline().split()
        assert word == "ok"
        return {"up": int(up), "down": int(down)}


class _Proxy:
    """The process's side: all connections, and what happens to them."""

    def __init__(self, device_port: int) -> None:
        self.passed: dict[Direction, int] = {"up": 0, "down": 0}
        self._device_port = device_port
        self._cut_at: dict[Direction, int] = {}
        self._hold_at: dict[Direction, int] = {}
        self._flows = asyncio.Event()
        self._flows.set()
        self._is_released = asyncio.Event()
        self._is_released.set()
        self._is_away = False
        self._bytes_per_s: int | None = None
        self._ends: set[asyncio.StreamWriter] = set()
        self._links = 0

    def obey(self, command: str, *arguments: str) -> None:
        if command in ("cut_after", "hold_after"):
            direction: Direction = "up" if arguments[0] == "up" else "down"
            limits = self._cut_at if command == "cut_after" else self._hold_at
            limits[direction] = self.passed[direction] + int(arguments[1])
        elif command == "slow_down":
            self._bytes_per_s = int(arguments[0])
        elif command == "stall":
            self._flows.clear()
        elif command == "go_on":
            self._is_away, self._bytes_per_s = False, None
            self._flows.set()
            self._release()
        elif command == "release":
            self._release()
        elif command in ("cut", "go_away"):
            self._is_away = command == "go_away"
            self._cut()
        elif command != "count":
            raise ValueError(command)

    async def close(self) -> None:
        """End all connections, and wait for it."""
        self.obey("go_on")
        self.obey("go_away")
        while self._links:
            await asyncio.sleep(1 / _BLOCKS_PER_S)

    def _cut(self) -> None:
        for end in self._ends:
            end.transport.abort()
        self._ends.clear()
        self._release()

    def _release(self) -> None:
        self._hold_at.clear()
        self._is_released.set()

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._is_away:
            writer.transport.abort()
            return
        try:
            device_reader, device_writer = await asyncio.open_connection("127.0.0.1", self._device_port)
        except OSError:
            writer.transport.abort()
            return
        ends = {writer, device_writer}
        self._ends |= ends
        self._links += 1
        await asyncio.gather(self._pump(reader, device_writer, "up"), self._pump(device_reader, writer, "down"))
        self._links -= 1
        self._ends -= ends

    async def _pump(self, source: asyncio.StreamReader, target: asyncio.StreamWriter, direction: Direction) -> None:
        """Forward one direction until one of both ends is closed, then close the other."""
        try:
            while data := await source.read(self._block()):
                await self._flows.wait()
                await self._is_released.wait()
                left = self._cut_at.get(direction, sys.maxsize) - self.passed[direction]
                target.write(data[:left])
                await target.drain()
                self.passed[direction] += len(data[:left])
                if len(data) >= left:
                    del self._cut_at[direction]
                    self._cut()
                if self.passed[direction] >= self._hold_at.get(direction, sys.maxsize):
                    self._is_released.clear()
                if self._bytes_per_s is not None:
                    await asyncio.sleep(len(data) / self._bytes_per_s)
        except ConnectionError:  # as a broken link is what this is for
            pass
        finally:
            target.close()

    def _block(self) -> int:
        return _BLOCK if self._bytes_per_s is None else max(1, min(_BLOCK, self._bytes_per_s // _BLOCKS_PER_S))


async def _serve(port: int, device_port: int) -> None:
    proxy = _Proxy(device_port)
    server = await asyncio.start_server(proxy.accept, "127.0.0.1", port)
    commands = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(commands), sys.stdin)
    print("ok 0 0", flush=True)
    while line := await commands.readline():
        proxy.obey(*line.decode().split())
        print("ok", proxy.passed["up"], proxy.passed["down"], flush=True)
    server.close()
    await proxy.close()


if __name__ == "__main__":
    asyncio.run(_serve(int(sys.argv[1]), int(sys.argv[2])))

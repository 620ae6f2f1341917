"""A protocol whose answers a test writes, to be served by the driver."""

from __future__ import annotations

import struct
import threading
from collections.abc import Callable

from logstore.compat.connection import Chunk, FrameBuffer
from logstore.compat.offload import Offload
from logstore.compat.waiting import Timers
from logstore.host import Clock
from logstore.os_host import system_host

SECONDS_MAX = 20
_FRAME_BYTES_MAX = 64 * 1024 * 1024

Answer = Callable[["ScriptedConnection", bytes], list[Chunk]]


class ScriptedConnection:
    """Answers each frame as the service's script says, in the order of the frames."""

    def __init__(self, service: ScriptedService) -> None:
        self.service = service
        self.output: list[Chunk] = []
        self.is_closing = False
        self.is_waiting = False
        self.is_lost = False
        self.on_output: Callable[[], None] | None = None
        self.frames = FrameBuffer(_FRAME_BYTES_MAX)

    def writable(self) -> memoryview:
        """Return where to put the next bytes."""
        return self.frames.writable()

    def received(self, count: int) -> None:
        """Answer every whole frame, until one must wait."""
        self.frames.received(count)
        self.serve()

    def serve(self) -> None:
        """Answer what has arrived."""
        while not (self.is_waiting or self.is_closing):
            frame = self.frames.next_frame()
            if frame is None:
                return
            self.service.handled += 1
            self.output += self.service.answer(self, bytes(frame))

    def come_back(self, chunks: list[Chunk]) -> None:
        """Give an answer that was waited for."""
        self.is_waiting = False
        self.output += chunks
        self.serve()
        if self.on_output is not None:
            self.on_output()

    def lost(self) -> None:
        """Take note that the peer is gone."""
        self.is_lost = True
        self.service.lost.release()


class ScriptedService:
    """A service whose answers a test writes."""

    def __init__(
        self, answer: Answer, *, idle_ms_max: int = -1, clock: Clock | None = None
    ) -> None:
        self.idle_ms_max = idle_ms_max
        self.timers = Timers(clock or system_host().clock)
        self.offload: Offload = refuse_to_offload
        self.answer = answer
        self.handled = 0
        self.connections: list[ScriptedConnection] = []
        self.lost = threading.Semaphore(0)

    def connect(self, peer_host: str, peer_port: int) -> ScriptedConnection:
        """Return the other side of a new connection."""
        assert peer_host == "127.0.0.1"
        assert peer_port > 0
        self.connections.append(ScriptedConnection(self))
        return self.connections[-1]

    def wait_for_loss(self) -> None:
        """Return once one more connection was lost."""
        assert self.lost.acquire(timeout=SECONDS_MAX)


def refuse_to_offload(
    work: Callable[[], None], done: Callable[[BaseException | None], None]
) -> None:
    """Stand where no server offers its threads."""
    raise AssertionError("there is no server")


def echo(connection: ScriptedConnection, frame: bytes) -> list[Chunk]:
    """Answer with the same."""
    return [struct.pack(">i", len(frame)), frame]


def always(*chunks: Chunk) -> Answer:
    """Return a script that gives the same answer to everything."""

    def answer(connection: ScriptedConnection, frame: bytes) -> list[Chunk]:
        return list(chunks)

    return answer

"""Sockets on which nothing moves are closed by the server, and no others."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Iterator

import pytest

from logstore.compat import TestBroker
from logstore.compat.connection import Chunk
from logstore.compat.running import ServerThread
from logstore.testing import ManualClock
from tests.compat.scripted_service import (
    SECONDS_MAX,
    Answer,
    ScriptedConnection,
    ScriptedService,
    always,
    echo,
)

IDLE_MS_MAX = 4000
MIB = 1024 * 1024
#: one frame of one byte
QUESTION = struct.pack(">i", 1) + b"?"
#: ApiVersions v0, correlation id 5, no client id
API_VERSIONS = bytes.fromhex("0000000a 0012 0000 00000005 ffff")


class Stage:
    """A script that is served, on a clock that the test turns."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.thread: ServerThread | None = None

    def serve(self, answer: Answer = echo) -> None:
        """Start to serve."""
        self.service = ScriptedService(answer, idle_ms_max=IDLE_MS_MAX, clock=self.clock)
        ports: list[int] = []
        self.thread = ServerThread(self.service, ports.append)
        self.thread.start("127.0.0.1", 0)
        self.port = ports[0]

    def let_pass(self, delay_ms: float) -> None:
        """Turn the clock in steps that no sweep is longer than."""
        assert self.thread is not None

        def step() -> None:
            self.clock.advance(step_ms)
            self.service.timers.run()

        while delay_ms > 0:
            step_ms = min(delay_ms, 100)
            self.thread.call(step)
            delay_ms -= step_ms

    def close(self) -> None:
        """End all."""
        if self.thread is not None:
            self.thread.stop()


@pytest.fixture
def stage() -> Iterator[Stage]:
    """What is served in a test ends with it."""
    stage = Stage()
    yield stage
    stage.close()


def connect(port: int, *, receive_buffer_bytes: int = 0) -> socket.socket:
    """Connect a socket that gives up after a while."""
    peer = socket.socket()
    if receive_buffer_bytes:
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
    peer.settimeout(SECONDS_MAX)
    peer.connect(("127.0.0.1", port))
    return peer


def ask(peer: socket.socket, question: bytes = QUESTION) -> bytes:
    """Send a frame and return the one that answers it."""
    peer.sendall(question)
    return take(peer, int.from_bytes(take(peer, 4), "big"))


def take(peer: socket.socket, size_bytes: int) -> bytes:
    """Receive exactly so much."""
    pieces: list[bytes] = []
    while size_bytes:
        piece = peer.recv(size_bytes)
        assert piece, f"hung up on, {size_bytes} bytes before the end"
        pieces.append(piece)
        size_bytes -= len(piece)
    return b"".join(pieces)


def is_over(peer: socket.socket) -> bool:
    """Tell, without waiting, whether the other side has hung up; nothing else may have come."""
    peer.setblocking(False)
    try:
        return peer.recv(1) == b""
    except BlockingIOError:
        return False
    finally:
        peer.settimeout(SECONDS_MAX)


def test_who_asks_nothing_is_hung_up_on(stage: Stage) -> None:
    """Once the time has passed since the last request; the one who asked later stays on."""
    stage.serve()
    with connect(stage.port) as first, connect(stage.port) as second:
        assert ask(first) == ask(second) == b"?"
        stage.let_pass(IDLE_MS_MAX - 100)
        assert ask(second) == b"?"
        stage.let_pass(100)
        assert not is_over(first)
        stage.let_pass(1000)
        assert first.recv(1) == b""
        stage.service.wait_for_loss()
        assert ask(second) == b"?"


def test_a_stranger_without_a_word_is_hung_up_on(stage: Stage) -> None:
    """The time counts from the connection on."""
    stage.serve()
    with connect(stage.port) as stranger, connect(stage.port) as other:
        assert ask(other) == b"?"  # so that the stranger is known too
        stage.let_pass(IDLE_MS_MAX - 100)
        assert not is_over(stranger)
        stage.let_pass(1000)
        assert stranger.recv(1) == b""


def test_waiting_for_an_answer_is_silence(stage: Stage) -> None:
    """A request that is being served does not keep its connection, as in Kafka."""

    def wait(connection: ScriptedConnection, frame: bytes) -> list[Chunk]:
        connection.is_waiting = frame == b"?"
        return [] if connection.is_waiting else echo(connection, frame)

    stage.serve(wait)
    with connect(stage.port) as waiting, connect(stage.port) as other:
        waiting.sendall(QUESTION)
        assert ask(other, struct.pack(">i", 1) + b"!") == b"!"
        stage.let_pass(IDLE_MS_MAX + 1000)
        assert waiting.recv(1) == b""


def test_a_slow_reader_is_not_silent(stage: Stage) -> None:
    """As long as bytes of an answer go out the connection is kept, for many times the limit."""
    stage.serve(always(bytes(32 * MIB)))
    with connect(stage.port, receive_buffer_bytes=4096) as slow:
        slow.sendall(QUESTION)
        for _ in range(32):  # the system's buffers hold a good deal less than 8 MiB
            take(slow, MIB)
            stage.let_pass(IDLE_MS_MAX / 8)
        assert not is_over(slow)


def test_a_reader_that_never_reads_is_hung_up_on(stage: Stage) -> None:
    """An answer that nobody takes does not keep a connection for ever."""
    stage.serve(always(bytes(32 * MIB)))
    with connect(stage.port, receive_buffer_bytes=4096) as stuck:
        stuck.sendall(QUESTION)
        take(stuck, 1)
        stage.let_pass(IDLE_MS_MAX + 1000)
        stage.service.wait_for_loss()
        assert not stage.service.lost.acquire(blocking=False), "it was lost once"


def test_a_stopped_server_can_be_started_again(stage: Stage) -> None:
    """No sweep of the first time is left to the second."""
    stage.serve()
    assert stage.thread is not None
    stage.thread.stop()
    assert stage.service.timers.next_due_ms() is None


def test_an_idle_client_of_a_broker_is_hung_up_on() -> None:
    """After connections.max.idle.ms of real time, not before; who goes on asking stays."""
    idle_ms_max = 200
    with (
        TestBroker(settings={"connections.max.idle.ms": str(idle_ms_max)}) as broker,
        connect(broker.port) as idle,
        connect(broker.port) as lively,
    ):
        asked_at = time.monotonic()
        answer = ask(idle, API_VERSIONS)
        while not is_over(idle):
            assert ask(lively, API_VERSIONS) == answer
        assert time.monotonic() - asked_at > idle_ms_max / 1000
        assert ask(lively, API_VERSIONS) == answer

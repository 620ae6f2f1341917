"""The loops that keep a broker busy, against a small server that counts."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager

import pytest

from logstore.tools.bench.client import Connection
from logstore.tools.bench.frames import (
    BenchError,
    FetchReply,
    ProduceReplies,
    fetch_frame,
    produce_frame,
    record_batch,
)
from logstore.tools.bench.pipeline import (
    drive_fetch,
    drive_requests,
    latencies_of_many_us,
    latencies_us,
)
from tests.tools.bench_replies import fetch_reply, produce_reply

FRAME = produce_frame("bench", [0], record_batch([b"x" * 100]))
GOOD = produce_reply("bench", [0])
REPLIES = ProduceReplies.about("bench", 1)


class CountingServer:
    """
    Answers every frame of every connection with `reply(n)`, the n-th frame counted from 0.

    A reply of None hangs up. `seen` holds the frames, `waiting_max` the most that were there at
    once.
    """

    def __init__(self, reply: Callable[[int], bytes | None]) -> None:
        self.seen: list[bytes] = []
        self._reply = reply
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=600)
        self.address: tuple[str, int] = self._listener.getsockname()
        self._threads: list[threading.Thread] = []

    def serve(self, connection_count: int) -> None:
        """Take so many connections, each on a thread of its own."""
        for _ in range(connection_count):
            peer, _ = self._listener.accept()
            thread = threading.Thread(target=self._answer, args=(peer,))
            thread.start()
            self._threads.append(thread)

    def _answer(self, peer: socket.socket) -> None:
        with peer, peer.makefile("rb") as stream:
            while size := stream.read(4):
                self.seen.append(size + stream.read(struct.unpack(">i", size)[0]))
                reply = self._reply(len(self.seen) - 1)
                if reply is None:
                    return
                peer.sendall(reply)

    def close(self) -> None:
        """Wait for the connections to end."""
        for thread in self._threads:
            thread.join()
        self._listener.close()


@contextmanager
def connected(
    reply: Callable[[int], bytes | None], count: int = 1
) -> Generator[tuple[CountingServer, list[Connection]]]:
    """Yield a server and so many connections to it."""
    server = CountingServer(reply)
    accepting = threading.Thread(target=server.serve, args=(count,))
    accepting.start()
    connections = [Connection(server.address) for _ in range(count)]
    accepting.join()
    try:
        yield server, connections
    finally:
        for connection in connections:
            connection.close()
        server.close()


def test_every_request_is_answered_and_counted() -> None:
    """What the loop says was answered is what the server got, frame by frame."""
    with connected(lambda _: GOOD) as (server, (connection,)):
        driven = drive_requests(
            connection, [FRAME], REPLIES, in_flight=64, seconds=60, requests_max=1000
        )
        assert driven.requests == len(server.seen) == 1000
        assert set(server.seen) == {FRAME}
        assert driven.received_bytes == 1000 * len(GOOD)


def test_the_loop_ends_when_its_time_is_up() -> None:
    """With no time at all, the first window is sent and waited for."""
    with connected(lambda _: GOOD) as (server, (connection,)):
        driven = drive_requests(connection, [FRAME], REPLIES, in_flight=5, seconds=0)
        assert driven.requests == len(server.seen) == 5


def test_frames_are_sent_in_turn() -> None:
    """Partitions are appended to round and round, whatever the window."""
    frames = [produce_frame("bench", [index], record_batch([b"x"])) for index in range(7)]
    with connected(lambda _: GOOD) as (server, (connection,)):
        drive_requests(connection, frames, REPLIES, in_flight=3, seconds=60, requests_max=100)
        assert server.seen == [frames[at % 7] for at in range(100)]


def test_an_error_in_the_stream_of_replies_ends_the_loop() -> None:
    """A benchmark of refused requests would be a fast one; it is none."""
    bad = produce_reply("bench", [6])
    with (
        connected(lambda at: bad if at == 37 else GOOD) as (_, (connection,)),
        pytest.raises(BenchError, match="error 6 "),
    ):
        drive_requests(connection, [FRAME], REPLIES, in_flight=8, seconds=60, requests_max=99)


def test_a_server_that_hangs_up_is_an_error() -> None:
    """No loop takes the end of the connection for the end of its work."""
    with connected(lambda _: None) as (_, (connection,)), pytest.raises((BenchError, OSError)):
        drive_requests(connection, [FRAME], REPLIES, in_flight=1, seconds=60, requests_max=9)


def test_latencies_are_one_per_request_and_sorted() -> None:
    """Every request of the loop left one sample."""
    with connected(lambda _: GOOD) as (server, (connection,)):
        latencies = latencies_us(connection, FRAME, REPLIES, seconds=0.05)
        assert len(latencies) == len(server.seen) > 0
        assert latencies == sorted(latencies)


def test_many_connections_have_one_request_in_flight_each() -> None:
    """All connections are heard, and the samples are those of all."""
    frames = [produce_frame("bench", [index], record_batch([b"x"])) for index in range(9)]
    with connected(lambda _: GOOD, count=9) as (server, connections):
        latencies = latencies_of_many_us(connections, lambda at: frames[at], REPLIES, seconds=0.05)
        assert len(latencies) == len(server.seen)
        assert set(server.seen) == set(frames)


def test_fetched_bytes_are_those_behind_the_prefixes() -> None:
    """The loop counts what came, whatever the replies' lengths."""
    lengths = [0, 10, 5000]
    reply = FetchReply.about("bench")
    frames = [fetch_frame("bench", 0, at, bytes_max=1000) for at in range(3)]

    def answer(at: int) -> bytes:
        return fetch_reply("bench", 0, 0, b"r" * lengths[at % 3])

    with connected(answer) as (server, (connection,)):
        driven = drive_fetch(connection, frames, reply, in_flight=3, seconds=0)
        assert driven.requests == len(server.seen) == 3
        expected = sum(len(answer(at)) - reply.prefix_bytes for at in range(3))
        assert driven.received_bytes == expected

"""Loops that keep a broker busy with frames made beforehand, at little cost to the client."""

from __future__ import annotations

import select
import socket
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import attrs

from logstore.tools.bench.client import Connection
from logstore.tools.bench.frames import BenchError, EqualReplies, FetchReply

if TYPE_CHECKING:
    from collections.abc import Callable

RECEIVE_BYTES = 1 << 20
#: How many bytes of frames are prepared and sent again and again; they stay in the CPU's cache.
BLOCK_BYTES = 1 << 20


@attrs.frozen
class Driven:
    """What a loop has done: requests answered, bytes received, and how long it took."""

    requests: int
    received_bytes: int
    seconds: float


class _Block:
    """Frames of one size, in turn; `send` sends the next so many with as few calls as it can."""

    def __init__(self, frames: Sequence[bytes]) -> None:
        self._frame_bytes = len(frames[0])
        assert all(len(frame) == self._frame_bytes for frame in frames)
        repeats = max(1, BLOCK_BYTES // (self._frame_bytes * len(frames)))
        self._count = repeats * len(frames)
        self._view = memoryview(b"".join(frames) * repeats)
        self._next = 0

    def send(self, connection: socket.socket, count: int) -> None:
        while count:
            piece = min(count, self._count - self._next)
            start = self._next * self._frame_bytes
            connection.sendall(self._view[start : start + piece * self._frame_bytes])
            self._next = (self._next + piece) % self._count
            count -= piece


def drive_requests(
    connection: Connection,
    frames: Sequence[bytes],
    replies: EqualReplies,
    *,
    in_flight: int,
    seconds: float,
    requests_max: int | None = None,
) -> Driven:
    """
    Send the frames in turn for so long, `in_flight` of them unanswered; wait for every answer.

    The window is filled up again when a quarter of it is free, so that the client makes few calls.
    """
    peer = connection.socket
    block = _Block(frames)
    buffer = bytearray(RECEIVE_BYTES)
    view = memoryview(buffer)
    refill_at = max(1, in_flight // 4)
    limit = requests_max or 1 << 62
    sent = answered = filled = free = 0
    started = time.perf_counter()
    stop_at = started + seconds
    block.send(peer, min(in_flight, limit))
    sent = min(in_flight, limit)
    while answered < sent:
        filled += _receive_into(peer, view[filled:])
        count = replies.check(buffer, filled)
        rest = filled - count * replies.size_bytes
        view[:rest] = bytes(view[filled - rest : filled])
        filled = rest
        answered += count
        free += count
        if free >= refill_at and sent < limit and time.perf_counter() < stop_at:
            free = min(free, limit - sent)
            block.send(peer, free)
            sent += free
            free = 0
    elapsed = time.perf_counter() - started
    return Driven(answered, answered * replies.size_bytes, elapsed)


def latencies_us(
    connection: Connection, frame: bytes, replies: EqualReplies, *, seconds: float
) -> list[float]:
    """Return the round trip times in microseconds, sorted; one request in flight at any time."""
    peer = connection.socket
    buffer = bytearray(max(4096, replies.size_bytes))
    view = memoryview(buffer)
    clock = time.perf_counter_ns
    latencies: list[float] = []
    stop_at = clock() + int(seconds * 1e9)
    started = clock()
    while started < stop_at:
        peer.sendall(frame)
        filled = _receive_into(peer, view)
        while filled < replies.size_bytes:
            filled += _receive_into(peer, view[filled:])
        ended = clock()
        latencies.append((ended - started) / 1000)
        replies.check(buffer, filled)
        started = clock()
    latencies.sort()
    return latencies


def drive_fetch(
    connection: Connection,
    frames: Sequence[bytes],
    reply: FetchReply,
    *,
    in_flight: int,
    seconds: float,
) -> Driven:
    """Fetch with the frames in turn for so long; what comes is counted, not looked at."""
    peer = connection.socket
    block = _Block(frames)
    prefix = bytearray(reply.prefix_bytes)
    view = memoryview(bytearray(RECEIVE_BYTES))
    answered = received = 0
    started = time.perf_counter()
    stop_at = started + seconds
    block.send(peer, in_flight)
    outstanding = in_flight
    while outstanding:
        filled = 0
        while filled < len(prefix):
            filled += _receive_into(peer, memoryview(prefix)[filled:])
        remaining = reply.check(prefix)
        received += remaining
        while remaining:
            remaining -= _receive_into(peer, view[:remaining])
        answered += 1
        if time.perf_counter() < stop_at:
            block.send(peer, 1)
        else:
            outstanding -= 1
    return Driven(answered, received, time.perf_counter() - started)


def latencies_of_many_us(
    connections: Sequence[Connection],
    frame_of: Callable[[int], bytes],
    replies: EqualReplies,
    *,
    seconds: float,
) -> list[float]:
    """
    Return the sorted round trip times in microseconds of all connections together.

    Every connection has one request in flight all the time; `frame_of(n)` is the n-th's request.
    """
    clock = time.perf_counter_ns
    poll = select.epoll()
    peers = {one.socket.fileno(): (at, one.socket) for at, one in enumerate(connections)}
    frames = [frame_of(at) for at in range(len(connections))]
    begun = [0] * len(connections)
    latencies: list[float] = []
    outstanding = len(connections)
    try:
        stop_at = clock() + int(seconds * 1e9)
        for descriptor, (at, peer) in peers.items():
            poll.register(descriptor, select.EPOLLIN)
            begun[at] = clock()
            peer.sendall(frames[at])
        while outstanding:
            ready = poll.poll(60)
            if not ready:
                raise BenchError("no reply for 60 s")
            for descriptor, _ in ready:
                at, peer = peers[descriptor]
                reply = peer.recv(4096)
                now = clock()
                if replies.check(reply, len(reply)) != 1:
                    raise BenchError("a reply came in pieces or not at all")
                latencies.append((now - begun[at]) / 1000)
                if now < stop_at:
                    begun[at] = now
                    peer.sendall(frames[at])
                else:
                    outstanding -= 1
    finally:
        poll.close()
    latencies.sort()
    return latencies


def delivery_latencies_us(
    producer: Connection,
    consumer: Connection,
    produce_frame: bytes,
    fetch_frames: Callable[[int], bytes],
    *,
    next_offset: int,
    seconds: float,
    pause_s: float = 0.001,
) -> list[float]:
    """
    Return the sorted times in microseconds from sending a record to having it from a waiting fetch.

    The fetch is sent first and given `pause_s` to become a waiting one.
    """
    clock = time.perf_counter_ns
    latencies: list[float] = []
    stop_at = clock() + int(seconds * 1e9)
    while clock() < stop_at:
        consumer.socket.sendall(fetch_frames(next_offset))
        time.sleep(pause_s)
        started = clock()
        producer.socket.sendall(produce_frame)
        fetched = consumer.receive()
        ended = clock()
        producer.receive()
        if len(fetched) < len(produce_frame) // 2:
            raise BenchError("a waiting Fetch was answered without the record")
        latencies.append((ended - started) / 1000)
        next_offset += 1
    latencies.sort()
    return latencies


def _receive_into(peer: socket.socket, view: memoryview) -> int:
    count = peer.recv_into(view)
    if not count:
        raise BenchError("the server closed the connection")
    return count

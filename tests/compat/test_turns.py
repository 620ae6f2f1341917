"""Turns that follow one another: when a server looks for the next request before it sleeps."""

from __future__ import annotations

import asyncio
import os
import select
import socket
import time
from collections.abc import Callable, Iterator
from typing import Any, cast

import attrs
import pytest

from logstore.compat.connection import Chunk
from logstore.compat.turns import Turns

pytestmark = pytest.mark.skipif(
    not hasattr(select, "epoll"), reason="epoll is missing, by which these turns are taken"
)

_SOON_US, _JUST_LATE_US, _LATE_US = 100, 121, 200


@attrs.define
class _Echo:
    """A connection that answers what comes."""

    output: list[Chunk] = attrs.field(factory=list[Chunk])
    is_closing: bool = False
    is_waiting: bool = False
    on_output: Callable[[], None] | None = None
    served: list[bytes] = attrs.field(factory=list[bytes])
    _memory: bytearray = attrs.field(factory=lambda: bytearray(100))

    def writable(self) -> memoryview:
        return memoryview(self._memory)

    def received(self, count: int) -> None:
        self.served.append(bytes(self._memory[:count]))
        self.output.append(self.served[-1])

    def lost(self) -> None:
        self.is_closing = True


@attrs.define
class _Loop:
    """An event loop that is turned by hand."""

    take: Callable[[], None] = lambda: None

    def add_reader(self, descriptor: int, call: Callable[[], None]) -> None:
        assert descriptor >= 0
        self.take = call

    def remove_reader(self, descriptor: int) -> None:
        assert descriptor >= 0

    def call_soon(self, call: Callable[[], None]) -> None:
        call()


class _Stage:
    """One peer, a clock that goes by hand, and requests that come while somebody looks."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, looks: bool) -> None:
        self.now_us = 0
        #: requests that come after so many looks each
        self.coming: list[int] = []
        #: for how long somebody else has the processor that is given up
        self.others_us = 0
        self.look_count = 0
        self.loop = _Loop()
        monkeypatch.setattr(time, "perf_counter_ns", lambda: self.now_us * 1000)
        monkeypatch.setattr(os, "sched_yield", self._yielded)
        self.turns = Turns(cast("asyncio.AbstractEventLoop", self.loop), looks=looks)
        self.client, plain = socket.socketpair()
        plain.setblocking(False)
        self.connection = _Echo()
        self.turns.join(plain, cast("Any", self.connection), 0.0)

    def _yielded(self) -> None:
        """Let ten microseconds pass, in which a request may come, or what somebody else takes."""
        self.now_us += 10 + self.others_us
        self.look_count += 1
        if self.coming:
            self.coming[0] -= 1
            if not self.coming[0]:
                self.coming.pop(0)
                self.client.send(b"while it looked")

    def request(self, after_us: int) -> None:
        """Send a request that wakes the server so long after its last turn."""
        self.now_us += after_us
        self.client.send(b"request")
        self.loop.take()
        assert self.client.recv(1000)

    def close(self) -> None:
        for peer in list(self.turns.peers):
            peer.hang_up()
        self.turns.close()
        self.client.close()


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Iterator[_Stage]:
    """A server that looks."""
    stage = _Stage(monkeypatch, looks=True)
    yield stage
    stage.close()


def test_who_is_alone_looks_once_requests_come_soon(stage: _Stage) -> None:
    """After eight that came soon, one after the other; for as long as that is."""
    stage.request(_LATE_US)
    for _ in range(7):
        stage.request(_SOON_US)
    assert stage.look_count == 0
    stage.request(_SOON_US)
    assert stage.look_count == 13


def test_what_comes_meanwhile_is_served_at_once(stage: _Stage) -> None:
    """Without a waking; and the look begins anew behind each."""
    for _ in range(7):
        stage.request(_SOON_US)
    stage.coming = [5, 9, 1]
    stage.request(_SOON_US)
    assert stage.connection.served[-3:] == [b"while it looked"] * 3
    assert stage.coming == []
    assert stage.look_count == 15 + 13


def test_one_late_request_of_many_changes_nothing(stage: _Stage) -> None:
    """A client that stops for a moment is looked for when it goes on; some in a row end it."""
    for _ in range(7):
        stage.request(_SOON_US)
    stage.coming = [1] * 31
    stage.request(_SOON_US)
    stage.look_count = 0
    stage.request(_LATE_US)
    assert stage.look_count > 0
    for _ in range(3):
        stage.request(_LATE_US)
    stage.look_count = 0
    stage.request(_LATE_US)
    assert stage.look_count == 0


def test_requests_that_just_miss_a_look_end_it(stage: _Stage) -> None:
    """Or each would cost a look, and a waking as well."""
    for _ in range(8):
        stage.request(_SOON_US)
    for _ in range(3):
        stage.request(_JUST_LATE_US)
    stage.look_count = 0
    for _ in range(50):
        stage.request(_JUST_LATE_US)
    assert stage.look_count == 0


def test_nobody_looks_for_requests_that_come_late(stage: _Stage) -> None:
    """An idle server costs nothing, and one that is asked now and then neither."""
    for _ in range(50):
        stage.request(_LATE_US)
    for _ in range(20):
        for _ in range(3):
            stage.request(_SOON_US)
        stage.request(_LATE_US)
    assert stage.look_count == 0


def _quiet_looks(stage: _Stage, count: int) -> None:
    """Look so often and find the next request, while nobody else is about."""
    stage.others_us, stage.coming = 0, [1] * count
    while stage.coming:
        stage.request(_SOON_US)


def _looks_in(stage: _Stage, milliseconds: int) -> int:
    """Return how often was looked while requests came soon, and others took a while at each."""
    stage.look_count, stage.others_us = 0, 10 * _SOON_US
    end_us = stage.now_us + milliseconds * 1000
    while stage.now_us < end_us:
        stage.request(_SOON_US)
    return stage.look_count


def test_nobody_looks_while_others_want_the_processor(stage: _Stage) -> None:
    """Linux gives it back late: a look each 2, 4, ... 256 ms is what that may cost."""
    _quiet_looks(stage, 31)
    assert _looks_in(stage, 1) == 1
    assert _looks_in(stage, 50) == 4, "after 2, 4, 8 and 16 ms, and a millisecond each"
    assert _looks_in(stage, 500) > 0
    assert _looks_in(stage, 10 * 258) == 10


def test_a_pause_is_short_again_once_others_were_quiet(stage: _Stage) -> None:
    """Whoever wanted the processor may have been anybody."""
    _quiet_looks(stage, 31)
    _looks_in(stage, 1000)
    stage.now_us += 256_000
    _quiet_looks(stage, 1000)
    assert _looks_in(stage, 1) == 1
    assert _looks_in(stage, 4) == 1, "a pause of 2 ms"


def test_what_came_while_others_had_the_processor_is_served(stage: _Stage) -> None:
    """At once, though nobody looks behind it."""
    _quiet_looks(stage, 31)
    stage.coming, stage.look_count, stage.others_us = [1], 0, 1000
    stage.request(_SOON_US)
    assert stage.connection.served[-1] == b"while it looked"
    assert stage.look_count == 1


def test_the_loop_has_its_turn(stage: _Stage) -> None:
    """Timers and what other threads have done wait for some turns at most."""
    for _ in range(7):
        stage.request(_SOON_US)
    stage.coming = [1] * 100
    stage.request(_SOON_US)
    assert len(stage.coming) == 100 - 32
    stage.coming = []


def test_who_shares_its_process_does_not_look(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test's own threads want the processor, and the interpreter."""
    stage = _Stage(monkeypatch, looks=False)
    for _ in range(30):
        stage.request(_SOON_US)
    assert stage.look_count == 0
    assert len(stage.connection.served) == 30
    stage.close()


def test_one_that_is_gone_meanwhile_is_no_error(stage: _Stage) -> None:
    """Its end is told like a request."""
    for _ in range(7):
        stage.request(_SOON_US)
    stage.client.shutdown(socket.SHUT_WR)
    stage.now_us += _SOON_US
    stage.loop.take()
    assert stage.connection.is_closing
    assert not stage.turns.peers

"""
Turns: whoever has sent something is served, then all that came of it is sent.

The system tells who is ready (:mod:`logstore.compat.readiness`). Handling first and sending
afterwards costs a busy server least: a peer that gets an answer wakes, and waking one after the
other is cheaper than each by itself. So that nobody waits for long a turn has so many peers, and
sends early after one who brought much.

No transport of asyncio stands in between: each would call into Python several times a request.

Whoever sends one request at a time waits at each for this process to be woken, which on a virtual
machine takes as long as the rest. So where the last requests came soon, one after the other, a turn
is followed by a moment of looking for the next, in which others may have the processor. Where
others do want it, nobody looks for a while: Linux (since 6.6) lets a thread that gave its processor
up wait for a whole slice, also when a request comes in the next microsecond.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio
    import socket

    from logstore.compat.connection import Connection

from logstore.compat.peer import Peer
from logstore.compat.readiness import IN, readiness

_PEERS_MAX = 64
#: a turn comes soon if it comes so long after the end of the last one, which is how long one looks
_SOON_NS = 120_000
#: how sure it has to be that the next one comes soon before anybody looks. Each that does makes it
#: surer by one, each that does not by half less: one late request of hundreds changes nothing
_SURENESS_MIN, _SURENESS_MAX = 8, 64
#: giving the processor up takes a microsecond where nobody else wants it
_WANTED_NS = 20_000
#: for how long nobody looks after somebody else wanted the processor; each time twice as long, and
#: less by a part after each look in which nobody did
_PAUSE_NS_MIN, _PAUSE_NS_MAX = 2_000_000, 256_000_000
_PAUSE_PARTS = 64
#: turns that follow from looks, before the loop's other work has its turn
_FOLLOWING_MAX = 32


class Turns:
    """
    Serves all peers of one server, in the loop's thread.

    With `looks` a turn may be followed by a moment of looking for the next one: where the process
    is this server's, and has more than one processor.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, *, looks: bool = False) -> None:
        self.peers: set[Peer] = set()
        #: those with something to send at the end of the turn under way
        self.answered: list[Peer] = []
        self.is_under_way = False
        self._loop = loop
        self._by_descriptor: dict[int, Peer] = {}
        self._readiness = readiness(loop, self._take)
        self._poll = self._readiness.poll
        self._looks = looks
        #: when the last turn ended, and how sure it is that the next one comes soon
        self._ended_ns = self._sureness = 0
        #: until when nobody looks, and for how long the next time
        self._paused_until_ns, self._pause_ns = 0, _PAUSE_NS_MIN

    def join(self, plain: socket.socket, connection: Connection, now_ms: float) -> None:
        """Serve a peer from now on."""
        peer = Peer(plain, connection, self, now_ms)
        self.peers.add(peer)
        self._by_descriptor[peer.descriptor] = peer
        self._readiness.register(peer.descriptor, IN)

    def watch(self, descriptor: int, events: int) -> None:
        """Wait for other events of a peer."""
        self._readiness.modify(descriptor, events)

    def leave(self, peer: Peer) -> None:
        """Serve a peer no more; its connection is told soon."""
        self._readiness.unregister(peer.descriptor)
        del self._by_descriptor[peer.descriptor]
        self.peers.discard(peer)
        self._loop.call_soon(peer.lost)

    def _take(self) -> None:
        """Take a turn, and those that follow at once."""
        ready = self._poll(0, _PEERS_MAX)
        if not self._looks:
            self._serve(ready)
            return
        self._note(came_soon=time.perf_counter_ns() - self._ended_ns < _SOON_NS)
        self._serve(ready)
        for _ in range(_FOLLOWING_MAX):
            self._ended_ns = time.perf_counter_ns()
            if self._sureness < _SURENESS_MIN or self._ended_ns < self._paused_until_ns:
                return
            ready = self._look()
            if not ready:
                return  # whenever the next one comes, it comes late
            self._note(came_soon=True)
            self._serve(ready)
        self._ended_ns = time.perf_counter_ns()

    def _note(self, *, came_soon: bool) -> None:
        """Take into account when a turn came."""
        if came_soon:
            self._sureness = min(self._sureness + 1, _SURENESS_MAX)
        else:
            self._sureness //= 2

    def _look(self) -> list[tuple[int, int]]:
        """Wait for a moment for somebody to be ready, while nobody else wants the processor."""
        poll, clock = self._poll, time.perf_counter_ns
        now_ns = self._ended_ns
        end_ns = now_ns + _SOON_NS
        while not (ready := poll(0, _PEERS_MAX)):
            before_ns = clock()
            os.sched_yield()
            now_ns = clock()
            if now_ns - before_ns > _WANTED_NS:
                self._pause(now_ns)
                return poll(0, _PEERS_MAX)
            if now_ns > end_ns:
                break
        self._pause_ns = max(self._pause_ns - self._pause_ns // _PAUSE_PARTS, _PAUSE_NS_MIN)
        return ready

    def _pause(self, now_ns: int) -> None:
        """Look no more for a while."""
        self._paused_until_ns = now_ns + self._pause_ns
        self._pause_ns = min(2 * self._pause_ns, _PAUSE_NS_MAX)

    def _serve(self, ready: list[tuple[int, int]]) -> None:
        """Serve those who are ready."""
        peers = self._by_descriptor
        self.is_under_way = True
        try:
            for descriptor, events in ready:
                peer = peers.get(descriptor)
                if peer is not None:  # it may have been hung up on in this very turn
                    peer.ready(events)
        finally:
            self.is_under_way = False
        self.send()

    def send(self) -> None:
        """Send what has been answered so far."""
        for peer in self.answered:
            peer.answer()
        self.answered.clear()

    def part(self) -> None:
        """
        Take no more turns: send what has been answered, and tell everybody that no more follows.

        To close a socket while its peer still sends tears the connection down, and a peer that
        meets that while it writes never reads the answers that came before. It would send anew
        what was stored, and of a producer's batches only the last is known after a restart. So
        what they still send is to be thrown away, by :meth:`discard`, until they hang up.
        """
        self._readiness.mute()
        for peer in list(self.peers):
            peer.finish()

    def discard(self) -> None:
        """Throw away what has come since the parting."""
        for descriptor, _ in self._poll(0, _PEERS_MAX):
            peer = self._by_descriptor.get(descriptor)
            if peer is not None:
                peer.discard()

    def close(self) -> None:
        """Take no more turns; nobody is connected any more."""
        self._readiness.close()

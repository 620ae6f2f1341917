"""
Peers that have gone quiet: whose bytes have not moved for too long is hung up on.

A waiting request keeps nobody: as in Kafka only bytes that come or go count, so that a long poll
or a join that waits longer than that ends with the connection and without an answer.

No peer has a timer. Whoever moves the bytes leaves a mark, and a sweep now and then looks for the
marks; so a peer goes a little late (by less than two sweeps) and never early.

Source: ``Selector.IdleExpiryManager`` and ``Selector.close`` of Kafka.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from logstore.compat.waiting import Timer, Timers

SWEEP_INTERVAL_MS_MIN = 10
SWEEP_INTERVAL_MS_MAX = 1000
_SWEEPS_PER_LIMIT = 10


class Peer(Protocol):
    """Somebody whose bytes are moved."""

    #: when the peer was last known to be alive, on the monotonic clock
    quiet_since_ms: float

    def has_stirred(self) -> bool:
        """Tell whether bytes came or went since this was last asked."""
        ...

    def hang_up(self) -> None:
        """Drop the peer at once."""
        ...


class IdleSweep:
    """
    Hangs up on those of `peers` that were quiet for more than `idle_ms_max`.

    A negative limit is none. `peers` may change at any time.
    """

    def __init__(self, timers: Timers, peers: Collection[Peer], idle_ms_max: float) -> None:
        self.idle_ms_max = idle_ms_max
        self.interval_ms = min(
            max(idle_ms_max / _SWEEPS_PER_LIMIT, SWEEP_INTERVAL_MS_MIN), SWEEP_INTERVAL_MS_MAX
        )
        self._timers = timers
        self._peers = peers
        self._timer: Timer | None = None

    def start(self) -> None:
        """Sweep from now on, once in an interval."""
        if self.idle_ms_max >= 0:
            self._timer = self._timers.after(self.interval_ms, self._sweep)

    def stop(self) -> None:
        """Sweep no more."""
        if self._timer is not None:
            self._timer.cancel()

    def _sweep(self) -> None:
        self.start()
        now_ms = self._timers.clock.monotonic_ms()
        for peer in list(self._peers):
            if peer.has_stirred():
                peer.quiet_since_ms = now_ms
            elif now_ms - peer.quiet_since_ms > self.idle_ms_max:
                peer.hang_up()

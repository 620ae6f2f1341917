"""Unique keys for messages whose clients gave them none (MessageClientIDSetter)."""

from __future__ import annotations

import datetime

from logstore.host import Host
from logstore.segments.rocketmq.messages.host_address import HostAddress
from logstore.segments.rocketmq.messages.message_id import UniqueKey


class UniqueKeys:
    """Makes keys that nobody else makes: address, a number drawn at the start, time, a counter."""

    def __init__(self, host: Host, address: HostAddress) -> None:
        self._host = host
        self._address = address.address
        self._process = host.rng.getrandbits(16)
        self._class_loader = host.rng.getrandbits(32)
        self._counter = 0
        self._month_start_ms = 0
        self._month_end_ms = 0

    def make(self) -> str:
        """Return a new key."""
        now_ms = self._host.clock.wall_ms()
        if not self._month_start_ms <= now_ms < self._month_end_ms:
            self._turn_month(now_ms)
        self._counter += 1
        return str(
            UniqueKey(
                self._address,
                self._process,
                self._class_loader,
                now_ms - self._month_start_ms,
                self._counter,
            )
        )

    def _turn_month(self, now_ms: int) -> None:
        now = datetime.datetime.fromtimestamp(now_ms / 1000, datetime.UTC)
        start = now.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
        end = (start + datetime.timedelta(days=32)).replace(day=1)
        self._month_start_ms = int(start.timestamp()) * 1000
        self._month_end_ms = int(end.timestamp()) * 1000

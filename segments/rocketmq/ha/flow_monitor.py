"""How many bytes went over a replication connection, second by second (``FlowMonitor``)."""

from __future__ import annotations

from logstore.segments.rocketmq.ha.settings import HaSettings

__all__ = ["FlowMonitor"]

_SECOND_MS = 1000


class FlowMonitor:
    """Counts bytes and says how many more may go in this second."""

    __slots__ = ("_bytes", "_second_ms", "bytes_last_second", "settings")

    def __init__(self, settings: HaSettings, now_ms: float) -> None:
        self.settings = settings
        self._second_ms = now_ms
        self._bytes = 0
        self.bytes_last_second = 0

    def count(self, size_bytes: int, now_ms: float) -> None:
        """Take note of bytes that went over the connection."""
        self._turn(now_ms)
        self._bytes += size_bytes

    def allowance_bytes(self, now_ms: float) -> int | None:
        """Return how many bytes may be sent now, None if there is no limit."""
        if not self.settings.has_flow_control:
            return None
        self._turn(now_ms)
        return max(self.settings.bytes_a_second_max - self._bytes, 0)

    def last_second_bytes(self, now_ms: float) -> int:
        """Return how many bytes went in the second before this one."""
        self._turn(now_ms)
        return self.bytes_last_second

    def _turn(self, now_ms: float) -> None:
        """Start a new second where the old one is over."""
        passed = int((now_ms - self._second_ms) // _SECOND_MS)
        if passed > 0:
            self.bytes_last_second = self._bytes if passed == 1 else 0
            self._second_ms += passed * _SECOND_MS
            self._bytes = 0

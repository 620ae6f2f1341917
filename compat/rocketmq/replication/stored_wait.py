"""
Waiting until a put is as safe as the settings want it: on the disk, and on slaves.

Both are waited for at once. What became of the slaves counts more than what became of the disk,
as in Java (``CommitLog.handleDiskFlushAndHA``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.segments.rocketmq.putting.put_result import PutMessageStatus

if TYPE_CHECKING:
    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.rocketmq.replication.master_service import Settled

__all__ = ["when_stored"]

_PUT_OK = PutMessageStatus.PUT_OK


class _Both:
    """Two outcomes of one put, of which the second one to come is told."""

    __slots__ = ("_disk", "_settled", "_slaves")

    def __init__(self, settled: Settled) -> None:
        self._settled = settled
        self._disk: PutMessageStatus | None = None
        self._slaves: PutMessageStatus | None = None

    def on_disk(self, status: PutMessageStatus) -> None:
        """Say what became of the flush."""
        self._disk = status
        self._tell()

    def on_slaves(self, status: PutMessageStatus) -> None:
        """Say what became of the slaves."""
        self._slaves = status
        self._tell()

    def _tell(self) -> None:
        if self._disk is None or self._slaves is None:
            return
        self._settled(self._disk if self._slaves is _PUT_OK else self._slaves)


def when_stored(broker: Broker, next_physical_offset: int, settled: Settled) -> None:
    """Call `settled` once all before `next_physical_offset` is safe, or took too long to be."""
    if not broker.is_sync_flush:
        broker.replication.wait(next_physical_offset, settled)
        return
    on_disk = settled
    if broker.waits_for_slaves:
        both = _Both(settled)
        on_disk = both.on_disk
        broker.replication.wait(next_physical_offset, both.on_slaves)

    def flushed(is_durable: bool) -> None:
        on_disk(_PUT_OK if is_durable else PutMessageStatus.FLUSH_DISK_TIMEOUT)

    broker.group_commit.wait(next_physical_offset, flushed)

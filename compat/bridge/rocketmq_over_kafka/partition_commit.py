"""Waiting for the disk, for messages that are records: their partition is flushed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.bridge.rocketmq_over_kafka.partition_places import is_place_of_record
from logstore.compat.rocketmq.sending.group_commit import Flushed, GroupCommit
from logstore.segmented_log import FlushTask

if TYPE_CHECKING:
    from logstore.compat.bridge.rocketmq_over_kafka.partition_store import PartitionStore
    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.rocketmq.wire.outbox import Outbox


class PartitionCommit(GroupCommit[FlushTask]):
    """Makes the commit log of `broker`, or a partition, durable for whoever waits."""

    def __init__(self, broker: Broker, store: PartitionStore, outbox: Outbox) -> None:
        super().__init__(
            store.commit_log,
            lambda: broker.offload,
            broker.timers,
            outbox,
            timeout_ms=broker.settings.sync_flush_timeout_ms,
        )
        self._store = store
        self._gathers = outbox
        self.on_flushed = broker.finish_requests

    def wait(self, physical_offset: int, flushed: Flushed) -> None:
        """Call `flushed` once all below a place is durable."""
        if not is_place_of_record(physical_offset):
            super().wait(physical_offset, flushed)
            return
        found = self._store.places.find(physical_offset)
        if found is None:  # the topic was deleted meanwhile
            flushed(False)
            return

        def done(error: BaseException | None) -> None:
            with self._gathers.gathering():
                flushed(error is None)

        self._store.kafka.flusher.flush(found[0], done)

"""
The ends of transactions over queues: a large one is put in portions, between other work.

Only then it is made durable, off the loop, and the marker follows. What takes no more than one
portion is done in one step.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from logstore.compat.bridge.kafka_over_rocketmq.queue_partition import QueuePartition
from logstore.compat.kafka.transactions.marking import BrokerMarkers
from logstore.errors import WriteFailedError

if TYPE_CHECKING:
    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.transactions.markers import Marker
    from logstore.segments.kafka.partition import KafkaPartition

_Key = tuple["KafkaPartition", int]


class _Flush:
    """What is known of the flush of a commit that took more than one portion."""

    def __init__(self) -> None:
        self.has_begun = False
        self.has_ended = False
        self.failure: BaseException | None = None


class QueueMarkers(BrokerMarkers):
    """Writes markers to partitions over queues, and to others."""

    def __init__(self, broker: Broker) -> None:
        super().__init__(broker)
        #: by partition and producer
        self._large: dict[_Key, _Flush] = {}

    def _prepare(self, partition: KafkaPartition, marker: Marker) -> bool:
        """Put a portion of what is committed, or look whether all of it is durable."""
        if not isinstance(partition, QueuePartition) or not marker.is_commit:
            return True
        key = (partition, marker.producer_id)
        flush = self._large.get(key)
        if flush is None or not flush.has_begun:
            is_all_put = partition.prepare_commit(
                marker.producer_id,
                marker.producer_epoch,
                marker.coordinator_epoch,
                self._broker.host.clock.wall_ms(),
                marker.transaction_version,
            )
            if not is_all_put:
                self._large.setdefault(key, _Flush())
                return False
            if flush is None:
                return True
            flush.has_begun = True
            self._broker.flusher.flush(partition, partial(_ended, flush))
        if flush.has_ended:
            del self._large[key]
            if flush.failure is not None:
                raise WriteFailedError(
                    f"{partition.topic}-{partition.index}: what is committed may not survive a "
                    f"power loss: {flush.failure}"
                )
        return flush.has_ended


def _ended(flush: _Flush, failure: BaseException | None) -> None:
    flush.has_ended, flush.failure = True, failure

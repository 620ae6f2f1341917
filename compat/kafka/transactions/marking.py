"""Markers on their way into the partitions of a broker."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from logstore.compat.kafka.topics.names import GROUPS_TOPIC
from logstore.compat.kafka.transactions.markers import Marker, MarkerResult
from logstore.compat.kafka.transactions.transaction import TopicPartition
from logstore.errors import LogStoreError
from logstore.segments.kafka.append_errors import (
    InvalidProducerEpochError,
    TransactionCoordinatorFencedError,
)

if TYPE_CHECKING:
    from logstore.compat.kafka.broker import Broker
    from logstore.segments.kafka.partition import KafkaPartition

_log = logging.getLogger(__name__)


class BrokerMarkers:
    """Implements :class:`logstore.compat.kafka.transactions.markers.MarkerWriter`."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def write(self, partition: TopicPartition, marker: Marker) -> MarkerResult:
        """Write a marker; of a partition that was deleted nobody waits for it."""
        found = self._broker.partition(*partition)
        if found is None:
            return MarkerResult.WRITTEN
        try:
            if not self._prepare(found, marker):
                return MarkerResult.GOES_ON
            write_marker(self._broker, found, marker)
        except (InvalidProducerEpochError, TransactionCoordinatorFencedError) as error:
            _log.warning("%s-%s: %s", *partition, error)
            return MarkerResult.REFUSED
        except (LogStoreError, OSError) as error:
            _log.warning("%s-%s: no marker yet: %s", *partition, error)
            return MarkerResult.RETRY
        return MarkerResult.WRITTEN

    def _prepare(self, partition: KafkaPartition, marker: Marker) -> bool:
        """
        Do a part of what comes before a marker; tell whether nothing is left of it.

        Raises as :func:`write_marker` does.
        """
        del partition, marker
        return True


def write_marker(broker: Broker, partition: KafkaPartition, marker: Marker) -> None:
    """
    Write a marker, and tell whoever waits for what has become visible by it.

    Raises:
        InvalidProducerEpochError: a newer instance of the producer has been there.
        TransactionCoordinatorFencedError: a newer coordinator has been there.
        LogStoreError, OSError: the disk refused.

    """
    if partition.topic == GROUPS_TOPIC:
        broker.groups.end_transaction(partition.index, marker)
    else:
        append_marker(broker, partition, marker)
    broker.readers.wake()


def append_marker(broker: Broker, partition: KafkaPartition, marker: Marker) -> None:
    """Append a marker to a partition's log; raises as :func:`write_marker` does."""
    partition.append_marker(
        marker.producer_id,
        marker.producer_epoch,
        is_commit=marker.is_commit,
        coordinator_epoch=marker.coordinator_epoch,
        now_ms=broker.host.clock.wall_ms(),
        transaction_version=marker.transaction_version,
    )
    broker.flusher.flush_due_here()

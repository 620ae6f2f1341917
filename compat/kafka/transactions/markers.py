"""The port through which the ends of transactions reach the partitions that they concern."""

from __future__ import annotations

import enum
from typing import Protocol

import attrs

from logstore.compat.kafka.transactions.transaction import TopicPartition

#: the id and the epoch of no producer
_NOBODY = -1


@attrs.frozen
class Marker:
    """The end of a producer's transaction, as every partition in it is told."""

    producer_id: int
    producer_epoch: int
    is_commit: bool
    coordinator_epoch: int
    transaction_version: int

    @property
    def has_producer(self) -> bool:
        """Tell whether it is about a producer that there may be."""
        return _NOBODY not in (self.producer_id, self.producer_epoch)


class MarkerResult(enum.Enum):
    """
    What became of a marker.

    WRITTEN also where there is no such partition any more: nobody waits for it. GOES_ON: much is to
    be done before it, and a part of that was. RETRY: the disk refused. REFUSED: a newer producer or
    coordinator has been there; no try will be better.
    """

    WRITTEN = enum.auto()
    GOES_ON = enum.auto()
    RETRY = enum.auto()
    REFUSED = enum.auto()


class MarkerWriter(Protocol):
    """Writes markers; to a partition of ``__consumer_offsets`` through the group coordinator."""

    def write(self, partition: TopicPartition, marker: Marker) -> MarkerResult:
        """Write `marker` to the end of `partition`; it lasts when the call returns WRITTEN."""
        ...

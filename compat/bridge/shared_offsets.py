"""
Committed offsets of both sides' groups: one number where group and topic have the same name.

Kafka's commits are written through to RocketMQ's table, at once; where that table says something
else afterwards, a RocketMQ client has committed later, and that counts. Metadata, times and
leader epochs are Kafka's alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.groups.committed_offsets import CommittedOffsets
from logstore.compat.kafka.groups.config import GroupConfig
from logstore.compat.kafka.groups.coordinator import GroupCoordinator
from logstore.compat.kafka.groups.modern.broker_cluster import BrokerCluster
from logstore.compat.kafka.groups.offset_table import OffsetTable, TopicPartition
from logstore.compat.kafka.groups.offsets_log import (
    CommittedOffset,
    OffsetCommitKey,
    TransactionEnd,
)
from logstore.segments.kafka.record_batch import NO_TIMESTAMP
from logstore.segments.rocketmq.tables.consumer_offsets import NO_QUEUE_OFFSET, SEPARATOR

if TYPE_CHECKING:
    from logstore.compat.bridge.shared_topics import SharedTopics
    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.groups.offsets_log import OffsetsLog
    from logstore.segments.rocketmq.tables.consumer_offsets import ConsumerOffsetTable


class SharedOffsets:
    """
    RocketMQ's side of the offsets, as far as the topics are those of both.

    What comes before :meth:`bind` is kept: it is what stood in Kafka's log. It counts where
    RocketMQ's table says nothing, and where it was committed after that table was last written,
    which a crash may have kept from being written again.
    """

    def __init__(self) -> None:
        self._table: ConsumerOffsetTable | None = None
        self._topics: SharedTopics | None = None
        self._early: dict[OffsetCommitKey, CommittedOffset] = {}
        #: while Kafka's log is read: only what is older in RocketMQ's table is overwritten
        self.is_loading = False
        #: when the transaction ended whose offsets count now, by its marker in the log
        self.ended_ms = NO_TIMESTAMP
        self._written_ms = 0

    def bind(self, table: ConsumerOffsetTable, topics: SharedTopics) -> None:
        """Say where RocketMQ's offsets are, before anything is written to them."""
        self._table, self._topics = table, topics
        self._written_ms = _written_ms(table)
        early, self._early = self._early, {}
        self.is_loading = True
        for key, committed in early.items():
            self.commit(key, committed)
        self.is_loading = False

    def commit(self, key: OffsetCommitKey, committed: CommittedOffset) -> None:
        """Take over what a group committed on Kafka's side; in a transaction: when that ended."""
        if self.ended_ms > committed.commit_timestamp_ms:
            committed = committed._replace(commit_timestamp_ms=self.ended_ms)
        if self._table is None or self._topics is None:
            self._early[key] = committed
            return
        if not self._topics.is_shared(key.topic):
            return
        known = self._table.query(key.group_id, key.topic, key.partition)
        is_older = self.is_loading and committed.commit_timestamp_ms < self._written_ms
        if known != committed.offset and not (is_older and known != NO_QUEUE_OFFSET):
            self._table.commit(key.group_id, key.topic, key.partition, committed.offset)

    def remove(self, key: OffsetCommitKey) -> None:
        """Forget what was forgotten on Kafka's side."""
        self._early.pop(key, None)
        if self._table is None:
            return
        queues = self._table.offsets.get(f"{key.topic}{SEPARATOR}{key.group_id}")
        if queues is not None and queues.pop(key.partition, None) is not None:
            self._table.is_dirty = True

    def of_group(self, group: str) -> dict[TopicPartition, int]:
        """Return all that a group has committed in topics of both sides."""
        if self._table is None or self._topics is None:
            return {}
        found: dict[TopicPartition, int] = {}
        for topic in sorted(self._table.topics_of(group)):
            if self._topics.is_shared(topic):
                offsets = self._table.of_group(group, topic) or {}
                found |= {(topic, queue_id): at for queue_id, at in sorted(offsets.items())}
        return found


def _written_ms(table: ConsumerOffsetTable) -> int:
    """Return when the file of a table was written, 0 if there is none."""
    fs = table.host.fs
    for path in (table.path, f"{table.path}.bak"):
        if fs.exists(path):
            return fs.modified_ms(path)
    return 0


class SharedOffsetTable(OffsetTable):
    """Kafka's table of offsets, written through to RocketMQ's."""

    def __init__(self, shared: SharedOffsets) -> None:
        super().__init__()
        self._shared = shared

    def put(self, key: OffsetCommitKey, committed: CommittedOffset) -> None:
        """Note an offset on both sides."""
        super().put(key, committed)
        self._shared.commit(key, committed)

    def put_all(self, group_id: str, offsets: Mapping[TopicPartition, CommittedOffset]) -> None:
        """Note offsets of one group on both sides."""
        super().put_all(group_id, offsets)
        for one, committed in offsets.items():
            self._shared.commit(OffsetCommitKey(group_id, *one), committed)

    def remove(self, key: OffsetCommitKey) -> None:
        """Forget an offset on both sides."""
        super().remove(key)
        self._shared.remove(key)


class SharedCoordinator(GroupCoordinator):
    """A group coordinator whose offsets RocketMQ's groups of the same names share."""

    @classmethod
    def of_broker(cls, broker: Broker, log: OffsetsLog, shared: SharedOffsets) -> SharedCoordinator:
        """Return a coordinator that serves what `log` and RocketMQ's table hold."""
        coordinator = cls(
            GroupConfig.of(broker.config), broker.timers, broker.host.rng, log,
            BrokerCluster(broker.store, broker.dynamic_config), broker.share_cluster,
        )  # fmt: skip
        coordinator.share(shared)
        return coordinator

    def share(self, shared: SharedOffsets) -> None:
        """Load the log, with offsets written through from then on."""
        self._shared = shared
        self._offsets = CommittedOffsets(SharedOffsetTable(shared))
        shared.is_loading = True
        try:
            self.load()
        finally:
            shared.is_loading = False

    def _end(self, end: TransactionEnd) -> None:
        self._shared.ended_ms = end.timestamp_ms
        super()._end(end)
        self._shared.ended_ms = NO_TIMESTAMP

    def fetch_offsets(
        self, group_id: str, partitions: Iterable[TopicPartition] | None
    ) -> tuple[ErrorCode, dict[TopicPartition, CommittedOffset | None]]:
        """Return what a group has committed on either side."""
        wanted = None if partitions is None else list(partitions)
        error, found = super().fetch_offsets(group_id, wanted)
        if error is not ErrorCode.NONE:
            return error, found
        other = self._shared.of_group(group_id)
        for partition in found if wanted is not None else list({**found, **other}):
            offset, known = other.get(partition), found.get(partition)
            if offset is not None and (known is None or known.offset != offset):
                now_ms = int(self.surroundings.timers.clock.wall_ms())
                found[partition] = CommittedOffset(offset, now_ms)
        return error, found

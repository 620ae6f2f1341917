"""Plain sends of one read of a connection: the messages of each partition as one record batch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.bridge.rocketmq_over_kafka.message_records import RecordRun
from logstore.compat.bridge.rocketmq_over_kafka.record_kinds import RecordKind

if TYPE_CHECKING:
    from logstore.compat.bridge.rocketmq_over_kafka.partition_store import PartitionStore
    from logstore.segments.kafka.partition import KafkaPartition
    from logstore.segments.rocketmq.messages.message_run import (
        MessageKind,
        MessageRun,
        StoredMessage,
    )

_KINDS_MAX = 4096


class PartitionRuns:
    """Puts runs into the partitions of one store."""

    def __init__(self, store: PartitionStore) -> None:
        self._store = store
        #: what messages become, by their kind; None if each must be looked at by itself
        self._kinds: dict[MessageKind, RecordKind | None] = {}

    def put(self, run: MessageRun, now_ms: int) -> bool:
        """
        Append all messages of a run; False, and nothing done, where they go one by one only.

        Raises:
            StorageError, OSError: the disk refused. What went to other partitions before stands
                there: who sends again sends it twice, as after any answer that got lost.

        """
        batches: dict[KafkaPartition, RecordRun] = {}
        ways: dict[MessageKind, tuple[RecordRun, RecordKind]] = {}
        rows: list[tuple[RecordRun, int]] = []
        for kind, body, key, born_ms in run.messages:
            way = ways.get(kind)
            if way is None:
                way = self._way(kind, batches, now_ms)
                if way is None:
                    return False
                ways[kind] = way
            batch, record_kind = way
            rows.append((batch, batch.count))
            batch.add_like(record_kind, body, key, born_ms)
        if not all(_takes(partition, batch, now_ms) for partition, batch in batches.items()):
            return False
        firsts = {batch: self._append(one, batch, now_ms) for one, batch in batches.items()}
        self._store.kafka.flusher.flush_due_here()
        stored: list[StoredMessage] = []
        for (kind, body, key, _), (batch, row) in zip(run.messages, rows, strict=True):
            place, offset = firsts[batch]
            stored.append((kind, place + row, kind.frame_bytes + len(body), offset + row, key))
        run.stored, run.store_timestamp_ms = stored, now_ms
        run.settle()
        return True

    def _way(
        self, kind: MessageKind, batches: dict[KafkaPartition, RecordRun], now_ms: int
    ) -> tuple[RecordRun, RecordKind] | None:
        """Return where messages of a kind go, and as what; None if they cannot be put together."""
        partition = self._store.window(*kind.queue_key)
        record_kind = self._kinds[kind] if kind in self._kinds else self._learn(kind)
        if partition is None or record_kind is None:
            return None
        record_kind.stored_at(now_ms)
        batch = batches.get(partition)
        if batch is None:
            batch = batches[partition] = RecordRun(now_ms)
        return batch, record_kind

    def _append(self, partition: KafkaPartition, batch: RecordRun, now_ms: int) -> tuple[int, int]:
        """Append one batch; return place and offset of its first message."""
        self._store.expect_rests(partition.topic)
        first_place = self._store.places.first_place(partition)
        data = memoryview(batch.batch())
        offset = partition.append_usual(data, now_ms)
        if offset < 0:
            offset = partition.append_produced(data, now_ms).base_offset
        return first_place + offset, offset

    def _learn(self, kind: MessageKind) -> RecordKind | None:
        """Remember what the messages of a kind become."""
        if len(self._kinds) >= _KINDS_MAX:
            self._kinds.clear()
        found = self._kinds[kind] = RecordKind.of(kind)
        return found


def _takes(partition: KafkaPartition, batch: RecordRun, now_ms: int) -> bool:
    """Tell whether the topic has no rule by which one message is refused and others are not."""
    config = partition.config
    return (
        config.takes_batches_as_they_are
        and batch.max_born_ms <= now_ms + config.message_timestamp_after_max_ms
        and batch.size_bytes <= config.max_message_bytes
    )

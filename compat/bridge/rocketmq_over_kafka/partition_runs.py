"""Plain sends of one read of a connection: the messages of each partition as one record batch."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

from logstore.compat.bridge.rocketmq_over_kafka.message_records import RecordRun
from logstore.compat.record_mapping import packed_hosts

if TYPE_CHECKING:
    from logstore.compat.bridge.rocketmq_over_kafka.partition_store import PartitionStore
    from logstore.segments.kafka.partition import KafkaPartition
    from logstore.segments.rocketmq.messages.message_draft import MessageDraft
    from logstore.segments.rocketmq.messages.message_run import (
        MessageKind,
        MessageRun,
        StoredMessage,
    )

_KINDS_MAX = 4096
_crc32 = zlib.crc32


class PartitionRuns:
    """Puts runs into the partitions of one store."""

    def __init__(self, store: PartitionStore) -> None:
        self._store = store
        #: a message of each kind, and its hosts as a rest has them
        self._models: dict[MessageKind, tuple[MessageDraft, bytes]] = {}

    def put(self, run: MessageRun, now_ms: int) -> bool:
        """
        Append all messages of a run; False, and nothing done, where they go one by one only.

        Raises:
            StorageError, OSError: the disk refused. What went to other partitions before stands
                there: who sends again sends it twice, as after any answer that got lost.

        """
        batches: dict[KafkaPartition, RecordRun] = {}
        rows: list[tuple[KafkaPartition, int]] = []
        for kind, body, key, born_ms in run.messages:
            partition = self._store.window(*kind.queue_key)
            if partition is None or not _takes(partition, born_ms, now_ms):
                return False
            batch = batches.get(partition)
            if batch is None:
                batch = batches[partition] = RecordRun(now_ms)
            rows.append((partition, batch.count))
            model, hosts = self._models.get(kind) or self._learn(kind)
            text = kind.text_before + key + kind.text_behind
            crc = _crc32(body) & 0x7FFF_FFFF
            if not batch.add(body, text, born_ms, crc, kind.flag, model, hosts):
                return False
        if any(batch.size_bytes > one.config.max_message_bytes for one, batch in batches.items()):
            return False
        firsts = {one: self._append(one, batch, now_ms) for one, batch in batches.items()}
        self._store.kafka.flusher.flush_due_here()
        stored: list[StoredMessage] = []
        for (kind, body, key, _), (partition, row) in zip(run.messages, rows, strict=True):
            place, offset = firsts[partition]
            size_bytes = kind.frame_bytes + len(body)
            stored.append((kind, place + row, size_bytes, offset + row, key))
        run.stored, run.store_timestamp_ms = stored, now_ms
        run.settle()
        return True

    def _append(self, partition: KafkaPartition, batch: RecordRun, now_ms: int) -> tuple[int, int]:
        """Append one batch; return place and offset of its first message."""
        self._store.expect_rests(partition.topic)
        first_place = self._store.places.first_place(partition)
        done = partition.append_produced(memoryview(batch.batch()), now_ms)
        return first_place + done.base_offset, done.base_offset

    def _learn(self, kind: MessageKind) -> tuple[MessageDraft, bytes]:
        """Remember what the messages of a kind have in common."""
        if len(self._models) >= _KINDS_MAX:
            self._models.clear()
        model = kind.draft(b"", bytes(kind.key_bytes), 0)
        self._models[kind] = found = model, packed_hosts(kind.born_host, kind.store_host)
        return found


def _takes(partition: KafkaPartition, born_ms: int, now_ms: int) -> bool:
    """Tell whether the topic has no rule by which one message is refused and others are not."""
    config = partition.config
    is_timely = born_ms <= now_ms + config.message_timestamp_after_max_ms
    return is_timely and config.takes_batches_as_they_are

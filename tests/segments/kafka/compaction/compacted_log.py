"""A partition on a simulated disk, filled by producers of all kinds, for tests of compaction."""

from __future__ import annotations

import random

import attrs

from logstore.segments.kafka.compaction import (
    Compaction,
    CompactionLimits,
    compact,
    find_cleanable,
)
from logstore.segments.kafka.compression import Codec
from logstore.segments.kafka.config import LogConfig
from logstore.segments.kafka.partition import KafkaPartition
from logstore.segments.kafka.record import Record, decode_records, encode_batch
from logstore.segments.kafka.segment_files import SegmentFiles
from logstore.testing import SimulatedHost

DIRECTORY = "/c-0"
START_MS = 1_700_000_000_000
RETENTION_MS = 1000
CONFIG = LogConfig(
    cleanup_policy=("compact",),
    segment_bytes=1200,
    index_interval_bytes=200,
    segment_index_bytes=480,
    delete_retention_ms=RETENTION_MS,
)
LIMITS = CompactionLimits()
CODECS = (Codec.NONE, Codec.NONE, Codec.NONE, Codec.GZIP, Codec.LZ4, Codec.SNAPPY, Codec.ZSTD)


def make_host(seed: int = 0) -> SimulatedHost:
    """Return a disk with the partition's empty directory."""
    host = SimulatedHost(seed)
    host.fs.make_directory(DIRECTORY)
    host.fs.sync_directory("/")
    return host


def opened(
    host: SimulatedHost, recovery_point: int | None = None, config: LogConfig = CONFIG
) -> KafkaPartition:
    """Open the partition; after an unclean stop from `recovery_point` on."""
    files = SegmentFiles(host, DIRECTORY, config, is_clean=recovery_point is None)
    return KafkaPartition(host, files, "c", 0, recovery_point=recovery_point)


def run_pass(
    partition: KafkaPartition,
    now_ms: int,
    checkpoint: int | None = None,
    limits: CompactionLimits = LIMITS,
    *,
    is_fast: bool = False,
) -> Compaction:
    """Compact, whatever the ratio is."""
    cleanable = find_cleanable(partition, checkpoint, now_ms)
    compaction = Compaction(cleanable, now_ms, limits, is_fast=is_fast)
    compact(compaction)
    return compaction


def committed(partition: KafkaPartition) -> list[Record]:
    """Return what a read_committed reader gets."""
    return [
        record
        for batch in partition.committed_batches()
        if not batch.is_control
        for record in decode_records(batch.data)
    ]


def stored_bytes(partition: KafkaPartition) -> bytes:
    """Return all batches back to back, each with its CRC checked."""
    return b"".join(bytes(batch.data) for batch in partition.batches())


@attrs.define
class Filler:
    """
    Random producers over few keys: plain, idempotent and transactional, in all codecs.

    Transactions may stay open for a while, and end either way.
    """

    partition: KafkaPartition
    dice: random.Random
    key_count: int = 12
    sequences: dict[int, int] = attrs.field(factory=dict[int, int])
    now_ms: int = START_MS

    def write(self, batch_count: int, *, has_transactions: bool = True) -> None:
        """Append so many batches, and now and then roll."""
        for _ in range(batch_count):
            self.now_ms += self.dice.randrange(1, 40)
            kinds = ("plain", "idempotent", "transactional", "end", "roll")
            kind = self.dice.choices(kinds, weights=(5, 3, 3, 2, 1))[0]
            if kind == "roll":
                self.partition.log.roll()
            elif kind == "end" and has_transactions:
                self.end_transaction(self.dice.choice((20, 21)))
            elif kind == "transactional" and has_transactions:
                self.append(self.dice.choice((20, 21)), is_transactional=True)
            else:
                self.append(10 + self.dice.randrange(2) if kind == "idempotent" else -1)

    def append(self, producer_id: int, *, is_transactional: bool = False) -> None:
        """Append one batch of that producer, -1 for one without id."""
        dice = self.dice
        records = [self.record(offset) for offset in range(dice.randrange(1, 7))]
        sequence = self.sequences.get(producer_id, 0) if producer_id >= 0 else -1
        batch = encode_batch(
            records,
            codec=dice.choice(CODECS),
            producer_id=producer_id,
            producer_epoch=0 if producer_id >= 0 else -1,
            base_sequence=sequence,
            is_transactional=is_transactional,
        )
        self.partition.append_produced(memoryview(batch), self.now_ms)
        if producer_id >= 0:
            self.sequences[producer_id] = sequence + len(records)

    def record(self, offset: int) -> Record:
        """Return a record: an old key, and a value of its own or none."""
        dice = self.dice
        value = dice.randbytes(dice.randrange(0, 90)) if dice.random() < 0.8 else None
        headers = (("h", b"\0" * dice.randrange(3)),) if dice.random() < 0.2 else ()
        key = b"key-%d" % dice.randrange(self.key_count)
        return Record(offset, self.now_ms - dice.randrange(200), key, value, headers)

    def end_transaction(self, producer_id: int) -> None:
        """Commit or abort, also where there is nothing to end."""
        self.partition.append_marker(
            producer_id,
            0,
            is_commit=self.dice.random() < 0.5,
            coordinator_epoch=0,
            now_ms=self.now_ms,
        )


def filled(seed: int, batch_count: int = 60, *, has_transactions: bool = True) -> KafkaPartition:
    """Return a partition on a disk of its own that such producers have filled."""
    partition = opened(make_host(seed))
    filler = Filler(partition, random.Random(seed))
    filler.write(batch_count, has_transactions=has_transactions)
    partition.log.roll()
    return partition

"""A store that the Spark cells read: a day of records, in batches as producers send them."""

from __future__ import annotations

import os
import struct

from logstore.checksum import crc32c
from logstore.segments.kafka.record import Record, encode_batch
from logstore.segments.kafka.store import KafkaStore
from logstore.tools.bench.layout_data import TIME_MS, TOPIC, BatchShape, make_unclean, unsynced_host

DAY_MS = 24 * 60 * 60 * 1000
SEGMENT_BYTES = 1024**3
_CHUNK_BYTES = 8 * 1024 * 1024
_CRC_START, _TIMES_START = 21, 27
_KINDS = 64


def make_day(directory: str, shape: BatchShape, size_bytes: int, partition_count: int = 4) -> int:
    """
    Make a data directory that was closed cleanly; return how many records are in it.

    One topic, whose partitions have the same size and cover the same day; segments of 1 GiB.
    """
    host = unsynced_host()
    settings = {"segment.bytes": str(SEGMENT_BYTES), "retention.ms": "-1"}
    store = KafkaStore(host, directory)
    store.create_topic(TOPIC, partition_count, settings)
    store.close()
    count = 0
    for number in range(partition_count):
        folder = f"{directory}/{TOPIC}-{number}"
        for name in os.listdir(folder):
            if name.endswith(".log"):
                os.remove(f"{folder}/{name}")
        count += _write_partition(folder, shape, size_bytes // partition_count)
    make_unclean(directory)
    KafkaStore(host, directory).close()  # recovery makes the indexes
    return count


def _write_partition(folder: str, shape: BatchShape, size_bytes: int) -> int:
    """Write the segments of one partition; return how many records they have."""
    templates = [bytearray(_batch(shape, kind)) for kind in range(_KINDS)]
    batch_count = max(1, size_bytes // len(templates[0]))
    a_segment = SEGMENT_BYTES // len(templates[0])
    for first in range(0, batch_count, a_segment):
        path = f"{folder}/{first * shape.record_count:020d}.log"
        with open(path, "wb") as file:
            chunk = bytearray()
            for number in range(first, min(first + a_segment, batch_count)):
                chunk += _placed(templates[number % _KINDS], shape, number, batch_count)
                if len(chunk) >= _CHUNK_BYTES:
                    file.write(chunk)
                    chunk.clear()
            file.write(chunk)
    return batch_count * shape.record_count


def _placed(template: bytearray, shape: BatchShape, number: int, batch_count: int) -> bytearray:
    """Return the batch of this number: its offset, its time of the day, its CRC."""
    time_ms = TIME_MS + number * DAY_MS // batch_count
    struct.pack_into(">q", template, 0, number * shape.record_count)
    struct.pack_into(">qq", template, _TIMES_START, time_ms, time_ms + shape.record_count - 1)
    struct.pack_into(">I", template, 17, crc32c(memoryview(template)[_CRC_START:]))
    return template


def _batch(shape: BatchShape, kind: int) -> bytes:
    """Return a batch whose values differ from those of other kinds."""
    value_bytes = shape.record_bytes - 19
    return bytes(
        encode_batch(
            Record(
                offset,
                TIME_MS + offset,
                b"k%07d" % (kind * shape.record_count + offset),
                bytes(65 + (number * 7 + kind * 3 + offset) % 26 for number in range(value_bytes)),
            )
            for offset in range(shape.record_count)
        )
    )


def make_segments(directory: str, segment_count: int, partition_count: int = 100) -> None:
    """Make a closed data directory of so many segments, each with a single batch."""
    host = unsynced_host()
    store = KafkaStore(host, directory)
    store.create_topic(TOPIC, partition_count, {"retention.ms": "-1"})
    store.close()
    shape = BatchShape(100, 1)
    batch = bytearray(shape.batch())
    for number in range(partition_count):
        folder = f"{directory}/{TOPIC}-{number}"
        for offset in range(segment_count // partition_count):
            struct.pack_into(">q", batch, 0, offset)
            for suffix, data in ((".log", batch), (".index", b""), (".timeindex", b"")):
                with open(f"{folder}/{offset:020d}{suffix}", "wb") as file:
                    file.write(data)
    KafkaStore(host, directory).close()

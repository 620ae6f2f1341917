"""Data directories that the layout is measured on: large logs, many partitions, made fast."""

from __future__ import annotations

import contextlib
import os
import struct

import attrs

from logstore.host import Host
from logstore.os_host import SystemFile, SystemFileSystem, system_host
from logstore.segments.kafka.record import Record, encode_batch
from logstore.segments.kafka.store import KafkaStore

TOPIC = "bench"
TIME_MS = 1_700_000_000_000
_CHUNK_BYTES = 8 * 1024 * 1024
_SETTINGS = {"segment.bytes": str(1024**3), "retention.ms": "-1"}
_DERIVED = (".index", ".timeindex", ".snapshot")


class UnsyncedFile(SystemFile):
    """A file that is nobody's only copy."""

    __slots__ = ()

    def sync(self) -> None:
        """Leave it to the operating system."""


class UnsyncedFileSystem(SystemFileSystem):
    """Files that are made and thrown away: making 10,000 of them must not take minutes."""

    def open(self, path: str, *, create: bool = False, writable: bool = True) -> SystemFile:
        """Open a file whose syncs do nothing."""
        flags = (os.O_RDWR if writable else os.O_RDONLY) | os.O_CLOEXEC
        return UnsyncedFile(path, os.open(path, flags | os.O_CREAT if create else flags, 0o644))

    def sync_directory(self, path: str) -> None:
        """Leave it to the operating system."""


def unsynced_host() -> Host:
    """Return the real world without syncs."""
    host = system_host()
    return Host(UnsyncedFileSystem(), host.clock, host.rng)


@attrs.frozen
class BatchShape:
    """Batches of so many records, each with a key of 8 bytes and `record_bytes` in all."""

    record_bytes: int
    record_count: int

    def batch(self) -> bytes:
        """Return one; its base offset is 0."""
        value = bytes(65 + number % 26 for number in range(self.record_bytes - 19))
        return bytes(
            encode_batch(
                Record(offset, TIME_MS + offset, b"k%07d" % offset, value)
                for offset in range(self.record_count)
            )
        )


#: batches of 16 KiB, which is what producers send by default
SMALL_RECORDS = BatchShape(100, 150)
KIB_RECORDS = BatchShape(1024, 16)
#: one record a batch: the worst that a log can hold
LONELY_RECORDS = BatchShape(1024, 1)


def write_log(path: str, shape: BatchShape, size_bytes: int) -> int:
    """Fill a ``.log`` with as many batches as fit; return how many bytes that were."""
    template = shape.batch()
    count_a_chunk = max(1, min(_CHUNK_BYTES, size_bytes) // len(template))
    chunk = bytearray(template * count_a_chunk)
    written, offset = 0, 0
    pack = struct.Struct(">q").pack_into  # base offsets stand outside of the CRC
    with open(path, "wb") as file:
        while size_bytes - written >= len(template):
            count = min(count_a_chunk, (size_bytes - written) // len(template))
            for number in range(count):
                pack(chunk, number * len(template), offset)
                offset += shape.record_count
            file.write(memoryview(chunk)[: count * len(template)])
            written += count * len(template)
    return written


def make_store(directory: str, shape: BatchShape, size_bytes: int, partition_count: int) -> int:
    """
    Make a data directory that was not closed; return how many bytes are in its logs.

    One topic, of logs of one segment each, without their indexes: a recovery has all to do.
    """
    store = KafkaStore(unsynced_host(), directory)
    store.create_topic(TOPIC, partition_count, _SETTINGS)
    store.close()
    written = 0
    for number in range(partition_count):
        path = f"{directory}/{TOPIC}-{number}/00000000000000000000.log"
        written += write_log(path, shape, size_bytes // partition_count)
    make_unclean(directory)
    return written


def make_unclean(directory: str) -> None:
    """Take away what a clean stop left: a recovery begins at the first batch."""
    for name in (".kafka_cleanshutdown", "recovery-point-offset-checkpoint"):
        with contextlib.suppress(FileNotFoundError):
            os.remove(f"{directory}/{name}")
    for folder in os.listdir(directory):
        if folder.startswith(f"{TOPIC}-"):
            for name in os.listdir(f"{directory}/{folder}"):
                if name.endswith(_DERIVED):
                    os.remove(f"{directory}/{folder}/{name}")


def make_keyed(directory: str, shape: BatchShape, size_bytes: int) -> None:
    """Make a data directory of one compacted log whose second half supersedes its first."""
    store = KafkaStore(unsynced_host(), directory)
    settings = {**_SETTINGS, "cleanup.policy": "compact"}
    settings["internal.segment.bytes"] = str(size_bytes // 4)  # also below 1 MiB
    partition = store.create_topic(TOPIC, 1, settings).partitions[0]
    value = bytes(65 + number % 26 for number in range(shape.record_bytes - 19))
    record_count = size_bytes // shape.record_bytes
    for start in range(0, record_count, shape.record_count):
        batch = encode_batch(
            Record(
                offset, TIME_MS + start, b"k%07d" % ((start + offset) % (record_count // 2)), value
            )
            for offset in range(shape.record_count)
        )
        partition.append_produced(memoryview(batch), TIME_MS)
    store.close()


def make_many(directory: str, partition_count: int) -> None:
    """Make a cleanly closed data directory of so many partitions, a record in each."""
    batch = SMALL_RECORDS.batch()
    store = KafkaStore(unsynced_host(), directory)
    topic = store.create_topic(TOPIC, partition_count, _SETTINGS)
    for partition in topic.partitions.values():
        partition.append_produced(memoryview(bytearray(batch)), TIME_MS)
    store.close()

"""The lines of ``DumpLogSegments`` for batches, records and producers, and its ways with paths."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator

from logstore.errors import CorruptEntryError, CorruptFileError
from logstore.host import FileSystem, read_file
from logstore.segments.kafka.compression import Codec, CompressionError
from logstore.segments.kafka.legacy.compressed_set import decompress_set
from logstore.segments.kafka.legacy.message import LegacyMessage, parse_message
from logstore.segments.kafka.producer_snapshot import ProducerSnapshotEntry, read_snapshot
from logstore.segments.kafka.record import CorruptRecordError, Record, decode_records
from logstore.segments.kafka.record_batch import HEADER_BYTES, MAGIC, RecordBatch
from logstore.segments.kafka.varint import wrapped_long
from logstore.tools.inspection.java_indexes import JavaError
from logstore.tools.inspection.java_records import incremented_sequence, java_records
from logstore.tools.inspection.java_text import java_text
from logstore.tools.inspection.log_dump import codec_name, timestamp_type

_CHECKPOINT_NAME = re.compile(r"([0-9]{20})-([0-9]{10})\.checkpoint")
_BOOTSTRAP = "bootstrap.checkpoint"
_OFFSET_END = 1 << 63
_SEQUENCE_MODULUS = 1 << 31
_SNAPSHOT_HEADER_BYTES, _SNAPSHOT_ENTRY_BYTES = 10, 46
_JAVA_BOOLEANS = {True: "true", False: "false"}
#: what a wrapper may hold; Kafka knows no limit
_SIZE_BYTES_MAX = 2**31 - 1


def java_path(path: str) -> str:
    """Return a path as ``java.io.File`` shows it: single slashes, none at the end."""
    return re.sub("/+", "/", path).rstrip("/") or "/"


def absolute_path(path: str) -> str:
    """Return ``File.getAbsolutePath``: nothing of it is resolved."""
    return path if path.startswith("/") else f"{os.getcwd()}/{path}"


def base_offset_of(name: str) -> int:
    """Return the offset in a file's name. Raises JavaError."""
    text = name.split(".")[0]
    if not text.isdigit():
        raise JavaError("java.lang.NumberFormatException", f'For input string: "{text}"')
    return int(text)


def log_heading(name: str) -> str:
    """Return the line about where a log or a snapshot of metadata starts or ends."""
    if name == _BOOTSTRAP:
        return "KRaft bootstrap snapshot"
    found = _CHECKPOINT_NAME.fullmatch(name)
    if found is not None:
        return f"Snapshot end offset: {int(found[1])}, epoch: {int(found[2])}"
    if name.endswith(".checkpoint"):
        raise JavaError("java.util.NoSuchElementException", "No value present")
    return f"Log starting offset: {base_offset_of(name)}"


def batch_line(batch: RecordBatch, position: int) -> str:
    """
    Return a batch's line, or that of a message of before Kafka 0.11.

    Raises:
        JavaError: its magic or its codec is none, and the tool ends in the middle of the line.

    """
    if batch.magic < 0:
        said, begun = f"Invalid magic used in LegacyRecord: {batch.magic}", batch.base_offset
        raise JavaError("java.lang.IllegalArgumentException", said, f"offset: {begun}")
    horizon_ms = batch.delete_horizon_ms
    horizon = "OptionalLong.empty" if horizon_ms is None else f"OptionalLong[{horizon_ms}]"
    if batch.magic < MAGIC:
        head = f"offset: {batch.last_offset}"
    else:
        head = (
            f"baseOffset: {batch.base_offset} lastOffset: {wrapped_long(batch.last_offset)} "
            f"count: {batch.record_count} baseSequence: {batch.base_sequence} "
            f"lastSequence: {_last_sequence(batch)} producerId: {batch.producer_id} "
            f"producerEpoch: {batch.producer_epoch} "
            f"partitionLeaderEpoch: {batch.leader_epoch} "
            f"isTransactional: {_JAVA_BOOLEANS[batch.is_transactional]} "
            f"isControl: {_JAVA_BOOLEANS[batch.is_control]} deleteHorizonMs: {horizon}"
        )
    if batch.codec > Codec.ZSTD:
        said = f"Unknown compression type id: {batch.codec}"
        raise JavaError("java.lang.IllegalArgumentException", said, head)
    is_valid = batch.size_bytes >= HEADER_BYTES or isinstance(batch, LegacyMessage)
    is_valid = is_valid and batch.computed_crc() == batch.crc
    return (
        f"{head} position: {position} {timestamp_type(batch)}: {batch.max_timestamp_ms} "
        f"size: {batch.size_bytes} "
        f"magic: {batch.magic} compresscodec: {codec_name(batch)} crc: {batch.crc} "
        f"isvalid: {_JAVA_BOOLEANS[is_valid]}"
    )


def _last_sequence(batch: RecordBatch) -> int:
    """Return it as Java works it out, of a damaged batch too."""
    base = batch.base_sequence
    return -1 if base == -1 else incremented_sequence(base, batch.last_offset_delta)


def readable_records(batch: RecordBatch) -> Iterable[Record]:
    """Return the records of a batch; of a damaged one those before a JavaError is raised."""
    if batch.magic < MAGIC:
        return decode_records(batch.data)
    if batch.size_bytes < HEADER_BYTES:
        raise JavaError("java.lang.IndexOutOfBoundsException", None)
    if batch.last_offset >= _OFFSET_END:
        return java_records(batch)
    try:
        records = decode_records(batch.data)
    except CorruptRecordError:
        return java_records(batch)
    if batch.base_sequence >= 0 and any(one.offset < batch.base_offset for one in records):
        return java_records(batch)  # whose sequences wrap as Java's do
    return records


def decoded_records(batch: RecordBatch, *, is_old: bool) -> Iterator[tuple[Record, str]]:
    """
    Yield each record and what the tool says of it if it is a message of its own.

    Raises:
        CorruptRecordError: the records of an old message cannot be read.
        JavaError: those of a batch cannot, and the tool ends there.

    """
    if not isinstance(batch, LegacyMessage):
        for record in readable_records(batch):
            yield record, ""
        return
    records = decode_records(batch.data)
    for record, message in zip(records, _messages_in(batch), strict=True):
        is_valid = _JAVA_BOOLEANS[message.computed_crc() == message.crc]
        brace = "}" if is_old else ""  # a slip of 3.9 that 4.0 mended
        yield record, f" isValid: {is_valid} crc: {message.crc}{brace}"


def _messages_in(batch: LegacyMessage) -> Iterator[LegacyMessage]:
    if not batch.codec:
        yield batch
        return
    data = bytes(batch.data)
    header_bytes = 18 if batch.magic == 0 else 26
    key_bytes = int.from_bytes(data[header_bytes : header_bytes + 4], "big", signed=True)
    start = header_bytes + 4 + max(key_bytes, 0) + 4
    try:
        inside = decompress_set(
            Codec(batch.codec), memoryview(data)[start:], batch.magic, _SIZE_BYTES_MAX
        )
    except (CompressionError, ValueError) as error:
        raise CorruptRecordError(str(error)) from error
    view, position = memoryview(inside), 0
    while position < len(view):
        try:
            message = parse_message(view, position, is_checked=False)
        except CorruptEntryError as error:
            raise CorruptRecordError(f"in a wrapper: {error.reason}") from error
        yield message
        position += message.size_bytes


def record_text(batch: RecordBatch, record: Record) -> str:
    """Return what the tool prints of every record."""
    kind = timestamp_type(batch)
    key_bytes = -1 if record.key is None else len(record.key)
    value_bytes = -1 if record.value is None else len(record.value)
    text = (
        f"offset: {record.offset} {kind}: {record.timestamp_ms} keySize: {key_bytes} "
        f"valueSize: {value_bytes}"
    )
    if batch.magic < MAGIC:
        return text
    names = (java_text(name.encode("utf-8", "surrogateescape")) for name, _ in record.headers)
    return f"{text} sequence: {record.sequence} headerKeys: [{','.join(names)}]"


def snapshot_lines(fs: FileSystem, path: str, *, is_old: bool) -> list[str]:
    """Return a line a producer. Raises CorruptFileError."""
    return [_producer_line(entry, is_old=is_old) for entry in read_snapshot(fs, path)]


def _producer_line(entry: ProducerSnapshotEntry, *, is_old: bool) -> str:
    first = entry.transaction_first_offset
    shown = f"OptionalLong[{first}]" if first >= 0 else "OptionalLong.empty"
    text = (
        f"producerId: {entry.producer_id} producerEpoch: {entry.epoch} "
        f"coordinatorEpoch: {entry.coordinator_epoch} currentTxnFirstOffset: {shown} "
        f"lastTimestamp: {entry.timestamp_ms}"
    )
    if entry.last_offset < 0:
        return f"{text} " if is_old else text
    first_sequence = entry.last_sequence
    if first_sequence >= 0:
        first_sequence = (first_sequence - entry.offset_delta) % _SEQUENCE_MODULUS
    return (
        f"{text} firstSequence: {first_sequence} lastSequence: {entry.last_sequence} "
        f"lastOffset: {entry.last_offset} offsetDelta: {entry.offset_delta} "
        f"timestamp: {entry.timestamp_ms}"
    )


def snapshot_complaint(fs: FileSystem, path: str, error: CorruptFileError) -> str:
    """Return what the tool says of a snapshot that cannot be read."""
    from logstore.checksum import crc32c

    data = read_file(fs, path)
    if len(data) < 2:
        return "Snapshot failed schema validation: null"
    version = int.from_bytes(data[:2], "big", signed=True)
    if version != 1:
        return (
            "Snapshot failed schema validation: Snapshot contained an unknown file version "
            f"{version}"
        )
    fault = _entries_fault(data)
    if fault is not None:
        return f"Snapshot failed schema validation: {fault}"
    computed, stored = crc32c(memoryview(data)[6:]), int.from_bytes(data[2:6], "big")
    if computed != stored:
        return (
            f"Snapshot is corrupt (CRC is no longer valid). Stored crc: {stored}. "
            f"Computed crc: {computed}"
        )
    return f"Snapshot failed schema validation: {error.reason}"


def _entries_fault(data: bytes) -> str | None:
    """Return what Java says of entries that are not all there; it reads them before the CRC."""
    if len(data) < _SNAPSHOT_HEADER_BYTES:
        return "null"
    count = int.from_bytes(data[6:_SNAPSHOT_HEADER_BYTES], "big", signed=True)
    left_bytes = len(data) - _SNAPSHOT_HEADER_BYTES
    if count < 0:
        return "non-nullable field producerEntries was serialized as null"
    if count > left_bytes:
        return (
            f"Tried to allocate a collection of size {count}, "
            f"but there are only {left_bytes} bytes remaining."
        )
    return "null" if count * _SNAPSHOT_ENTRY_BYTES > left_bytes else None

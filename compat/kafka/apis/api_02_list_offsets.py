"""
ListOffsets (2): versions 1-11. Offsets by time, and the ends of partitions.

==  =======================================================================  =====
-1  the log end; the last stable offset for a read_committed consumer         v1
-2  the log start                                                             v1
-3  the record with the largest timestamp (KIP-734)                           v7
-4  the log start on local disk, which here is the log start (KIP-405)        v8
-5  the last offset in tiered storage: -1, there is none (KIP-1005)           v9
-6  the earliest offset that waits for its upload: -1 (KIP-1023)              v11
>0  the first record that is at least that young                              v1
==  =======================================================================  =====

* nothing found, or nothing that the consumer may read yet: offset and timestamp -1, no error
* another negative time, or one from a later version, is 35; a partition asked for twice is 42
* v2: isolation level, throttle time; v4: leader epochs, 74 or 75 if they differ
* v6: flexible; v10: a timeout for tiered storage, not needed

Read and written by hand: every consumer asks it before its first record.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Collection
from typing import TYPE_CHECKING, NamedTuple

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.framing import MalformedRequestError, Reader
from logstore.compat.kafka.leader_fencing import NOT_CHECKED, fencing_error
from logstore.compat.kafka.refused_request import refusal_of
from logstore.compat.kafka.registry import RawRequest
from logstore.compat.kafka.writer import Writer
from logstore.errors import LogStoreError

if TYPE_CHECKING:
    from logstore.compat.connection import Chunk
    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.connection import Client
    from logstore.segments.kafka.partition import KafkaPartition

_LATEST, _EARLIEST, _LARGEST_TIMESTAMP = -1, -2, -3
_EARLIEST_LOCAL, _LATEST_TIERED, _EARLIEST_PENDING_UPLOAD = -4, -5, -6
_FIRST_VERSION = {
    _LATEST: 1,
    _EARLIEST: 1,
    _LARGEST_TIMESTAMP: 7,
    _EARLIEST_LOCAL: 8,
    _LATEST_TIERED: 9,
    _EARLIEST_PENDING_UPLOAD: 11,
}
_NO_VERSION = 1 << 15
_CONSUMER, _DEBUGGING = -1, -2
_ISOLATION_SINCE = _THROTTLE_SINCE = 2
_TIMEOUT_SINCE = 10
_EPOCHS_SINCE = 4
_FLEXIBLE_SINCE = 6
_READ_COMMITTED = 1
#: one partition of the request: index, current leader epoch (v4), time, number of tags (v6)
_ASKED, _ASKED_V4, _ASKED_V6 = (struct.Struct(shape) for shape in (">iq", ">iiq", ">iiqB"))
#: and of the answer: index, error, time, offset, leader epoch (v4), number of tags (v6)
_FOUND, _FOUND_V4, _FOUND_V6 = (struct.Struct(shape) for shape in (">ihqq", ">ihqqi", ">ihqqiB"))


class _Asked(NamedTuple):
    """One partition of the request."""

    partition: int
    timestamp_ms: int
    leader_epoch: int = NOT_CHECKED


class _Found(NamedTuple):
    """Where a time lies; all -1 for "nowhere"."""

    timestamp_ms: int = -1
    offset: int = -1
    leader_epoch: int = -1


_NOWHERE = _Found()


def handle(broker: Broker, client: Client, request: RawRequest) -> list[Chunk]:
    """Look every asked time up."""
    version = request.version
    reader = Reader(request.data, request.position, is_flexible=request.is_flexible)
    replica = reader.i32()
    is_consumer = replica == _CONSUMER
    isolation = reader.i8() if version >= _ISOLATION_SINCE else 0
    is_stable_only = is_consumer and isolation == _READ_COMMITTED
    topics = [_read_topic(reader, version) for _ in range(reader.count())]
    if version >= _TIMEOUT_SINCE:
        reader.i32()
    reader.tags()
    if isolation not in (0, _READ_COMMITTED):  # Kafka stumbles over it
        return [_failure(request, topics)]
    by_topic: dict[str, list[_Asked]] = {}
    for topic, wanted in topics:
        if wanted:
            by_topic.setdefault(topic, []).extend(wanted)
    writer = _begun(request, len(by_topic))
    for topic, wanted in by_topic.items():
        answers: dict[int, tuple[ErrorCode, _Found]] = {}
        counts = Counter([asked.partition for asked in wanted])
        for asked in wanted:
            answer = ErrorCode.INVALID_REQUEST, _NOWHERE
            if counts[asked.partition] == 1:
                partition = broker.partition(topic, asked.partition)
                error = fencing_error(
                    broker,
                    client.listener,
                    partition,
                    asked.leader_epoch,
                    may_follow=replica == _DEBUGGING,
                )
                answer = _answer(version, asked, partition, error, is_stable_only=is_stable_only)
            answers[asked.partition] = answer
        _write_topic(writer, version, topic, answers.items())
    writer.tags()
    return [writer.frame(request.correlation_id)]


def _begun(request: RawRequest, topic_count: int) -> Writer:
    writer = Writer(is_flexible=request.is_flexible)
    if request.version >= _THROTTLE_SINCE:
        writer.i32(0)
    writer.count(topic_count)
    return writer


def _failure(request: RawRequest, topics: list[tuple[str, list[_Asked]]]) -> Chunk:
    """Return the answer that fails all that was asked, as it was asked: the same twice, too."""
    writer = _begun(request, len(topics))
    for topic, wanted in topics:
        failed = [(asked.partition, (ErrorCode.UNKNOWN_SERVER_ERROR, _NOWHERE)) for asked in wanted]
        _write_topic(writer, request.version, topic, failed)
    writer.tags()
    return writer.frame(request.correlation_id)


def _read_topic(reader: Reader, version: int) -> tuple[str, list[_Asked]]:
    name = reader.string()
    if name is None:
        raise MalformedRequestError("ListOffsets: a topic's name is null")
    wanted = _read_run(reader, version, reader.count())
    reader.tags()
    return name.decode(), wanted


def _read_run(reader: Reader, version: int, count: int) -> list[_Asked]:
    """Read partitions, together where none of them has tags."""
    shape = _ASKED_V6 if version >= _FLEXIBLE_SINCE else _ASKED_V4
    if version < _EPOCHS_SINCE:
        shape = _ASKED
    end = reader.position + count * shape.size
    if end > len(reader.data):  # is cut short; reading on finds out where
        return _read_one_by_one(reader, version, count)
    rows = list(shape.iter_unpack(reader.data[reader.position : end]))
    if version < _EPOCHS_SINCE:
        wanted = [_Asked(*row) for row in rows]
    elif version < _FLEXIBLE_SINCE:
        wanted = [_Asked(partition, time_ms, epoch) for partition, epoch, time_ms in rows]
    elif any(row[3] for row in rows):
        return _read_one_by_one(reader, version, count)
    else:
        wanted = [_Asked(partition, time_ms, epoch) for partition, epoch, time_ms, _ in rows]
    reader.position = end
    return wanted


def _read_one_by_one(reader: Reader, version: int, count: int) -> list[_Asked]:
    wanted: list[_Asked] = []
    for _ in range(count):
        partition = reader.i32()
        leader_epoch = reader.i32() if version >= _EPOCHS_SINCE else NOT_CHECKED
        wanted.append(_Asked(partition, reader.i64(), leader_epoch))
        reader.tags()
    return wanted


def _write_topic(
    writer: Writer,
    version: int,
    topic: str,
    answers: Collection[tuple[int, tuple[ErrorCode, _Found]]],
) -> None:
    writer.string(topic.encode())
    writer.count(len(answers))
    write = writer.pieces.append
    for index, (error, found) in answers:
        if version >= _FLEXIBLE_SINCE:
            write(_FOUND_V6.pack(index, error, *found, 0))
        elif version >= _EPOCHS_SINCE:
            write(_FOUND_V4.pack(index, error, *found))
        else:
            write(_FOUND.pack(index, error, found.timestamp_ms, found.offset))
    writer.tags()


def _answer(
    version: int,
    asked: _Asked,
    partition: KafkaPartition | None,
    error: ErrorCode,
    *,
    is_stable_only: bool,
) -> tuple[ErrorCode, _Found]:
    timestamp_ms = asked.timestamp_ms
    if timestamp_ms < 0 and _FIRST_VERSION.get(timestamp_ms, _NO_VERSION) > version:
        return ErrorCode.UNSUPPORTED_VERSION, _NOWHERE
    if partition is None or error is not ErrorCode.NONE:
        return error, _NOWHERE
    end_offset = partition.last_stable_offset if is_stable_only else partition.end_offset
    try:
        return ErrorCode.NONE, _find(partition, timestamp_ms, end_offset)
    except (LogStoreError, OSError) as failure:
        return refusal_of(failure, f"{partition.topic}-{asked.partition}").code, _NOWHERE


def _find(partition: KafkaPartition, timestamp_ms: int, end_offset: int) -> _Found:
    """Look up in what lies below `end_offset`."""
    if timestamp_ms == _LATEST:
        return _Found(offset=end_offset, leader_epoch=partition.leader_epoch)
    if timestamp_ms in (_EARLIEST, _EARLIEST_LOCAL):
        start_offset = partition.start_offset
        epochs = partition.leader_epochs.entries
        is_known = bool(epochs) and epochs[0][1] <= start_offset
        return _Found(offset=start_offset, leader_epoch=epochs[0][0] if is_known else -1)
    if timestamp_ms in (_LATEST_TIERED, _EARLIEST_PENDING_UPLOAD):
        return _NOWHERE
    if timestamp_ms == _LARGEST_TIMESTAMP:
        found = partition.find_max_timestamp()
    else:
        found = partition.find_timestamp(timestamp_ms)
    if found is None or found.offset >= end_offset:
        return _NOWHERE
    return _Found(found.timestamp_ms, found.offset, found.leader_epoch)

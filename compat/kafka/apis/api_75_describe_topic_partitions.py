"""
DescribeTopicPartitions (75): version 0. Topics in pages (KIP-966).

* topics in the order of their names, partitions in that of their numbers; no topics asks for all
* a page ends at the asked number of partitions, at most ``max.request.partition.size.limit``; the
  cursor says where the next one starts
* a cursor that is not among the asked topics, or before the first partition: 42 for every topic
* where a page would end at a partition beyond Java's ints it has none of the cursor's topic, and
  the next one starts below zero
* 3 unknown, 17 not a name that a topic can have; with all topics neither can happen
* replicas that are eligible though they fell out of sync, and who led last where none is in sync

Read and written by hand: Java's administrators describe topics by it, and a page is long.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from logstore.compat.kafka.authorized_operations import NOT_ASKED, TOPIC_OPERATIONS, bit_field
from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.framing import Reader
from logstore.compat.kafka.nodes.placement import NOBODY
from logstore.compat.kafka.topics.names import INTERNAL_TOPICS, flaw_of
from logstore.compat.kafka.writer import Writer

if TYPE_CHECKING:
    from logstore.compat.connection import Chunk
    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.connection import Client
    from logstore.compat.kafka.nodes.placement import Placement
    from logstore.compat.kafka.registry import RawRequest
    from logstore.segments.kafka.topic import Topic

_INT_MAX = 2**31 - 1
_NO_ID = bytes(16)
_NO_EPOCH = -1
#: before a structure that may be null
_IS_NULL, _IS_THERE = b"\xff", b"\x01"
_PARTITION = struct.Struct(">hiii")  # error, index, leader, the leader's epoch


class _Place(NamedTuple):
    """A topic's partition: where a page starts."""

    topic: str = ""
    partition: int = 0


class _Question(NamedTuple):
    """Topics' names as they were asked for, and from where on (None: from the first)."""

    names: list[str]
    count_max: int
    cursor: _Place | None


class _Described(NamedTuple):
    """One topic on a page, and which of its partitions; without `topic` there is an error."""

    name: str
    error: ErrorCode = ErrorCode.NONE
    topic: Topic | None = None
    partitions: Sequence[int] = ()


def handle(broker: Broker, client: Client, request: RawRequest) -> list[Chunk]:
    """Return one page."""
    del client
    question = _read(request)
    error = _flaw_of(question)
    writer = Writer(is_flexible=request.is_flexible)
    writer.i32(0)
    if error is ErrorCode.NONE:
        page, next_place = _page(broker, question)
        _write_page(writer, broker, page)
    else:
        next_place = None
        writer.count(len(question.names))
        for name in question.names:
            _write_topic(writer, _Described(name, error), is_internal=False)
            writer.count(0)
            _write_end(writer, NOT_ASKED)
    _write_cursor(writer, next_place)
    writer.tags()
    return [writer.frame(request.correlation_id)]


def _read(request: RawRequest) -> _Question:
    reader = Reader(request.data, request.position, is_flexible=request.is_flexible)
    names: list[str] = []
    for _ in range(reader.count()):
        names.append(reader.text().decode(errors="replace"))
        reader.tags()
    count_max = reader.i32()
    cursor: _Place | None = None
    if reader.i8() >= 0:
        cursor = _Place(reader.text().decode(errors="replace"), reader.i32())
        reader.tags()
    reader.tags()
    return _Question(names, count_max, cursor)


def _flaw_of(question: _Question) -> ErrorCode:
    """Return why a question is refused as a whole."""
    names, cursor = question.names, question.cursor
    if cursor is None:
        # Kafka takes an empty name for the topic of a cursor, and stumbles.
        return ErrorCode.UNKNOWN_SERVER_ERROR if "" in names else ErrorCode.NONE
    if cursor.partition < 0 or (names and cursor.topic not in names):
        return ErrorCode.INVALID_REQUEST
    return ErrorCode.NONE


def _page(broker: Broker, question: _Question) -> tuple[list[_Described], _Place | None]:
    """Return what is on a page, and where the next one starts (None: this is the last one)."""
    start = question.cursor or _Place()
    page: list[_Described] = []
    count_left = max(min(question.count_max, broker.config.max_request_partition_size_limit), 1)
    for name in sorted({name for name in question.names or broker.topics if name >= start.topic}):
        if count_left == 0:
            return page, _Place(name, 0)
        topic = broker.topics.get(name)
        if topic is None:
            page.append(_Described(name, _why_missing(broker, name)))
            continue
        first = start.partition if name == start.topic else 0
        if first + count_left > _INT_MAX:
            page.append(_Described(name, topic=topic))
            return page, _Place(name, first + count_left - 2**32)
        partitions = range(first, max(topic.partition_count, first))
        page.append(_Described(name, topic=topic, partitions=partitions[:count_left]))
        if len(partitions) > count_left:
            return page, _Place(name, partitions[count_left])
        count_left -= len(partitions)
    return page, None


def _why_missing(broker: Broker, name: str) -> ErrorCode:
    if (flaw_of(name) or broker.flaw_of_new_topic(name)) is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return ErrorCode.INVALID_TOPIC_EXCEPTION


def _write_page(writer: Writer, broker: Broker, page: list[_Described]) -> None:
    writer.count(len(page))
    operations = bit_field(TOPIC_OPERATIONS)
    ends: dict[Placement, bytes] = {}
    for described in page:
        _write_topic(writer, described, is_internal=described.name in INTERNAL_TOPICS)
        _write_partitions(writer, broker, described, ends)
        _write_end(writer, operations)


def _write_topic(writer: Writer, described: _Described, *, is_internal: bool) -> None:
    """Write what stands before a topic's partitions."""
    topic = described.topic
    writer.i16(described.error)
    writer.string(described.name.encode())
    writer.raw(_NO_ID if topic is None else topic.topic_id)
    writer.boolean(is_internal)


def _write_end(writer: Writer, operations: int) -> None:
    """Write what stands behind a topic's partitions."""
    writer.i32(operations)
    writer.tags()


def _write_partitions(
    writer: Writer, broker: Broker, described: _Described, ends: dict[Placement, bytes]
) -> None:
    """Write partitions; `ends` keeps what those entries end with, which most have in common."""
    writer.count(len(described.partitions))
    topic = described.topic
    if topic is None:
        return
    pieces = writer.pieces
    find = broker.placements.find
    for partition in described.partitions:
        placement = find(topic, partition)
        end = ends.get(placement)
        if end is None:
            end = ends[placement] = _end(broker, placement)
        found = topic.partitions.get(partition)
        leader, epoch = (
            (NOBODY, _NO_EPOCH) if found is None else (placement.leader, found.leader_epoch)
        )
        head = _PARTITION.pack(ErrorCode.NONE, partition, leader, epoch)
        pieces.append(head + end)


def _end(broker: Broker, placement: Placement) -> bytes:
    writer = Writer(is_flexible=True)
    writer.i32s(placement.replicas)
    writer.i32s(placement.in_sync)
    writer.i32s(placement.eligible)
    writer.i32s(() if placement.last_leader == NOBODY else (placement.last_leader,))
    writer.i32s(broker.nodes.down_among(placement.replicas))
    writer.tags()
    return writer.body()


def _write_cursor(writer: Writer, place: _Place | None) -> None:
    if place is None:
        writer.raw(_IS_NULL)
        return
    writer.raw(_IS_THERE)
    writer.string(place.topic.encode())
    writer.i32(place.partition)
    writer.tags()

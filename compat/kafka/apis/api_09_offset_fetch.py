"""
OffsetFetch (9): versions 1-10.

* a partition without an offset: offset -1, leader epoch -1, empty metadata, no error; the same for
  unknown groups and topics
* topics null (v2 and later): everything that the group has committed
* v2: error of the whole group (v1 repeats it for each partition); v3: throttle time
* v5: leader epoch; v6: flexible; v7: require stable; v8: several groups
* v9: member id and epoch, which are looked at for KIP-848 and streams groups (25, 113)
* v10: topics by id (100)
* with require stable an offset that an open transaction may change is 88, to be asked for again

Read and written by hand: who watches how far groups are behind asks for all that they have.
"""

from __future__ import annotations

import struct
import uuid
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.framing import Reader
from logstore.compat.kafka.groups.offsets_log import CommittedOffset
from logstore.compat.kafka.registry import RawRequest
from logstore.compat.kafka.writer import Writer

if TYPE_CHECKING:
    from logstore.compat.connection import Chunk
    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.connection import Client

_GROUP_ERROR_SINCE = _ALL_TOPICS_SINCE = 2
_THROTTLE_SINCE = 3
_EPOCHS_SINCE = 5
_FLEXIBLE_SINCE = 6
_STABLE_SINCE = 7
_GROUPS_SINCE = 8
_MEMBER_EPOCHS_SINCE = 9
_TOPIC_IDS_SINCE = 10
_ID_BYTES = 16
_NOT_COMMITTED = CommittedOffset(-1, 0)
_pack_place = struct.Struct(">iqi").pack  # partition, offset, leader epoch
_pack_old_place = struct.Struct(">iq").pack
#: the same with an empty text, an error and no tagged fields
_pack_plain = struct.Struct(">iqi1shx").pack
_NO_TEXT = b"\x01"


#: a partition, what is committed in it, and what is wrong
_Place = tuple[int, CommittedOffset, ErrorCode]


class _Asked(NamedTuple):
    """One topic of a question, by name or by id."""

    key: bytes
    name: str | None
    partition_indexes: list[int]


class _Found(NamedTuple):
    """One topic of an answer: what it is called in this version, and its partitions, encoded."""

    key: bytes
    partition_count: int
    partitions: bytes


class _Group(NamedTuple):
    """One group of a question; no topics stand for all."""

    group_id: str
    topics: list[_Asked] | None
    member_id: str | None = None
    member_epoch: int = -1


def handle(broker: Broker, client: Client, request: RawRequest) -> list[Chunk]:
    """Tell how far groups have come."""
    del client
    version = request.version
    reader = Reader(request.data, request.position, is_flexible=request.is_flexible)
    if version >= _GROUPS_SINCE:
        groups = [_read_group(broker, reader, version) for _ in range(reader.count())]
    else:
        group_id = reader.text().decode()
        groups = [_Group(group_id, _read_topics(broker, reader, version))]
    is_stable = version >= _STABLE_SINCE and reader.i8() != 0
    reader.tags()
    writer = Writer(is_flexible=request.is_flexible)
    if version >= _THROTTLE_SINCE:
        writer.i32(0)
    if version >= _GROUPS_SINCE:
        writer.count(len(groups))
    for group in groups:
        _answer(broker, writer, version, group, is_stable=is_stable)
    if version >= _GROUPS_SINCE:
        writer.tags()
    return [writer.frame(request.correlation_id)]


def _read_group(broker: Broker, reader: Reader, version: int) -> _Group:
    group_id, member_id, member_epoch = reader.text().decode(), None, -1
    if version >= _MEMBER_EPOCHS_SINCE:
        member_id, member_epoch = reader.string(), reader.i32()
    topics = _read_topics(broker, reader, version)
    reader.tags()
    member = None if member_id is None else member_id.decode()
    return _Group(group_id, topics, member, member_epoch)


def _read_topics(broker: Broker, reader: Reader, version: int) -> list[_Asked] | None:
    count = reader.nullable_count() if version >= _ALL_TOPICS_SINCE else reader.count()
    return None if count is None else [_read_topic(broker, reader, version) for _ in range(count)]


def _read_topic(broker: Broker, reader: Reader, version: int) -> _Asked:
    if version < _TOPIC_IDS_SINCE:
        key = reader.text()
        name: str | None = key.decode()
    else:
        key = bytes(reader.take(_ID_BYTES))
        topic = broker.topic_by_id(uuid.UUID(bytes=key))
        name = None if topic is None else topic.name
    count = reader.count()
    indexes = list(struct.unpack(f">{count}i", reader.take(4 * count)))
    reader.tags()
    return _Asked(key, name, indexes)


def _answer(
    broker: Broker, writer: Writer, version: int, group: _Group, *, is_stable: bool
) -> None:
    if group.topics is None:
        error, found = _look_up_all(broker, group.group_id, version, is_stable=is_stable)
    else:
        error, found = _look_up(broker, group, group.topics, version, is_stable=is_stable)
    if error is ErrorCode.NONE and version >= _MEMBER_EPOCHS_SINCE:
        error = broker.groups.others.fetch_error(
            group.group_id, group.member_id, group.member_epoch
        )
    if version >= _GROUPS_SINCE:
        writer.string(group.group_id.encode())
    if error is not ErrorCode.NONE and version >= _GROUP_ERROR_SINCE:
        found = []
    writer.count(len(found))
    for key, count, partitions in found:
        if version >= _TOPIC_IDS_SINCE:
            writer.raw(key)
        else:
            writer.string(key)
        writer.count(count)
        writer.raw(partitions)
        writer.tags()
    if version >= _GROUP_ERROR_SINCE:
        writer.i16(error)
    writer.tags()


def _look_up(
    broker: Broker, group: _Group, topics: list[_Asked], version: int, *, is_stable: bool
) -> tuple[ErrorCode, list[_Found]]:
    """
    Return what a group has in the asked topics.

    With `is_stable` nothing of what an open transaction may change.
    """
    wanted = [
        (asked.name, index)
        for asked in topics
        if asked.name is not None
        for index in asked.partition_indexes
    ]
    error, offsets = broker.groups.fetch_offsets(group.group_id, wanted)
    unstable = broker.groups.unstable(group.group_id, wanted if is_stable else ())
    known: list[_Found] = []
    unknown: list[_Found] = []
    for key, name, indexes in topics:
        if name is None:
            # Topics are only unknown by id; a name without offsets is just a name without offsets.
            places = [(index, _NOT_COMMITTED, ErrorCode.UNKNOWN_TOPIC_ID) for index in indexes]
            unknown.append(_Found(key, len(places), _encoded(version, places)))
            continue
        places = [
            (index, _NOT_COMMITTED, ErrorCode.UNSTABLE_OFFSET_COMMIT)
            if (name, index) in unstable
            else (index, offsets.get((name, index)) or _NOT_COMMITTED, error)
            for index in indexes
        ]
        known.append(_Found(key, len(places), _encoded(version, places)))
    # Kafka asks its coordinator for the topics that are there, and puts the others behind them.
    return error, known + unknown


def _look_up_all(
    broker: Broker, group_id: str, version: int, *, is_stable: bool
) -> tuple[ErrorCode, list[_Found]]:
    """Return all that a group has; by ids only what is in topics that are there."""
    error, offsets = broker.groups.fetch_offsets(group_id, None)
    unstable = broker.groups.unstable(group_id, offsets if is_stable else ())
    by_topic: dict[str, list[_Place]] = {}
    for of, committed in sorted(offsets.items(), key=lambda one: one[0]):
        name, index = of
        place = (
            (index, _NOT_COMMITTED, ErrorCode.UNSTABLE_OFFSET_COMMIT)
            if of in unstable
            else (index, committed or _NOT_COMMITTED, ErrorCode.NONE)
        )
        by_topic.setdefault(name, []).append(place)
    return error, list(_identified(broker, version, by_topic))


def _identified(
    broker: Broker, version: int, by_topic: dict[str, list[_Place]]
) -> Iterable[_Found]:
    for name, places in by_topic.items():
        key = name.encode()
        if version >= _TOPIC_IDS_SINCE:
            topic = broker.topics.get(name)
            if topic is None:
                continue
            key = topic.topic_id
        yield _Found(key, len(places), _encoded(version, places))


def _encoded(version: int, places: list[_Place]) -> bytes:
    """Return the partitions of a topic as they stand in the answer."""
    if version < _FLEXIBLE_SINCE:
        return b"".join([_partition(version, *place) for place in places])
    return b"".join(
        [
            _partition(version, index, committed, error)
            if committed.metadata
            else _pack_plain(index, committed.offset, committed.leader_epoch, _NO_TEXT, error)
            for index, committed, error in places
        ]
    )


def _partition(version: int, index: int, committed: CommittedOffset, error: ErrorCode) -> bytes:
    offset, _, leader_epoch, metadata, _, _ = committed
    writer = Writer(is_flexible=version >= _FLEXIBLE_SINCE)
    if version >= _EPOCHS_SINCE:
        writer.raw(_pack_place(index, offset, leader_epoch))
    else:
        writer.raw(_pack_old_place(index, offset))
    writer.string(metadata.encode())
    writer.i16(error)
    writer.tags()
    return writer.body()

"""
OffsetCommit (8): versions 2-10.

* partitions that do not exist are refused one by one; the others go to the group's coordinator
* a member must be in the current generation (25, 22, 82) and not between join and sync (27);
  without a generation anyone may commit to an empty or unknown group (simple consumers)
* an unknown group with a generation: 69, before v9 22; a share group: 69
* metadata over ``offset.metadata.max.bytes``: 12 for that partition, the others are kept
* v3: throttle time; v5: no retention time any more (2-4 may ask for one); v6: leader epoch
* a member of a KIP-848 group must be in its epoch (25, 113), or have had the partitions in the
  epoch that it claims (KIP-1251), and use v9 (35)
* v7: group instance id; v8: flexible; v9: member epochs of KIP-848; v10: topics by id (100)

Read and written by hand: some consumers commit after every record, some a thousand partitions.
"""

from __future__ import annotations

import struct
import uuid
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.framing import I16, I32, Reader, framed, uvarint
from logstore.compat.kafka.groups.commit import Commit
from logstore.compat.kafka.groups.offset_answers import OffsetAnswers
from logstore.compat.kafka.groups.offset_table import TopicPartition
from logstore.compat.kafka.groups.offsets_log import CommittedOffset
from logstore.compat.kafka.registry import RawRequest

if TYPE_CHECKING:
    from logstore.compat.connection import Chunk
    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.connection import Client
    from logstore.segments.kafka.topic import Topic

_THROTTLE_SINCE = 3
_RETENTION_UNTIL = 4
_EPOCHS_SINCE = 6
_INSTANCES_SINCE = 7
_GROUP_NOT_FOUND_SINCE = _MEMBER_EPOCHS_SINCE = 9
_TOPIC_IDS_SINCE = 10
_ID_BYTES = 16
_NOT_THROTTLED = bytes(4)
_NO_RETENTION = _NO_EPOCH = -1
#: partition, offset and leader epoch
_unpack_place = struct.Struct(">iqi").unpack_from
_PLACE_BYTES = 16
#: the same, and no text, or an empty one, and no tagged fields
_PLAIN = struct.Struct(">iqi2x")
_EMPTY_TEXT = 1  # 0 is none
#: past the checks of a named tuple's own, which cost as much again
_made: Callable[[type[CommittedOffset], tuple[object, ...]], CommittedOffset]
_made = tuple.__new__  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
_told = struct.Struct(">ih").pack
_told_flexible = struct.Struct(">ihx").pack


#: one partition of the request: its index, offset, leader epoch and metadata
_Asked = tuple[int, int, int, str]


def handle(broker: Broker, client: Client, request: RawRequest) -> list[Chunk]:
    """Keep the offsets of all partitions that exist."""
    del client
    version = request.version
    reader = Reader(request.data, request.position, is_flexible=request.is_flexible)
    group_id, generation_id, member_id = reader.text().decode(), reader.i32(), reader.text()
    instance_id = reader.string() if version >= _INSTANCES_SINCE else None
    retention_ms = reader.i64() if version <= _RETENTION_UNTIL else _NO_RETENTION
    now_ms = broker.groups.surroundings.now_ms()
    expire_ms = -1 if retention_ms == _NO_RETENTION else now_ms + retention_ms
    answers: OffsetAnswers[bytes] = OffsetAnswers()
    keys: dict[str, bytes] = {}  # what topics are called in this version
    offsets: dict[TopicPartition, CommittedOffset] = {}
    for _ in range(reader.count()):
        key, topic = _read_topic(reader, broker, version)
        asked = _read_partitions(reader, version)
        reader.tags()
        indexes = [one[0] for one in asked]
        if topic is None:
            answers.refuse(key, indexes, _unknown(version))
            continue
        keys[topic.name] = key
        passed = answers.sift(topic.name, indexes, topic.partitions)
        if len(passed) < len(asked):
            asked = [one for one in asked if one[0] in topic.partitions]
        _add(offsets, topic, asked, now_ms, expire_ms)
    reader.tags()
    commit = Commit(
        group_id=group_id,
        offsets=offsets,
        member_id=member_id.decode(),
        generation_id=generation_id,
        group_instance_id=None if instance_id is None else instance_id.decode(),
        knows_epochs=version >= _MEMBER_EPOCHS_SINCE,
    )
    # Kafka does not ask the coordinator about nothing: no group comes to be, no session is renewed.
    errors = broker.groups.commit_offsets(commit) if offsets else {}
    is_missed = ErrorCode.GROUP_ID_NOT_FOUND in errors.values()
    is_old = version < _GROUP_NOT_FOUND_SINCE
    if is_missed and is_old and group_id not in broker.groups.share_groups:
        errors = dict.fromkeys(errors, ErrorCode.ILLEGAL_GENERATION)
    told = answers.told(errors)
    return [_encode(request, [(keys[of] if isinstance(of, str) else of, one) for of, one in told])]


def _read_topic(reader: Reader, broker: Broker, version: int) -> tuple[bytes, Topic | None]:
    """Return what a topic is called in this version, and the topic if there is one."""
    if version < _TOPIC_IDS_SINCE:
        name = reader.text()
        return name, broker.topics.get(name.decode())
    topic_id = bytes(reader.take(_ID_BYTES))
    return topic_id, broker.topic_by_id(uuid.UUID(bytes=topic_id)) if any(topic_id) else None


def _read_partitions(reader: Reader, version: int) -> list[_Asked]:
    count = reader.count()
    if reader.is_flexible:
        start, end = reader.position, reader.position + count * _PLAIN.size
        run = bytes(reader.data[start:end])
        texts, tags = run[_PLACE_BYTES :: _PLAIN.size], run[_PLAIN.size - 1 :: _PLAIN.size]
        if count and len(run) == end - start and max(texts) <= _EMPTY_TEXT and not any(tags):
            reader.position = end  # each is plain, and so the next one stands where it seems to
            return [(*place, "") for place in _PLAIN.iter_unpack(run)]
    return [_read_partition(reader, version) for _ in range(count)]


def _read_partition(reader: Reader, version: int) -> _Asked:
    if reader.is_flexible:
        index, offset, leader_epoch = _unpack_place(reader.take(_PLACE_BYTES))
    else:
        index, offset = reader.i32(), reader.i64()
        leader_epoch = reader.i32() if version >= _EPOCHS_SINCE else _NO_EPOCH
    metadata = reader.string()
    reader.tags()
    return index, offset, leader_epoch, (metadata or b"").decode()


def _add(
    offsets: dict[TopicPartition, CommittedOffset],
    topic: Topic,
    asked: list[_Asked],
    now_ms: int,
    expire_ms: int,
) -> None:
    name, topic_id = topic.name, _uuid(topic.topic_id)
    for index, offset, leader_epoch, metadata in asked:
        kept = offset, now_ms, leader_epoch, metadata, expire_ms, topic_id
        offsets[name, index] = _made(CommittedOffset, kept)


@lru_cache(maxsize=1024)
def _uuid(topic_id: bytes) -> uuid.UUID:
    return uuid.UUID(bytes=topic_id)


def _unknown(version: int) -> ErrorCode:
    if version >= _TOPIC_IDS_SINCE:
        return ErrorCode.UNKNOWN_TOPIC_ID
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _encode(request: RawRequest, answers: list[tuple[bytes, list[tuple[int, ErrorCode]]]]) -> Chunk:
    is_flexible, has_ids = request.is_flexible, request.version >= _TOPIC_IDS_SINCE
    told, tags = (_told_flexible, b"\x00") if is_flexible else (_told, b"")
    pieces = [_NOT_THROTTLED if request.version >= _THROTTLE_SINCE else b""]
    pieces.append(_count(len(answers), is_flexible=is_flexible))
    for key, codes in answers:
        if is_flexible:
            pieces += (b"" if has_ids else uvarint(len(key) + 1), key)
        else:
            pieces += (I16.pack(len(key)), key)
        pieces.append(_count(len(codes), is_flexible=is_flexible))
        pieces += [told(index, code) for index, code in codes]
        pieces.append(tags)
    pieces.append(tags)
    return framed(request.correlation_id, b"".join(pieces), has_tags=is_flexible)


def _count(count: int, *, is_flexible: bool) -> bytes:
    return uvarint(count + 1) if is_flexible else I32.pack(count)

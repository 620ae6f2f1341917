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
"""

from __future__ import annotations

import uuid
from collections.abc import Container
from typing import TYPE_CHECKING, Any

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.groups.commit import Commit
from logstore.compat.kafka.groups.offset_answers import OffsetAnswers
from logstore.compat.kafka.groups.offset_table import TopicPartition
from logstore.compat.kafka.groups.offsets_log import CommittedOffset

if TYPE_CHECKING:
    from kafka.protocol.consumer.group import OffsetCommitRequest, OffsetCommitResponse

    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.connection import Client
    from logstore.segments.kafka.topic import Topic

_FIRST_WITH_TOPIC_IDS = 10
_FIRST_WITH_GROUP_NOT_FOUND = 9
_FIRST_WITH_EPOCHS = 9
_NO_ID = uuid.UUID(int=0)


def handle(broker: Broker, client: Client, request: OffsetCommitRequest) -> OffsetCommitResponse:
    """Keep the offsets of all partitions that exist."""
    answers: OffsetAnswers[str | uuid.UUID] = OffsetAnswers()
    keys: dict[str, str | uuid.UUID] = {}
    offsets: dict[TopicPartition, CommittedOffset] = {}
    for asked in request.topics:
        key = _key(request, asked)
        topic = _topic(broker, request, asked.name, asked.topic_id)
        indexes = [partition.partition_index for partition in asked.partitions]
        if topic is None:
            answers.refuse(key, indexes, _unknown(request))
            continue
        keys[topic.name] = key
        passed = answers.sift(key, indexes, topic.partitions)
        offsets |= _offsets(topic, asked, frozenset(passed))
    commit = Commit(
        group_id=request.group_id,
        offsets=offsets,
        member_id=request.member_id,
        generation_id=request.generation_id_or_member_epoch,
        group_instance_id=request.group_instance_id,
        retention_ms=request.retention_time_ms,
        knows_epochs=request.API_VERSION >= _FIRST_WITH_EPOCHS,
    )
    # Kafka does not ask the coordinator about nothing: no group comes to be, no session is renewed.
    errors = broker.groups.commit_offsets(commit) if offsets else {}
    became = {
        (keys[name], index): _told(broker, request, code) for (name, index), code in errors.items()
    }
    return _response(request, answers, became)


def _key(request: OffsetCommitRequest, asked: Any) -> str | uuid.UUID:
    """Return what a topic is called in this version."""
    if request.API_VERSION < _FIRST_WITH_TOPIC_IDS:
        return str(asked.name)
    found: uuid.UUID | None = asked.topic_id
    return _NO_ID if found is None else found  # the library reads an id of zeros as None


def _unknown(request: OffsetCommitRequest) -> ErrorCode:
    if request.API_VERSION >= _FIRST_WITH_TOPIC_IDS:
        return ErrorCode.UNKNOWN_TOPIC_ID
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _topic(
    broker: Broker, request: OffsetCommitRequest, name: str, topic_id: uuid.UUID | None
) -> Topic | None:
    if request.API_VERSION >= _FIRST_WITH_TOPIC_IDS:
        return None if topic_id is None else broker.topic_by_id(topic_id)
    return broker.topics.get(name)


def _offsets(
    topic: Topic, asked: Any, indexes: Container[int]
) -> dict[TopicPartition, CommittedOffset]:
    topic_id = uuid.UUID(bytes=topic.topic_id)
    return {
        (topic.name, partition.partition_index): CommittedOffset(
            offset=partition.committed_offset,
            commit_timestamp_ms=0,
            leader_epoch=partition.committed_leader_epoch,
            metadata=partition.committed_metadata or "",
            topic_id=topic_id,
        )
        for partition in asked.partitions
        if partition.partition_index in indexes
    }


def _response(
    request: OffsetCommitRequest,
    answers: OffsetAnswers[str | uuid.UUID],
    became: dict[tuple[str | uuid.UUID, int], ErrorCode],
) -> OffsetCommitResponse:
    from kafka.protocol.consumer.group import OffsetCommitResponse

    topic_class = OffsetCommitResponse.OffsetCommitResponseTopic
    partition_class = topic_class.OffsetCommitResponsePartition
    name = "topic_id" if request.API_VERSION >= _FIRST_WITH_TOPIC_IDS else "name"
    topics: list[OffsetCommitResponse.OffsetCommitResponseTopic] = []
    for key, codes in answers.told(became):
        identity: dict[str, Any] = {name: key}
        partitions = [
            partition_class(partition_index=index, error_code=code) for index, code in codes
        ]
        topics.append(topic_class(partitions=partitions, **identity))
    return OffsetCommitResponse(version=request.API_VERSION, topics=topics)


def _told(broker: Broker, request: OffsetCommitRequest, error: ErrorCode) -> ErrorCode:
    is_old = request.API_VERSION < _FIRST_WITH_GROUP_NOT_FOUND
    is_shared = request.group_id in broker.groups.share_groups
    if error is ErrorCode.GROUP_ID_NOT_FOUND and is_old and not is_shared:
        return ErrorCode.ILLEGAL_GENERATION
    return error

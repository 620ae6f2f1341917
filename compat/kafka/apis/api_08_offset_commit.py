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
from typing import TYPE_CHECKING, Any

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.groups.commit import Commit
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


def handle(broker: Broker, client: Client, request: OffsetCommitRequest) -> OffsetCommitResponse:
    """Keep the offsets of all partitions that exist."""
    commit = Commit(
        group_id=request.group_id,
        offsets=_offsets(broker, request),
        member_id=request.member_id,
        generation_id=request.generation_id_or_member_epoch,
        group_instance_id=request.group_instance_id,
        retention_ms=request.retention_time_ms,
        knows_epochs=request.API_VERSION >= _FIRST_WITH_EPOCHS,
    )
    # Kafka does not ask the coordinator about nothing: no group comes to be, no session is renewed.
    errors = broker.groups.commit_offsets(commit) if commit.offsets else {}
    return _response(broker, request, errors)


def _topic(
    broker: Broker, request: OffsetCommitRequest, name: str, topic_id: uuid.UUID | None
) -> Topic | None:
    if request.API_VERSION >= _FIRST_WITH_TOPIC_IDS:
        # The library reads an id of zeros, which no topic has, as None.
        return None if topic_id is None else broker.topic_by_id(topic_id)
    return broker.topics.get(name)


def _offsets(broker: Broker, request: OffsetCommitRequest) -> dict[TopicPartition, CommittedOffset]:
    found: dict[TopicPartition, CommittedOffset] = {}
    for asked in request.topics:
        topic = _topic(broker, request, asked.name, asked.topic_id)
        if topic is None:
            continue
        for partition in asked.partitions:
            if partition.partition_index in topic.partitions:
                found[topic.name, partition.partition_index] = CommittedOffset(
                    offset=partition.committed_offset,
                    commit_timestamp_ms=0,
                    leader_epoch=partition.committed_leader_epoch,
                    metadata=partition.committed_metadata or "",
                    topic_id=uuid.UUID(bytes=topic.topic_id),
                )
    return found


def _response(
    broker: Broker, request: OffsetCommitRequest, errors: dict[TopicPartition, ErrorCode]
) -> OffsetCommitResponse:
    from kafka.protocol.consumer.group import OffsetCommitResponse

    topic_class = OffsetCommitResponse.OffsetCommitResponseTopic
    partition_class = topic_class.OffsetCommitResponsePartition
    by_id = request.API_VERSION >= _FIRST_WITH_TOPIC_IDS
    topics: list[OffsetCommitResponse.OffsetCommitResponseTopic] = []
    for asked in request.topics:
        topic = _topic(broker, request, asked.name, asked.topic_id)
        unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if topic is None and by_id:
            unknown = ErrorCode.UNKNOWN_TOPIC_ID
        name = "" if topic is None else topic.name
        partitions = [
            partition_class(
                partition_index=partition.partition_index,
                error_code=_told(
                    broker, request, errors.get((name, partition.partition_index), unknown)
                ),
            )
            for partition in asked.partitions
        ]
        identity: dict[str, Any] = {"topic_id": asked.topic_id} if by_id else {"name": asked.name}
        topics.append(topic_class(partitions=partitions, **identity))
    return OffsetCommitResponse(version=request.API_VERSION, topics=topics)


def _told(broker: Broker, request: OffsetCommitRequest, error: ErrorCode) -> ErrorCode:
    is_old = request.API_VERSION < _FIRST_WITH_GROUP_NOT_FOUND
    is_shared = request.group_id in broker.groups.share_groups
    if error is ErrorCode.GROUP_ID_NOT_FOUND and is_old and not is_shared:
        return ErrorCode.ILLEGAL_GENERATION
    return error

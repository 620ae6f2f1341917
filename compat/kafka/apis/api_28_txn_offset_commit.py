"""
TxnOffsetCommit (28): versions 0-5.

* the offsets of a group that count once the transaction is committed; until then they are in the
  log and hold back readers that require stable offsets (88 of OffsetFetch)
* partitions that do not exist are refused one by one (3); the others go to the group's coordinator
* an empty group id is 24
* v2: leader epoch; v3: flexible, and the member is checked (25, 22, 82; also of KIP-848 groups)
* v4: 120 instead of 48 where the group was not added to the transaction
* v5: transactions of version 2: the group is added by this
"""

from __future__ import annotations

from collections.abc import Container
from typing import TYPE_CHECKING, Any

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.groups.commit import Commit
from logstore.compat.kafka.groups.offset_answers import OffsetAnswers
from logstore.compat.kafka.groups.offset_table import TopicPartition
from logstore.compat.kafka.groups.offsets_log import CommittedOffset, TransactionalProducer
from logstore.compat.kafka.topics.names import GROUPS_TOPIC
from logstore.compat.kafka.transactions.admission import Support, TransactionalWriter, admit
from logstore.segments.kafka.producer_entry import NO_SEQUENCE

if TYPE_CHECKING:
    from kafka.protocol.producer.transaction import TxnOffsetCommitRequest, TxnOffsetCommitResponse

    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.connection import Client

_FIRST_WITH_LOADING = 2
_FIRST_WITH_MEMBERS = 3


def handle(
    broker: Broker, client: Client, request: TxnOffsetCommitRequest
) -> TxnOffsetCommitResponse:
    """Keep the offsets of all partitions that exist, pending."""
    from kafka.protocol.producer.transaction import TxnOffsetCommitResponse

    del client
    topic_class = TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic
    partition_class = topic_class.TxnOffsetCommitResponsePartition
    answers: OffsetAnswers[str] = OffsetAnswers()
    offsets: dict[TopicPartition, CommittedOffset] = {}
    for topic in request.topics:
        there = broker.topics.get(topic.name)
        indexes = [one.partition_index for one in topic.partitions]
        if there is None:
            answers.refuse(topic.name, indexes, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        else:
            passed = answers.sift(topic.name, indexes, there.partitions)
            offsets |= _offsets(topic, frozenset(passed), broker.groups.surroundings.now_ms())
    # Kafka does not ask the coordinator about nothing.
    errors = _commit(broker, request, offsets) if offsets else {}
    version = request.API_VERSION
    return TxnOffsetCommitResponse(
        version=version,
        topics=[
            topic_class(
                name=name,
                partitions=[
                    partition_class(partition_index=index, error_code=_told(code, version))
                    for index, code in told
                ],
            )
            for name, told in answers.told(errors)
        ],
    )


def _offsets(
    topic: Any, indexes: Container[int], now_ms: int
) -> dict[TopicPartition, CommittedOffset]:
    return {
        (topic.name, one.partition_index): CommittedOffset(
            offset=one.committed_offset,
            commit_timestamp_ms=now_ms,
            leader_epoch=one.committed_leader_epoch,
            metadata=one.committed_metadata or "",
        )
        for one in topic.partitions
        if one.partition_index in indexes
    }


def _commit(
    broker: Broker, request: TxnOffsetCommitRequest, offsets: dict[TopicPartition, CommittedOffset]
) -> dict[TopicPartition, ErrorCode]:
    """Return what became of each offset."""
    if not request.group_id:
        return dict.fromkeys(offsets, ErrorCode.INVALID_GROUP_ID)
    name = GROUPS_TOPIC, broker.groups.partition_of(request.group_id)
    partition = broker.partition(*name)
    assert partition is not None, "asking for its number has made it"
    writer = TransactionalWriter(
        request.transactional_id, request.producer_id, request.producer_epoch
    )
    support = Support.of_offset_commit(request.API_VERSION)
    admission = admit(broker, writer, {partition: NO_SEQUENCE}, support)
    if name in admission.errors:
        return dict.fromkeys(offsets, admission.errors[name])
    has_member = request.API_VERSION >= _FIRST_WITH_MEMBERS
    return broker.groups.commit_offsets(
        Commit(
            group_id=request.group_id,
            offsets=offsets,
            member_id=request.member_id if has_member else "",
            generation_id=request.generation_id if has_member else -1,
            group_instance_id=request.group_instance_id if has_member else None,
            producer=TransactionalProducer(
                request.producer_id, request.producer_epoch, admission.guards.get(name)
            ),
        )
    )


def _told(error: ErrorCode, version: int) -> ErrorCode:
    if error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS and version < _FIRST_WITH_LOADING:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    return error

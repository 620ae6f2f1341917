"""
DescribeQuorum (55): versions 0-2.

* this broker leads the log of the cluster's metadata and is its only voter; nobody observes
* only that log can be asked about: anything else is 3
* v1: when a replica fetched and was level with the leader: for the leader itself that is now
* v2: error messages, directory ids (none: the quorum is a static one) and the voters' listeners;
  ours has no listener of its own for that

Source: ``KafkaRaftClient.handleDescribeQuorumRequest``, ``LeaderState``.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.error_messages import MESSAGES
from logstore.compat.kafka.topics.names import METADATA_TOPIC

if TYPE_CHECKING:
    from kafka.protocol.admin.cluster import DescribeQuorumRequest, DescribeQuorumResponse

    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.connection import Client

_FIRST_WITH_NODES = 2


def handle(
    broker: Broker, client: Client, request: DescribeQuorumRequest
) -> DescribeQuorumResponse:
    """Tell of the quorum of one."""
    from kafka.protocol.admin.cluster import DescribeQuorumResponse

    del client
    topic_class = DescribeQuorumResponse.TopicData
    fields: dict[str, Any] = {}
    # Kafka answers nothing else but this one question.
    asked = [
        (one.topic_name, each.partition_index) for one in request.topics for each in one.partitions
    ]
    is_answered = asked == [(METADATA_TOPIC, 0)] and len(request.topics) == 1
    if request.API_VERSION >= _FIRST_WITH_NODES:
        node = DescribeQuorumResponse.Node(node_id=broker.node_id, listeners=[])
        fields = {"error_message": "", "nodes": [node] if is_answered else []}
    return DescribeQuorumResponse(
        version=request.API_VERSION,
        topics=[
            topic_class(
                topic_name=topic.topic_name,
                partitions=[
                    topic_class.PartitionData(
                        **_partition(broker, one.partition_index, is_answered=is_answered)
                    )
                    for one in topic.partitions
                ],
            )
            for topic in request.topics
        ],
        **fields,
    )


def _partition(broker: Broker, index: int, *, is_answered: bool) -> dict[str, Any]:
    from kafka.protocol.admin.cluster import DescribeQuorumResponse

    fields: dict[str, Any] = {"partition_index": index, "current_voters": [], "observers": []}
    if not is_answered:
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return {**fields, "error_code": code, "error_message": MESSAGES[code]}
    epoch, end_offset = broker.store.metadata.lead()
    now_ms = broker.host.clock.wall_ms()
    voter = DescribeQuorumResponse.TopicData.PartitionData.ReplicaState(
        replica_id=broker.node_id,
        replica_directory_id=uuid.UUID(int=0),
        log_end_offset=end_offset,
        last_fetch_timestamp=now_ms,
        last_caught_up_timestamp=now_ms,
    )
    return {
        **fields,
        "error_code": ErrorCode.NONE,
        "error_message": "",
        "leader_id": broker.node_id,
        "leader_epoch": epoch,
        "high_watermark": end_offset,
        "current_voters": [voter],
    }

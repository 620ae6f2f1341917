"""
ElectLeaders (43): versions 0-2.

* the one replica leads already: 84 for every partition that is named, 3 where there is none
* topics null: every topic, in the order of the controller's table, and without its partitions,
  because none needs an election
* v1: election type, preferred (0) or unclean (1), anything else is 42; an error of the whole
* v2: flexible
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.groups.modern.hash_order import members_in_timeline_order

if TYPE_CHECKING:
    from kafka.protocol.admin.topics import ElectLeadersRequest, ElectLeadersResponse

    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.connection import Client

_ELECTION_TYPES = (0, 1)


def handle(broker: Broker, client: Client, request: ElectLeadersRequest) -> ElectLeadersResponse:
    """Answer that every leader is elected already."""
    from kafka.protocol.admin.topics import ElectLeadersResponse

    del client
    version = request.API_VERSION
    error = ErrorCode.NONE
    if request.election_type not in _ELECTION_TYPES:
        error = ErrorCode.INVALID_REQUEST
    topic_class = ElectLeadersResponse.ReplicaElectionResult
    return ElectLeadersResponse(
        version=version,
        error_code=error,
        replica_election_results=[
            topic_class(
                topic=topic,
                partition_result=[
                    topic_class.PartitionResult(**_result(broker, topic, index, error))
                    for index in partitions
                ],
            )
            for topic, partitions in _asked(broker, request, error)
        ],
    )


def _asked(
    broker: Broker, request: ElectLeadersRequest, error: ErrorCode
) -> Sequence[tuple[str, Sequence[int]]]:
    """Return topics and which partitions of them are told of."""
    if request.topic_partitions is None and error:
        return ()
    if request.topic_partitions is None:
        return [(topic, ()) for topic in members_in_timeline_order(broker.store.topics_by_name)]
    return [(asked.topic, asked.partitions) for asked in request.topic_partitions]


def _result(broker: Broker, topic: str, index: int, error: ErrorCode) -> dict[str, Any]:
    if error:
        message = "there is no election of that type"
        return {"partition_id": index, "error_code": error, "error_message": message}
    code, message = ErrorCode.ELECTION_NOT_NEEDED, "the only replica leads already"
    if broker.partition(topic, index) is None:
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        message = f"there is no partition {topic}-{index}"
    return {"partition_id": index, "error_code": code, "error_message": message}

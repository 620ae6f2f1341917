"""
ElectLeaders (43): versions 0-2.

* preferred: the first of the replicas leads again (none of the answer's codes), or does already
  (84), or is not up or not in sync (80); unclean: any that is up leads where nobody does, or 84
* 3 where there is no such partition
* topics null: every topic, in the order of the controller's table, without the partitions that
  need no election
* v1: election type, preferred (0) or unclean (1), anything else is 42, unless no topic is named;
  an error of the whole
* no time at all: 7, of the whole and of each that is named
* v2: flexible
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.error_messages import MESSAGES
from logstore.compat.kafka.groups.modern.hash_order import members_in_timeline_order
from logstore.compat.kafka.nodes.elections import elect
from logstore.compat.kafka.topics.time_given import is_none_given

if TYPE_CHECKING:
    from kafka.protocol.admin.topics import ElectLeadersRequest, ElectLeadersResponse

    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.connection import Client

_PREFERRED, _UNCLEAN = 0, 1


def handle(broker: Broker, client: Client, request: ElectLeadersRequest) -> ElectLeadersResponse:
    """Elect those that are to lead."""
    from kafka.protocol.admin.topics import ElectLeadersResponse

    del client
    version = request.API_VERSION
    error = ErrorCode.NONE
    asked = request.topic_partitions
    if request.election_type not in (_PREFERRED, _UNCLEAN) and (asked is None or asked):
        error = ErrorCode.INVALID_REQUEST
    if is_none_given(broker, request.timeout_ms) and (asked is None or asked):
        error = ErrorCode.REQUEST_TIMED_OUT
    topic_class = ElectLeadersResponse.ReplicaElectionResult
    if asked is None:
        elected = [] if error else _elect_all(broker, request)
    else:
        elected = [
            (one.topic, [_result(broker, request, one.topic, index) for index in one.partitions])
            for one in asked
        ]
    return ElectLeadersResponse(
        version=version,
        error_code=error,
        replica_election_results=[
            topic_class(
                topic=topic,
                partition_result=[topic_class.PartitionResult(**one) for one in results],
            )
            for topic, results in elected
        ],
    )


def _elect_all(
    broker: Broker, request: ElectLeadersRequest
) -> list[tuple[str, list[dict[str, Any]]]]:
    """Elect in every topic; those that need no election are not told of."""
    found: list[tuple[str, list[dict[str, Any]]]] = []
    for name in members_in_timeline_order(broker.store.topics_by_name):
        results = [
            _result(broker, request, name, index)
            for index in sorted(broker.topics[name].partitions)
        ]
        needless = ErrorCode.ELECTION_NOT_NEEDED
        found.append((name, [one for one in results if one["error_code"] != needless]))
    return found


def _result(broker: Broker, request: ElectLeadersRequest, topic: str, index: int) -> dict[str, Any]:
    message: str | None
    if is_none_given(broker, request.timeout_ms):
        code = ErrorCode.REQUEST_TIMED_OUT
        return {"partition_id": index, "error_code": code, "error_message": None}
    if request.election_type not in (_PREFERRED, _UNCLEAN):
        code = ErrorCode.INVALID_REQUEST
        message = f"Unknown election type {request.election_type}"
    elif broker.partition(topic, index) is None:
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        message = f"No such partition as {topic}-{index}"
        if topic not in broker.topics:
            message = f"No such topic as {topic}"
    else:
        is_unclean = request.election_type == _UNCLEAN
        code = elect(broker, broker.topics[topic], index, is_unclean=is_unclean)
        message = MESSAGES.get(code)
    return {"partition_id": index, "error_code": code, "error_message": message}

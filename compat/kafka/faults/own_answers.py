"""Failed answers of the APIs whose messages are our own: each as its request's kind is answered."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from logstore.compat.kafka.groups.consumer import messages as of_consumers
from logstore.compat.kafka.groups.consumer.messages import read_request
from logstore.compat.kafka.groups.share import messages as of_shares
from logstore.compat.kafka.groups.streams import messages as of_streams
from logstore.compat.kafka.share_reads import messages as of_reads
from logstore.compat.kafka.share_state import messages as of_state

if TYPE_CHECKING:
    from logstore.compat.kafka.registry import RawRequest
    from logstore.segments.kafka.internal_topics.schema import Message

#: code and message of a failure, as the fields of an answer
Error = Mapping[str, Any]
_NO_MEMBER: Mapping[str, Any] = {
    "member_id": None, "member_epoch": 0, "heartbeat_interval_ms": 0, "assignment": None,
}  # fmt: skip
_NO_GROUP: Mapping[str, Any] = {
    "group_state": "", "group_epoch": 0, "assignment_epoch": 0, "assignor_name": "", "members": (),
}  # fmt: skip


def _consumer_heartbeat(request: RawRequest, error: Error) -> Message:
    del request
    return of_consumers.ConsumerGroupHeartbeatResponse(**error, **_NO_MEMBER)


def _consumer_describe(request: RawRequest, error: Error) -> Message:
    group_ids = read_request(of_consumers.ConsumerGroupDescribeRequest, request).group_ids
    kind = of_consumers.DescribedGroup
    groups = tuple(kind(group_id=group_id, **error, **_NO_GROUP) for group_id in group_ids)
    return of_consumers.ConsumerGroupDescribeResponse(groups=groups)


def _share_heartbeat(request: RawRequest, error: Error) -> Message:
    del request
    return of_shares.ShareGroupHeartbeatResponse(**error, **_NO_MEMBER)


def _share_describe(request: RawRequest, error: Error) -> Message:
    group_ids = read_request(of_shares.ShareGroupDescribeRequest, request).group_ids
    kind = of_shares.DescribedGroup
    groups = tuple(kind(group_id=group_id, **error, **_NO_GROUP) for group_id in group_ids)
    return of_shares.ShareGroupDescribeResponse(groups=groups)


def _share_fetch(request: RawRequest, error: Error) -> Message:
    del request
    return of_reads.ShareFetchResponse(**error)


def _share_acknowledge(request: RawRequest, error: Error) -> Message:
    del request
    return of_reads.ShareAcknowledgeResponse(**error)


def _describe_offsets(request: RawRequest, error: Error) -> Message:
    asked = read_request(of_shares.DescribeShareGroupOffsetsRequest, request)
    kind = of_shares.DescribedOffsetsGroup
    groups = tuple(kind(group_id=one.group_id, topics=(), **error) for one in asked.groups)
    return of_shares.DescribeShareGroupOffsetsResponse(groups=groups)


def _alter_offsets(request: RawRequest, error: Error) -> Message:
    del request
    return of_shares.AlterShareGroupOffsetsResponse(responses=(), **error)


def _delete_offsets(request: RawRequest, error: Error) -> Message:
    del request
    return of_shares.DeleteShareGroupOffsetsResponse(responses=(), **error)


def _states(
    asked_as: type[Any], response: type[Any], topic: type[Any], partition: type[Any]
) -> Callable[[RawRequest, Error], Message]:
    """Return who answers a request about states: each partition has the error."""

    def failed(request: RawRequest, error: Error) -> Message:
        results = tuple(
            topic(
                topic_id=one.topic_id,
                partitions=tuple(
                    partition(partition=wanted.partition, **error) for wanted in one.partitions
                ),
            )
            for one in read_request(asked_as, request).topics
        )
        answer: Message = response(results=results)
        return answer

    return failed


def _changes(asked_as: type[Any]) -> Callable[[RawRequest, Error], Message]:
    outcome = of_state.StateOutcomeResponse
    return _states(asked_as, outcome, of_state.TopicOutcome, of_state.PartitionOutcome)


#: who fails a request of an API, by its key
def _streams_heartbeat(request: RawRequest, error: Error) -> Message:
    del request
    return of_streams.StreamsGroupHeartbeatResponse(**error)


def _streams_describe(request: RawRequest, error: Error) -> Message:
    group_ids = read_request(of_streams.StreamsGroupDescribeRequest, request).group_ids
    kind = of_streams.DescribedGroup
    groups = tuple(kind(group_id=group_id, **error) for group_id in group_ids)
    return of_streams.StreamsGroupDescribeResponse(groups=groups)


OWN_ANSWERS: Mapping[int, Callable[[RawRequest, Error], Message]] = {
    68: _consumer_heartbeat,
    69: _consumer_describe,
    76: _share_heartbeat,
    77: _share_describe,
    78: _share_fetch,
    79: _share_acknowledge,
    83: _changes(of_state.InitializeShareGroupStateRequest),
    84: _states(
        of_state.ReadShareGroupStateRequest, of_state.ReadShareGroupStateResponse,
        of_state.TopicState, of_state.PartitionState,
    ),
    85: _changes(of_state.WriteShareGroupStateRequest),
    86: _changes(of_state.DeleteShareGroupStateRequest),
    87: _states(
        of_state.ReadShareGroupStateSummaryRequest, of_state.ReadShareGroupStateSummaryResponse,
        of_state.TopicSummary, of_state.PartitionSummary,
    ),
    88: _streams_heartbeat,
    89: _streams_describe,
    90: _describe_offsets,
    91: _alter_offsets,
    92: _delete_offsets,
}  # fmt: skip

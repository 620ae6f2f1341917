"""Failed answers of the APIs whose messages are our own: each as its request's kind is answered."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from logstore.compat.kafka.declared_messages import read_request
from logstore.compat.kafka.delegation_tokens import messages as of_tokens
from logstore.compat.kafka.groups.consumer import messages as of_consumers
from logstore.compat.kafka.groups.share import messages as of_shares
from logstore.compat.kafka.groups.streams import messages as of_streams
from logstore.compat.kafka.nodes import quorum_messages as of_quorum
from logstore.compat.kafka.security.principal import ANONYMOUS
from logstore.compat.kafka.share_reads import messages as of_reads
from logstore.compat.kafka.share_state import messages as of_state

if TYPE_CHECKING:
    from logstore.compat.kafka.groups.modern.messages import DescribeGroupsRequest
    from logstore.compat.kafka.registry import RawRequest
    from logstore.segments.kafka.internal_topics.schema import Message

#: code and message of a failure, as the fields of an answer
Error = Mapping[str, Any]


def _whole(
    asked_as: type[Any], response: type[Any], **rest: Any
) -> Callable[[RawRequest, Error], Message]:
    """Return who answers a request that fails as a whole."""

    def failed(request: RawRequest, error: Error) -> Message:
        read_request(asked_as, request)  # one that cannot be read has no answer
        answer: Message = response(**error, **rest)
        return answer

    return failed


def _code_alone(
    asked_as: type[Any], response: type[Any], **rest: Any
) -> Callable[[RawRequest, Error], Message]:
    """Return who answers a request that fails as a whole, in an answer without a text."""

    def failed(request: RawRequest, error: Error) -> Message:
        read_request(asked_as, request)
        answer: Message = response(error_code=error["error_code"], **rest)
        return answer

    return failed


def _described(
    asked_as: type[DescribeGroupsRequest], response: type[Any], group: type[Any]
) -> Callable[[RawRequest, Error], Message]:
    """Return who answers a request about groups: each has the error."""

    def failed(request: RawRequest, error: Error) -> Message:
        group_ids = read_request(asked_as, request).group_ids
        groups = tuple(group(group_id=group_id, **error) for group_id in group_ids)
        answer: Message = response(groups=groups)
        return answer

    return failed


def _describe_offsets(request: RawRequest, error: Error) -> Message:
    asked = read_request(of_shares.DescribeShareGroupOffsetsRequest, request)
    kind = of_shares.DescribedOffsetsGroup
    groups = tuple(kind(group_id=one.group_id, topics=(), **error) for one in asked.groups)
    return of_shares.DescribeShareGroupOffsetsResponse(groups=groups)


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
OWN_ANSWERS: Mapping[int, Callable[[RawRequest, Error], Message]] = {
    38: _code_alone(
        of_tokens.CreateDelegationTokenRequest, of_tokens.CreateDelegationTokenResponse,
        principal_type=ANONYMOUS.kind, principal_name=ANONYMOUS.name,
        token_requester_principal_type=ANONYMOUS.kind,
        token_requester_principal_name=ANONYMOUS.name,
    ),
    39: _code_alone(
        of_tokens.RenewDelegationTokenRequest, of_tokens.TokenExpiryResponse, expiry_timestamp_ms=0
    ),
    40: _code_alone(
        of_tokens.ExpireDelegationTokenRequest, of_tokens.TokenExpiryResponse,
        expiry_timestamp_ms=0,
    ),
    41: _code_alone(
        of_tokens.DescribeDelegationTokenRequest, of_tokens.DescribeDelegationTokenResponse
    ),
    64: _whole(of_quorum.UnregisterBrokerRequest, of_quorum.OutcomeResponse),
    68: _whole(
        of_consumers.ConsumerGroupHeartbeatRequest, of_consumers.ConsumerGroupHeartbeatResponse
    ),
    69: _described(
        of_consumers.ConsumerGroupDescribeRequest, of_consumers.ConsumerGroupDescribeResponse,
        of_consumers.DescribedGroup,
    ),
    76: _whole(of_shares.ShareGroupHeartbeatRequest, of_shares.ShareGroupHeartbeatResponse),
    77: _described(
        of_shares.ShareGroupDescribeRequest, of_shares.ShareGroupDescribeResponse,
        of_shares.DescribedGroup,
    ),
    78: _whole(of_reads.ShareFetchRequest, of_reads.ShareFetchResponse),
    79: _whole(of_reads.ShareAcknowledgeRequest, of_reads.ShareAcknowledgeResponse),
    80: _whole(of_quorum.AddRaftVoterRequest, of_quorum.OutcomeResponse),
    81: _whole(of_quorum.RemoveRaftVoterRequest, of_quorum.OutcomeResponse),
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
    88: _whole(
        of_streams.StreamsGroupHeartbeatRequest, of_streams.StreamsGroupHeartbeatResponse
    ),
    89: _described(
        of_streams.StreamsGroupDescribeRequest, of_streams.StreamsGroupDescribeResponse,
        of_streams.DescribedGroup,
    ),
    90: _describe_offsets,
    91: _whole(
        of_shares.AlterShareGroupOffsetsRequest, of_shares.AlterShareGroupOffsetsResponse,
        responses=(),
    ),
    92: _whole(
        of_shares.DeleteShareGroupOffsetsRequest, of_shares.DeleteShareGroupOffsetsResponse,
        responses=(),
    ),
}  # fmt: skip

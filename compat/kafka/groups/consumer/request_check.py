"""
What a heartbeat must and must not say, before any group is looked at.

Source: ``GroupCoordinatorService.throwIfConsumerGroupHeartbeatRequestIsInvalid``.
"""

from __future__ import annotations

from collections.abc import Sequence

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.groups.consumer.exchange import UNTOLD_MS, ConsumerHeartbeat
from logstore.compat.kafka.groups.modern.member import (
    JOINING,
    LEAVING,
    LEAVING_FOR_A_WHILE,
)
from logstore.compat.kafka.java_trim import is_blank
from logstore.compat.kafka.refused_request import RefusedRequestError


def check_heartbeat(beat: ConsumerHeartbeat, assignors: Sequence[str]) -> None:
    """
    Refuse a heartbeat that contradicts itself, or asks for an assignor that is not there.

    Raises:
        RefusedRequestError: 42 or 112, with the reason.

    """
    epoch = beat.member_epoch
    has_been_here = epoch > JOINING or epoch == LEAVING
    if is_blank(beat.member_id) and (beat.needs_member_id or has_been_here):
        raise _invalid("MemberId can't be empty.")
    if is_blank(beat.group_id):
        raise _invalid("GroupId can't be empty.")
    if is_blank(beat.instance_id):
        raise _invalid("InstanceId can't be empty.")
    if is_blank(beat.rack_id):
        raise _invalid("RackId can't be empty.")
    if epoch == JOINING:
        _check_first(beat)
    elif epoch == LEAVING_FOR_A_WHILE and beat.instance_id is None:
        raise _invalid("InstanceId can't be null.")
    elif epoch < LEAVING_FOR_A_WHILE:
        raise _invalid("MemberEpoch is invalid.")
    if beat.server_assignor is not None and beat.server_assignor not in assignors:
        raise RefusedRequestError(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"ServerAssignor {beat.server_assignor} is not supported. "
            f"Supported assignors: {', '.join(assignors)}.",
        )


def _check_first(beat: ConsumerHeartbeat) -> None:
    if beat.rebalance_timeout_ms == UNTOLD_MS:
        raise _invalid("RebalanceTimeoutMs must be provided in first request.")
    if beat.owned is None or beat.owned:
        raise _invalid("TopicPartitions must be empty when (re-)joining.")
    if beat.subscribed_topic_names is None and beat.subscribed_topic_regex is None:
        raise _invalid(
            "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when "
            "(re-)joining."
        )


def _invalid(message: str) -> RefusedRequestError:
    return RefusedRequestError(ErrorCode.INVALID_REQUEST, message)

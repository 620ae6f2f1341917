"""
What a heartbeat must and must not say, before any group is looked at.

Source: ``throwIfStreamsGroupHeartbeatRequestIsUsingUnsupportedFeatures``,
``throwIfStreamsGroupHeartbeatRequestIsInvalid`` of ``GroupCoordinatorService``.
"""

from __future__ import annotations

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.groups.modern.member import JOINING, LEAVING_FOR_A_WHILE
from logstore.compat.kafka.groups.streams.exchange import UNTOLD_MS, StreamsHeartbeat
from logstore.compat.kafka.java_trim import is_blank
from logstore.compat.kafka.refused_request import RefusedRequestError
from logstore.segments.kafka.internal_topics.streams_group import StreamsGroupTopologyValue


def check_heartbeat(beat: StreamsHeartbeat) -> None:
    """
    Refuse a heartbeat that contradicts itself, or asks for what release 4.3 does not have yet.

    Raises:
        RefusedRequestError: 42 or 130, with the reason.

    """
    _check_unsupported(beat)
    for text, what in (
        (beat.member_id, "MemberId"),
        (beat.group_id, "GroupId"),
        (beat.rack_id, "RackId"),
    ):
        if is_blank(text):
            raise _invalid(f"{what} can't be empty.")
    if beat.member_epoch == JOINING:
        _check_first(beat)
    elif beat.member_epoch == LEAVING_FOR_A_WHILE:
        raise _invalid("InstanceId can't be null.")
    elif beat.member_epoch < LEAVING_FOR_A_WHILE:
        raise _invalid(
            f"MemberEpoch is {beat.member_epoch}, but must be greater than or equal to -2."
        )
    kinds = (beat.active, beat.standby, beat.warmup)
    if any(kind is not None for kind in kinds) and any(kind is None for kind in kinds):
        raise _invalid("If one task-type is non-null, all must be non-null.")
    if beat.member_epoch != JOINING and beat.topology is not None:
        raise _invalid("Topology can only be provided when (re-)joining.")


def _check_unsupported(beat: StreamsHeartbeat) -> None:
    if beat.instance_id is not None:
        raise _invalid("Static membership is not yet supported.")
    if beat.has_task_offsets:
        raise _invalid("TaskOffsets are not supported yet.")
    if beat.has_task_end_offsets:
        raise _invalid("TaskEndOffsets are not supported yet.")
    if beat.warmup:
        raise _invalid("WarmupTasks are not supported yet.")
    subtopologies = () if beat.topology is None else beat.topology.subtopologies
    if any(one.source_topic_regex for one in subtopologies):
        raise _invalid("Regular expressions for source topics are not supported yet.")


def _check_first(beat: StreamsHeartbeat) -> None:
    if beat.rebalance_timeout_ms == UNTOLD_MS:
        raise _invalid("RebalanceTimeoutMs must be provided in first request.")
    for tasks, what in (
        (beat.active, "ActiveTasks"),
        (beat.standby, "StandbyTasks"),
        (beat.warmup, "WarmupTasks"),
    ):
        if tasks is None or tasks:
            raise _invalid(f"{what} must be empty when (re-)joining.")
    if beat.topology is None:
        raise _invalid("Topology must be non-null when (re-)joining.")
    _check_changelogs(beat.topology)


def _check_changelogs(topology: StreamsGroupTopologyValue) -> None:
    for subtopology in topology.subtopologies:
        for topic in subtopology.state_changelog_topics:
            if topic.partitions:
                raise RefusedRequestError(
                    ErrorCode.STREAMS_INVALID_TOPOLOGY,
                    f"Changelog topic {topic.name} must have an undefined partition count, but it "
                    f"is set to {topic.partitions}.",
                )


def _invalid(message: str) -> RefusedRequestError:
    return RefusedRequestError(ErrorCode.INVALID_REQUEST, message)

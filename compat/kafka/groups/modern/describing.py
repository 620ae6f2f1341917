"""Groups as administrators see them: each as it stands, or why it cannot be told."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, NoReturn, TypeVar

from logstore.compat.kafka.authorized_operations import GROUP_OPERATIONS, NOT_ASKED, bit_field
from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.groups.modern.messages import (
    DescribedAssignment,
    DescribedGroupHead,
    DescribedPartitions,
    DescribeGroupsRequest,
)
from logstore.compat.kafka.refused_request import RefusedRequestError

if TYPE_CHECKING:
    from logstore.compat.kafka.broker import Broker

DescribedT = TypeVar("DescribedT", bound=DescribedGroupHead)
_OPERATIONS = bit_field(GROUP_OPERATIONS)


def described_groups(
    asked: DescribeGroupsRequest, kind: type[DescribedT], describe: Callable[[str], DescribedT]
) -> tuple[DescribedT, ...]:
    """Return what `describe` tells of groups, in the order of the request, or why it refuses."""
    found: list[DescribedT] = []
    for group_id in asked.group_ids:
        try:
            found.append(describe(group_id))
        except RefusedRequestError as refused:
            found.append(
                kind(group_id=group_id, error_code=refused.code, error_message=refused.message)
            )
    return tuple(found)


def refuse_unserved() -> NoReturn:
    """Raise what is told of groups of a kind that is not served (35)."""
    raise RefusedRequestError(ErrorCode.UNSUPPORTED_VERSION)


def operations_for(asked: DescribeGroupsRequest) -> int:
    """Return what can be done with a group, if somebody wants to know."""
    return _OPERATIONS if asked.include_authorized_operations else NOT_ASKED


def described_assignment(
    broker: Broker, partitions: Mapping[uuid.UUID, Iterable[int]]
) -> DescribedAssignment:
    """Return partitions with the names of their topics; topics that are gone are left out."""
    topics = ((broker.topic_by_id(topic_id), it) for topic_id, it in partitions.items())
    return DescribedAssignment(
        topic_partitions=tuple(
            DescribedPartitions(
                topic_id=uuid.UUID(bytes=topic.topic_id),
                topic_name=topic.name,
                partitions=tuple(sorted(indexes)),
            )
            for topic, indexes in topics
            if topic is not None
        )
    )

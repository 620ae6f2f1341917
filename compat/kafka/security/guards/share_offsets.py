"""Guards of where share groups start: told, changed and forgotten."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any, TypeVar

import attrs

from logstore.compat.kafka.declared_messages import answered, read_request
from logstore.compat.kafka.groups.share.broker_cluster import serves_share_groups
from logstore.compat.kafka.groups.share.messages import (
    AlteredOffsetsPartition,
    AlteredOffsetsTopic,
    AlterOffsetsTopic,
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsResponse,
    DeletedOffsetsTopic,
    DeleteOffsetsTopic,
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
    DescribedOffsetsGroup,
    DescribedOffsetsPartition,
    DescribedOffsetsTopic,
    DescribeOffsetsGroup,
    DescribeOffsetsTopic,
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsResponse,
)
from logstore.compat.kafka.message_handlers import ask_declared
from logstore.compat.kafka.security.acl import Operation, ResourceType
from logstore.compat.kafka.security.guarded_request import REFUSALS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from logstore.compat.connection import Chunk
    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.connection import Client
    from logstore.compat.kafka.registry import Api, RawRequest
    from logstore.compat.kafka.security.authorizer import Authorizer
    from logstore.compat.waiting import Later

_READ, _DESCRIBE, _DELETE = Operation.READ, Operation.DESCRIBE, Operation.DELETE
_GROUP, _TOPIC = ResourceType.GROUP, ResourceType.TOPIC
_NO_GROUP, _NO_GROUP_TEXT = REFUSALS[_GROUP]
_NO_TOPIC, _NO_TOPIC_TEXT = REFUSALS[_TOPIC]
_NO_ID = uuid.UUID(int=0)
_TopicT = TypeVar("_TopicT", DescribeOffsetsTopic, AlterOffsetsTopic, DeleteOffsetsTopic)


def describe_share_group_offsets(
    authorizer: Authorizer, api: Api, broker: Broker, client: Client, raw: RawRequest
) -> list[Chunk] | Later[list[Chunk]] | None:
    """To describe each group, and of topics those that one may describe."""
    if not serves_share_groups(broker):
        assert api.handle_raw is not None
        return api.handle_raw(broker, client, raw)
    asked = read_request(DescribeShareGroupOffsetsRequest, raw)
    is_allowed = [
        authorizer.allows(client, _DESCRIBE, _GROUP, one.group_id) for one in asked.groups
    ]
    wanted: list[DescribeOffsetsGroup] = []
    unseen: list[list[DescribeOffsetsTopic]] = []
    for group, is_seen in zip(asked.groups, is_allowed, strict=True):
        if is_seen:
            seen, hidden = _parted(authorizer, client, _DESCRIBE, group.topics or ())
            topics = None if group.topics is None else tuple(seen)
            wanted.append(attrs.evolve(group, topics=topics))
            unseen.append(hidden)
    less = DescribeShareGroupOffsetsRequest(groups=tuple(wanted))
    kind = DescribeShareGroupOffsetsResponse
    served: DescribeShareGroupOffsetsResponse = ask_declared(api, broker, client, raw, less, kind)
    found = iter(
        _described(authorizer, client, *one)
        for one in zip(wanted, served.groups, unseen, strict=True)
    )
    groups = tuple(
        next(found) if is_seen else _refused(group.group_id)
        for group, is_seen in zip(asked.groups, is_allowed, strict=True)
    )
    return answered(kind(groups=groups), raw)


def _parted(
    authorizer: Authorizer, client: Client, operation: Operation, topics: Iterable[_TopicT]
) -> tuple[list[_TopicT], list[_TopicT]]:
    """Return the topics with which a client may do that, and the others."""
    allowed: list[_TopicT] = []
    refused: list[_TopicT] = []
    for topic in topics:
        may = authorizer.allows(client, operation, _TOPIC, topic.topic_name)
        (allowed if may else refused).append(topic)
    return allowed, refused


def _described(
    authorizer: Authorizer,
    client: Client,
    wanted: DescribeOffsetsGroup,
    served: DescribedOffsetsGroup,
    unseen: list[DescribeOffsetsTopic],
) -> DescribedOffsetsGroup:
    """Return a group without what the client may not see, of which it is told if it has asked."""
    if served.error_code:
        return served
    if wanted.topics is None:
        seen = tuple(
            topic for topic in served.topics
            if authorizer.allows(client, _DESCRIBE, _TOPIC, topic.topic_name)
        )  # fmt: skip
        return attrs.evolve(served, topics=seen)
    return attrs.evolve(served, topics=served.topics + tuple(_hidden(one) for one in unseen))


def _hidden(topic: DescribeOffsetsTopic) -> DescribedOffsetsTopic:
    partitions = tuple(
        DescribedOffsetsPartition(
            partition_index=index, start_offset=-1, leader_epoch=0,
            error_code=_NO_TOPIC, error_message=_NO_TOPIC_TEXT,
        )
        for index in topic.partitions
    )  # fmt: skip
    return DescribedOffsetsTopic(
        topic_name=topic.topic_name, topic_id=_NO_ID, partitions=partitions
    )


def _refused(group_id: str) -> DescribedOffsetsGroup:
    return DescribedOffsetsGroup(
        group_id=group_id, topics=(), error_code=_NO_GROUP, error_message=None
    )


@attrs.frozen
class _ChangeGuard:
    """To do the `operation` with the group, and to read each topic; others are left `unchanged`."""

    request_class: type[AlterShareGroupOffsetsRequest | DeleteShareGroupOffsetsRequest]
    response_class: type[AlterShareGroupOffsetsResponse | DeleteShareGroupOffsetsResponse]
    operation: Operation
    unchanged: Callable[[Broker, Any], Any]

    def __call__(
        self, authorizer: Authorizer, api: Api, broker: Broker, client: Client, raw: RawRequest
    ) -> list[Chunk] | Later[list[Chunk]] | None:
        """Change what may be changed, and refuse the rest."""
        if not serves_share_groups(broker):
            assert api.handle_raw is not None
            return api.handle_raw(broker, client, raw)
        asked: Any = read_request(self.request_class, raw)
        kind = self.response_class
        if not authorizer.allows(client, self.operation, _GROUP, asked.group_id):
            refusal = kind(error_code=_NO_GROUP, error_message=_NO_GROUP_TEXT, responses=())
            return answered(refusal, raw)
        allowed, refused = _parted(authorizer, client, _READ, asked.topics)
        less = attrs.evolve(asked, topics=tuple(allowed))
        served = ask_declared(api, broker, client, raw, less, kind)
        if not served.error_code:
            topics = tuple(self.unchanged(broker, topic) for topic in refused)
            served = attrs.evolve(served, responses=topics + served.responses)
        return answered(served, raw)


def _unaltered(broker: Broker, topic: AlterOffsetsTopic) -> AlteredOffsetsTopic:
    """Return what is said of a topic; its id is told to everybody, as Kafka does."""
    found = broker.store.topics_by_name.get(topic.topic_name)
    return AlteredOffsetsTopic(
        topic_name=topic.topic_name,
        topic_id=_NO_ID if found is None else uuid.UUID(bytes=found.topic_id),
        partitions=tuple(
            AlteredOffsetsPartition(
                partition_index=one.partition_index,
                error_code=_NO_TOPIC,
                error_message=_NO_TOPIC_TEXT,
            )
            for one in topic.partitions
        ),
    )


def _undeleted(broker: Broker, topic: DeleteOffsetsTopic) -> DeletedOffsetsTopic:
    del broker
    return DeletedOffsetsTopic(
        topic_name=topic.topic_name,
        topic_id=_NO_ID,
        error_code=_NO_TOPIC,
        error_message=_NO_TOPIC_TEXT,
    )


alter_share_group_offsets = _ChangeGuard(
    AlterShareGroupOffsetsRequest, AlterShareGroupOffsetsResponse, _READ, _unaltered
)
delete_share_group_offsets = _ChangeGuard(
    DeleteShareGroupOffsetsRequest, DeleteShareGroupOffsetsResponse, _DELETE, _undeleted
)

"""
DeleteShareGroupOffsets (92): version 0. A share group forgets what it has read of topics.

* 68 it has members; 69 no such group, or one of another kind; 24 it has no name
* 35 where the cluster has no share groups; 3, for each topic, where there is nothing to forget
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.kafka.declared_messages import answered, read_request
from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.groups.share.broker_cluster import serves_share_groups
from logstore.compat.kafka.groups.share.exchange import TopicDeleted
from logstore.compat.kafka.groups.share.messages import (
    DeletedOffsetsTopic,
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
)
from logstore.compat.kafka.refused_request import RefusedRequestError

if TYPE_CHECKING:
    from logstore.compat.connection import Chunk
    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.connection import Client
    from logstore.compat.kafka.registry import RawRequest

_UNSUPPORTED = "The version of API is not supported."


def handle(broker: Broker, client: Client, request: RawRequest) -> list[Chunk]:
    """Let a group forget."""
    del client
    asked = read_request(DeleteShareGroupOffsetsRequest, request)
    names = [topic.topic_name for topic in asked.topics]
    error, message, topics = ErrorCode.NONE, None, list[TopicDeleted]()
    try:
        if not serves_share_groups(broker):
            raise RefusedRequestError(ErrorCode.UNSUPPORTED_VERSION, _UNSUPPORTED)
        topics = broker.groups.shares.offsets.delete(asked.group_id, names)
    except RefusedRequestError as refused:
        error, message = refused.code, refused.message
    response = DeleteShareGroupOffsetsResponse(
        error_code=error,
        error_message=message,
        responses=tuple(
            DeletedOffsetsTopic(
                topic_name=one.name,
                topic_id=one.topic_id,
                error_code=one.error_code,
                error_message=one.error_message,
            )
            for one in topics
        ),
    )
    return answered(response, request)

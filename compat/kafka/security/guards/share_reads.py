"""
Guards of what members of share groups read: to read the group, and each topic.

What a session is about is looked at with every request. Of a topic that the client may not read
records are neither handed out nor acknowledged.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from logstore.compat.kafka.apis.api_78_share_fetch import serve as serve_fetch
from logstore.compat.kafka.apis.api_79_share_acknowledge import serve as serve_acknowledge
from logstore.compat.kafka.declared_messages import answered, read_request
from logstore.compat.kafka.groups.share.broker_cluster import serves_share_groups
from logstore.compat.kafka.security.acl import Operation, ResourceType
from logstore.compat.kafka.security.guarded_request import REFUSALS
from logstore.compat.kafka.share_reads.messages import (
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
    ShareFetchRequest,
    ShareFetchResponse,
)

if TYPE_CHECKING:
    from logstore.compat.connection import Chunk
    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.connection import Client
    from logstore.compat.kafka.registry import Api, RawRequest
    from logstore.compat.kafka.security.authorizer import Authorizer
    from logstore.compat.waiting import Later

_REFUSED_GROUP = REFUSALS[ResourceType.GROUP][0]


def share_fetch(
    authorizer: Authorizer, api: Api, broker: Broker, client: Client, raw: RawRequest
) -> list[Chunk] | Later[list[Chunk]]:
    """Hand out what may be read, and refuse the rest."""
    del api
    asked = read_request(ShareFetchRequest, raw)
    if not _may_join(authorizer, broker, client, asked.group_id):
        return answered(ShareFetchResponse(error_code=_REFUSED_GROUP), raw)
    may_read = partial(_may_read, authorizer, broker, client)
    return serve_fetch(broker, client, raw, asked, may_read=may_read)


def share_acknowledge(
    authorizer: Authorizer, api: Api, broker: Broker, client: Client, raw: RawRequest
) -> list[Chunk]:
    """Note what became of records of what may be read, and refuse the rest."""
    del api
    asked = read_request(ShareAcknowledgeRequest, raw)
    if not _may_join(authorizer, broker, client, asked.group_id):
        return answered(ShareAcknowledgeResponse(error_code=_REFUSED_GROUP), raw)
    may_read = partial(_may_read, authorizer, broker, client)
    return serve_acknowledge(broker, client, raw, asked, may_read=may_read)


def _may_join(authorizer: Authorizer, broker: Broker, client: Client, group_id: str | None) -> bool:
    """Tell whether a client may read a group; a request that cannot be is the handler's."""
    if group_id is None or not serves_share_groups(broker):
        return True
    return authorizer.allows(client, Operation.READ, ResourceType.GROUP, group_id)


def _may_read(authorizer: Authorizer, broker: Broker, client: Client, topic_id: bytes) -> bool:
    topic = broker.topic_by_id(topic_id)
    if topic is None:
        return True  # the handler's to refuse
    return authorizer.allows(client, Operation.READ, ResourceType.TOPIC, topic.name)

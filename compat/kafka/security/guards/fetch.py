"""
Guard of Fetch: to read each topic, those of the session, too, whenever it is looked at.

Who says that it is a replica must have the right of brokers, and needs no other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from logstore.compat.kafka.apis.api_01_fetch import answer
from logstore.compat.kafka.fetch.query import parse
from logstore.compat.kafka.framing import Reader, read_uvarint
from logstore.compat.kafka.security.acl import CLUSTER_NAME, Operation, ResourceType

if TYPE_CHECKING:
    from logstore.compat.connection import Chunk
    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.connection import Client
    from logstore.compat.kafka.fetch.query import Query
    from logstore.compat.kafka.registry import Api, RawRequest
    from logstore.compat.kafka.security.authorizer import Authorizer
    from logstore.compat.waiting import Later

_CONSUMER = -1
_IDS_SINCE = 13
#: a tagged field in place of the first one
_STATE_SINCE = 15
_STATE_TAG = 1


def fetch(
    authorizer: Authorizer, api: Api, broker: Broker, client: Client, raw: RawRequest
) -> list[Chunk] | Later[list[Chunk]]:
    """Read what may be read, and refuse the rest."""
    del api
    query = parse(raw, client.listener)
    query.may_read = readers_check(authorizer, broker, client, raw, query)
    return answer(broker, query)


def readers_check(
    authorizer: Authorizer, broker: Broker, client: Client, raw: RawRequest, query: Query
) -> Callable[[bytes], bool]:
    """Return what tells whether a client may read a topic, given as the request does."""
    if replica_in(raw, query.rack_position) >= 0:
        is_broker = authorizer.allows(
            client, Operation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME
        )
        return lambda _: is_broker

    def may_read(key: bytes) -> bool:
        if raw.version < _IDS_SINCE:
            name = key.decode(errors="replace")
        else:
            topic = broker.topic_by_id(key)
            if topic is None:
                return True  # the handler's to refuse
            name = topic.name
        return authorizer.allows(client, Operation.READ, ResourceType.TOPIC, name)

    return may_read


def replica_in(raw: RawRequest, rack_position: int) -> int:
    """Return which replica a request says that it comes from; -1 from a consumer."""
    if raw.version < _STATE_SINCE:
        return Reader(raw.data, raw.position, is_flexible=raw.is_flexible).i32()
    reader = Reader(raw.data, rack_position, is_flexible=True)
    reader.string()
    count, position = read_uvarint(raw.data, reader.position)
    for _ in range(count):
        tag, position = read_uvarint(raw.data, position)
        size_bytes, position = read_uvarint(raw.data, position)
        if tag == _STATE_TAG:
            return Reader(raw.data, position, is_flexible=True).i32()
        position += size_bytes
    return _CONSUMER

"""Guard of Fetch: to read each topic, those of the session, too, whenever it is looked at."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from logstore.compat.kafka.apis.api_01_fetch import answer
from logstore.compat.kafka.fetch.query import parse
from logstore.compat.kafka.security.acl import Operation, ResourceType

if TYPE_CHECKING:
    from logstore.compat.connection import Chunk
    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.connection import Client
    from logstore.compat.kafka.registry import Api, RawRequest
    from logstore.compat.kafka.security.authorizer import Authorizer
    from logstore.compat.waiting import Later

_IDS_SINCE = 13


def fetch(
    authorizer: Authorizer, api: Api, broker: Broker, client: Client, raw: RawRequest
) -> list[Chunk] | Later[list[Chunk]]:
    """Read what may be read, and refuse the rest."""
    del api
    query = parse(raw, client.listener)
    query.may_read = readers_check(authorizer, broker, client, raw.version)
    return answer(broker, query)


def readers_check(
    authorizer: Authorizer, broker: Broker, client: Client, version: int
) -> Callable[[bytes], bool]:
    """Return what tells whether a client may read a topic, given as requests of `version` do."""

    def may_read(key: bytes) -> bool:
        if version < _IDS_SINCE:
            name = key.decode(errors="replace")
        else:
            topic = broker.topic_by_id(key)
            if topic is None:
                return True  # the handler's to refuse
            name = topic.name
        return authorizer.allows(client, Operation.READ, ResourceType.TOPIC, name)

    return may_read

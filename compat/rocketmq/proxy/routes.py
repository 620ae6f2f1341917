"""Where a topic's messages are, as clients of the proxy are told (``RouteActivity``)."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING, Any

from logstore.compat.rocketmq.proxy.codes import AddressScheme, Code, MessageType, Permission
from logstore.compat.rocketmq.proxy.failures import ProxyError

if TYPE_CHECKING:
    from logstore.compat.rocketmq.proxy.proxy import Proxy
    from logstore.segments.rocketmq.tables.topics import TopicConfig

_TYPE_ATTRIBUTE = "message.type"
_MIXED = (MessageType.NORMAL, MessageType.FIFO, MessageType.DELAY, MessageType.TRANSACTION)


def require_topic(proxy: Proxy, topic: str) -> TopicConfig:
    """Return a topic. Raises ProxyError: there is none."""
    config = proxy.broker.topics.get(topic)
    if config is None:
        text = (
            f"CODE: 17  DESC: No topic route info in name server for the topic: {topic}"
            "\nFor more information, please visit the url, "
            "https://rocketmq.apache.org/docs/bestPractice/06FAQ"
        )
        raise ProxyError(Code.TOPIC_NOT_FOUND, text)
    return config


def type_name(config: TopicConfig | None) -> str:
    """Return which messages a topic takes, by Java's name."""
    if config is None:
        return MessageType.UNSPECIFIED.name
    return config.attributes.get(_TYPE_ATTRIBUTE, MessageType.NORMAL.name).upper()


def message_types(config: TopicConfig) -> tuple[MessageType, ...]:
    """Return which messages a topic takes."""
    name = type_name(config)
    if name == "MIXED":
        return _MIXED
    return (MessageType[name] if name in MessageType.__members__ else MessageType.UNSPECIFIED,)


def permission_of(config: TopicConfig) -> Permission:
    """Return what may be done with a topic."""
    if config.is_readable and config.is_writable:
        return Permission.READ_WRITE
    if config.is_readable:
        return Permission.READ
    return Permission.WRITE if config.is_writable else Permission.NONE


def broker_of(proxy: Proxy, asked: Any) -> dict[str, Any]:
    """Return the broker: it is found where the client has found the proxy, as far as it says."""
    about = {"name": proxy.broker.settings.broker_name, "id": 0}
    if asked.addresses:
        return {**about, "endpoints": asked}
    try:
        version = ipaddress.ip_address(proxy.host).version
        scheme = AddressScheme.IPV4 if version == 4 else AddressScheme.IPV6
    except ValueError:
        scheme = AddressScheme.DOMAIN_NAME
    address = {"host": proxy.host, "port": proxy.port}
    return {**about, "endpoints": {"scheme": int(scheme), "addresses": [address]}}


def route_queues(proxy: Proxy, config: TopicConfig, asked: Any) -> list[dict[str, Any]]:
    """Return all queues: those to read only, those to write only, then the others."""
    reads, writes = config.read_queue_count, config.write_queue_count
    permission = permission_of(config)
    both = min(reads, writes)
    counts = {
        Permission.READ_WRITE: (
            (Permission.READ, reads - both),
            (Permission.WRITE, writes - both),
            (Permission.READ_WRITE, both),
        ),
        Permission.WRITE: ((Permission.WRITE, writes),),
        Permission.READ: ((Permission.READ, reads),),
        Permission.NONE: ((Permission.NONE, max(1, reads, writes)),),
    }[permission]
    kinds = [kind for kind, count in counts for _ in range(count)]
    broker = broker_of(proxy, asked)
    return [
        {"id": index, "permission": int(kind), "broker": broker} for index, kind in enumerate(kinds)
    ]

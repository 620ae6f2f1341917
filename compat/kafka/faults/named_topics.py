"""Which topics a request names, whoever has its message: the library or we."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from logstore.compat.kafka.declared_messages import read_request
from logstore.compat.kafka.groups.consumer.messages import ConsumerGroupHeartbeatRequest
from logstore.compat.kafka.groups.share.messages import ShareGroupHeartbeatRequest
from logstore.compat.kafka.library_messages import decoded
from logstore.compat.kafka.registry import Api, RawRequest
from logstore.compat.kafka.share_reads.messages import ShareAcknowledgeRequest, ShareFetchRequest

if TYPE_CHECKING:
    from logstore.compat.kafka.broker import Broker

_TOPIC_FIELDS = ("name", "topic", "topic_name")
_HEARTBEAT, _SHARE_HEARTBEAT, _STREAMS_HEARTBEAT = 68, 76, 88
_SHARE_FETCH, _SHARE_ACKNOWLEDGE = 78, 79


def topics_of(broker: Broker, api: Api, request: RawRequest) -> set[str]:
    """Return the names of all topics that a request names, those of its fetch session too."""
    if api.key == _HEARTBEAT:
        return set(
            read_request(ConsumerGroupHeartbeatRequest, request).subscribed_topic_names or ()
        )
    if api.key == _STREAMS_HEARTBEAT:
        return _topics_of_topology(request)
    if api.key == _SHARE_HEARTBEAT:
        return set(read_request(ShareGroupHeartbeatRequest, request).subscribed_topic_names or ())
    if api.key in (_SHARE_FETCH, _SHARE_ACKNOWLEDGE):
        return _shared_topics(broker, api, request)
    message = decoded(api, request)
    if message is None:
        return set()
    return {name for name in _names(broker, message) if name}


def _shared_topics(broker: Broker, api: Api, request: RawRequest) -> set[str]:
    """Return the topics of a share group's member, those of its session too."""
    asked: ShareFetchRequest | ShareAcknowledgeRequest
    if api.key == _SHARE_FETCH:
        asked = read_request(ShareFetchRequest, request)
    else:
        asked = read_request(ShareAcknowledgeRequest, request)
    topic_ids = {topic.topic_id.bytes for topic in asked.topics}
    topic_ids |= broker.share_partitions.topic_ids_of(asked.group_id, asked.member_id)
    topics = map(broker.topic_by_id, topic_ids)
    return {topic.name for topic in topics if topic is not None}


def _topics_of_topology(request: RawRequest) -> set[str]:
    from logstore.compat.kafka.groups.streams.messages import StreamsGroupHeartbeatRequest

    topology = read_request(StreamsGroupHeartbeatRequest, request).topology
    subtopologies = () if topology is None else topology.subtopologies
    return {topic for one in subtopologies for topic in one.source_topics}


def _names(broker: Broker, message: Any) -> Iterator[str]:
    for field in message._struct._fields:
        found = getattr(message, field.name, None)
        if field.name == "session_id" and found:
            for key, _ in broker.fetch_sessions.partitions_of(found):
                topic = broker.topic_by_id(key)  # names, of old versions, are no ids
                yield key.decode() if topic is None else topic.name
        if not isinstance(found, list):
            continue
        is_about_topics = "topic" in field.name
        elements: list[Any] = found  # pyright: ignore[reportUnknownVariableType]
        for element in elements:
            if isinstance(element, str):
                yield element if is_about_topics else ""
            elif hasattr(element, "_struct"):
                if is_about_topics:
                    yield _topic_name(broker, element)
                yield from _names(broker, element)


def _topic_name(broker: Broker, element: Any) -> str:
    for field in _TOPIC_FIELDS:
        name = getattr(element, field, None)
        if isinstance(name, str) and name:
            return name
    topic_id = getattr(element, "topic_id", None)
    topic = broker.topic_by_id(topic_id) if isinstance(topic_id, uuid.UUID) else None
    return "" if topic is None else topic.name

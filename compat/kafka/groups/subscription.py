"""
Which topics a consumer asks for: the first fields of the embedded consumer protocol.

Whatever the version, a subscription starts with ``version int16, topics [string]``; the broker
reads no further, so that it never depends on what newer clients add behind.

Source: ``ClassicGroup.computeSubscribedTopics``, ``ConsumerProtocolSubscription.json``.
"""

from __future__ import annotations

from collections.abc import Iterable

from logstore.compat.kafka.groups.record_fields import FieldReader, GroupRecordError

#: The protocol type whose metadata the broker can read.
CONSUMER_PROTOCOL_TYPE = "consumer"


def subscribed_topics(subscriptions: Iterable[bytes]) -> frozenset[str] | None:
    """Return the topics that at least one member asks for; None if one cannot be read."""
    topics: set[str] = set()
    try:
        for subscription in subscriptions:
            reader = FieldReader(subscription)
            reader.int16()
            topics.update(reader.string() for _ in range(reader.count()))
    except GroupRecordError:
        return None
    return frozenset(topics)

"""
Which topics a consumer asks for: the first fields of the embedded consumer protocol.

Whatever the version, a subscription starts with ``version int16, topics [string]``; the broker
reads no further, so that it never depends on what newer clients add behind.

Source: ``ClassicGroup.computeSubscribedTopics``, ``ConsumerProtocolSubscription.json``.
"""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from logstore.segments.kafka.internal_topics.codec import MessageError, decode_message
from logstore.segments.kafka.internal_topics.schema import Message

#: The protocol type whose metadata the broker can read.
CONSUMER_PROTOCOL_TYPE = "consumer"
_VERSION_BYTES = 2


@attrs.frozen(kw_only=True)
class SubscribedTopics(Message):
    """The beginning of every version of a subscription."""

    topics: tuple[str, ...]


def subscribed_topics(subscriptions: Iterable[bytes]) -> frozenset[str] | None:
    """Return the topics that at least one member asks for; None if one cannot be read."""
    topics: set[str] = set()
    try:
        for subscription in subscriptions:
            topics.update(decode_message(SubscribedTopics, subscription, 0, _VERSION_BYTES).topics)
    except MessageError:
        return None
    return frozenset(topics)

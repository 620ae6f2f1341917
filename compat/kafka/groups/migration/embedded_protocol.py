"""
What consumers of the classic protocol tell each other, read and written by the broker.

In a classic group subscriptions and assignments pass through the broker unread. In a consumer group
it takes the place of the members' leader: it reads what they want and writes what they get, in the
version that each of them speaks.

Source: ``org.apache.kafka.clients.consumer.internals.ConsumerProtocol``.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping

from logstore.compat.kafka.groups.modern.cluster import Cluster
from logstore.compat.kafka.groups.modern.group import TopicIdPartition
from logstore.compat.kafka.groups.modern.hash_order import partitions_in_order, topics_in_order
from logstore.segments.kafka.internal_topics.codec import (
    MessageError,
    decode_message,
    decode_version,
    encode_versioned,
)
from logstore.segments.kafka.internal_topics.consumer_protocol import (
    ConsumerPartitions,
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)
from logstore.segments.kafka.internal_topics.schema import Message, MessageT

_VERSION_BYTES = 2
_NAMES: Mapping[type[Message], str] = {
    ConsumerProtocolSubscription: "subscription",
    ConsumerProtocolAssignment: "assignment",
}
_UNDERFLOW = "Buffer underflow while parsing consumer protocol's "


class SchemaError(MessageError):
    """
    Bytes end too early, or have no version that there is.

    Of whatever else is wrong in them Kafka takes no notice, and stumbles over it: `MessageError`.
    """


def subscription_in(metadata: bytes) -> ConsumerProtocolSubscription:
    """
    Return what a member says about itself.

    Raises:
        SchemaError, MessageError: it cannot be read.

    """
    return _decoded(ConsumerProtocolSubscription, metadata)


def assignment_in(assignment: bytes) -> ConsumerProtocolAssignment:
    """
    Return what a member was given; nothing stands for nothing.

    Raises:
        SchemaError, MessageError: it cannot be read.

    """
    if not assignment:
        return ConsumerProtocolAssignment(assigned_partitions=())
    return _decoded(ConsumerProtocolAssignment, assignment)


def assignment_for(
    partitions: Mapping[uuid.UUID, Iterable[int]], metadata: bytes, cluster: Cluster
) -> bytes:
    """
    Return partitions as a member is given them that has sent `metadata`: in its version.

    Topics that are gone are left out; the others come as Kafka walks them, by their ids.

    Raises:
        SchemaError: the metadata has no version.

    """
    entries = [
        ConsumerPartitions(
            topic=shape.name, partitions=tuple(partitions_in_order(partitions[topic_id]))
        )
        for topic_id in topics_in_order(partitions)
        if (shape := cluster.topic_with_id(topic_id)) is not None
    ]
    message = ConsumerProtocolAssignment(assigned_partitions=tuple(entries))
    return encode_versioned(message, _version_of(ConsumerProtocolAssignment, metadata))


def known_partitions(
    entries: Iterable[ConsumerPartitions], cluster: Cluster
) -> frozenset[TopicIdPartition]:
    """Return partitions of topics that exist, by the ids of these."""
    found: set[TopicIdPartition] = set()
    for entry in entries:
        shape = cluster.topic_named(entry.topic)
        if shape is not None:
            found.update((shape.topic_id, index) for index in entry.partitions)
    return frozenset(found)


def _decoded(kind: type[MessageT], data: bytes) -> MessageT:
    try:
        return decode_message(kind, data, _version_of(kind, data), _VERSION_BYTES)
    except MessageError as error:
        if error.reason is not None:
            raise
        raise SchemaError(_UNDERFLOW + _NAMES[kind]) from error


def _version_of(kind: type[Message], data: bytes) -> int:
    """Return the version to read or write; newer ones begin like the last that is known."""
    if len(data) < _VERSION_BYTES:
        raise SchemaError(_UNDERFLOW + "header")
    version = decode_version(data)
    if version < 0:
        raise SchemaError(f"Unsupported {_NAMES[kind]} version: {version}")
    return min(version, kind.VERSIONS[-1])

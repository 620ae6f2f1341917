"""
ListGroups (16): versions 0-5.

* every group with its protocol type, empty for simple consumers
* they come in the order of Kafka's tables, whatever the filters take out
* filters compare without regard to case; an unknown state or type matches nothing
* v1: throttle time; v3: flexible; v4: states and a filter for them; v5: types and a filter

Read and written by hand: tools list all groups there are, again and again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from logstore.compat.kafka.framing import Reader
from logstore.compat.kafka.groups.listing_order import groups_in_order
from logstore.compat.kafka.topics.names import GROUPS_TOPIC
from logstore.compat.kafka.writer import Writer

if TYPE_CHECKING:
    from logstore.compat.connection import Chunk
    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.connection import Client
    from logstore.compat.kafka.groups.exchange import ListedGroup
    from logstore.compat.kafka.registry import RawRequest

_STATES_FROM = 4
_TYPES_FROM = 5


def handle(broker: Broker, client: Client, request: RawRequest) -> list[Chunk]:
    """Return all groups that the filters let through."""
    del client
    version = request.version
    states, types = _read(request)
    error, groups = broker.groups.list_groups(states, types)
    writer = Writer(is_flexible=request.is_flexible)
    if version >= 1:
        writer.i32(0)
    writer.i16(error)
    writer.count(len(groups))
    kinds: dict[tuple[str, str, str], bytes] = {}
    all_groups = broker.groups.list_groups()[1] if states or types else groups
    for group in _in_order(broker, groups, all_groups):
        writer.string(group.group_id.encode())
        kind = group.protocol_type, group.state.value, group.group_type
        end = kinds.get(kind)
        if end is None:
            end = kinds[kind] = _end(kind, request)
        writer.raw(end)
    writer.tags()
    return [writer.frame(request.correlation_id)]


def _read(request: RawRequest) -> tuple[list[str], list[str]]:
    """Return which states and which types are wanted."""
    reader = Reader(request.data, request.position, is_flexible=request.is_flexible)
    states = _texts(reader) if request.version >= _STATES_FROM else []
    types = _texts(reader) if request.version >= _TYPES_FROM else []
    reader.tags()
    return states, types


def _texts(reader: Reader) -> list[str]:
    return [reader.text().decode(errors="replace") for _ in range(reader.count())]


def _end(kind: tuple[str, str, str], request: RawRequest) -> bytes:
    """Return what follows the id of every group of a kind: protocol type, state, type."""
    writer = Writer(is_flexible=request.is_flexible)
    protocol_type, state, group_type = kind
    writer.string(protocol_type.encode())
    if request.version >= _STATES_FROM:
        writer.string(state.encode())
    if request.version >= _TYPES_FROM:
        writer.string(group_type.encode())
    writer.tags()
    return writer.body()


def _in_order(
    broker: Broker, groups: Sequence[ListedGroup], all_groups: Sequence[ListedGroup]
) -> Sequence[ListedGroup]:
    """Return the groups as Kafka walks them, or as they are where there is no topic of theirs."""
    topic = broker.topics.get(GROUPS_TOPIC)
    if topic is None:
        return groups
    ordered = groups_in_order((group.group_id for group in all_groups), topic.partition_count)
    places = {group_id: place for place, group_id in enumerate(ordered)}
    return sorted(groups, key=lambda group: places[group.group_id])

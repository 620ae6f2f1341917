"""
ListGroups (16): versions 0-5.

* every group with its protocol type, empty for simple consumers
* they come in the order of Kafka's tables, whatever the filters take out
* filters compare without regard to case; an unknown state or type matches nothing
* v1: throttle time; v3: flexible; v4: states and a filter for them; v5: types and a filter
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from logstore.compat.kafka.groups.listing_order import groups_in_order
from logstore.compat.kafka.topics.names import GROUPS_TOPIC

if TYPE_CHECKING:
    from kafka.protocol.admin.groups import ListGroupsRequest, ListGroupsResponse

    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.connection import Client
    from logstore.compat.kafka.groups.exchange import ListedGroup


def handle(broker: Broker, client: Client, request: ListGroupsRequest) -> ListGroupsResponse:
    """Return all groups that the filters let through."""
    from kafka.protocol.admin.groups import ListGroupsResponse

    error, groups = broker.groups.list_groups(
        request.states_filter or (), request.types_filter or ()
    )
    return ListGroupsResponse(
        version=request.API_VERSION,
        error_code=error,
        groups=[
            ListGroupsResponse.ListedGroup(
                group_id=group.group_id,
                protocol_type=group.protocol_type,
                group_state=group.state.value,
                group_type=group.group_type,
            )
            for group in _in_order(broker, groups)
        ],
    )


def _in_order(broker: Broker, groups: Sequence[ListedGroup]) -> Sequence[ListedGroup]:
    """Return the groups as Kafka walks them, or as they are where there is no topic of theirs."""
    topic = broker.topics.get(GROUPS_TOPIC)
    if topic is None:
        return groups
    names = [group.group_id for group in broker.groups.list_groups()[1]]
    places = {name: at for at, name in enumerate(groups_in_order(names, len(topic.partitions)))}
    return sorted(groups, key=lambda group: places[group.group_id])

"""The order in which Kafka lists groups: coordinator by coordinator, each in its own table."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from logstore.compat.kafka.groups.modern.hash_order import (
    coordinators_in_order,
    members_in_timeline_order,
)
from logstore.compat.kafka.groups.partitioning import partition_of


def groups_in_order(group_ids: Iterable[str], partition_count: int) -> list[str]:
    """Return the ids of all groups as Kafka walks them; every partition has a coordinator."""
    by_partition: dict[int, list[str]] = defaultdict(list)
    for group_id in group_ids:
        by_partition[partition_of(group_id, partition_count)].append(group_id)
    return [
        group_id
        for partition in coordinators_in_order(partition_count)
        for group_id in members_in_timeline_order(by_partition[partition])
    ]

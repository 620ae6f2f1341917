"""Leadership that moves: to another node, or, where there is none, away and back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.kafka.nodes.elections import move_leaders as move

if TYPE_CHECKING:
    from logstore.compat.kafka.broker import Broker


def move_leaders(
    broker: Broker, topic: str, index: int | None = None, to: int | None = None
) -> dict[int, int]:
    """
    Let the next node in sync lead a partition, or all of a topic; return the leader epochs.

    `to` names the node. Clients that know the old epoch are told ``FENCED_LEADER_EPOCH``, as after
    any election, or by who led before ``NOT_LEADER_OR_FOLLOWER``; batches from now on carry the new
    epoch.

    Raises:
        ValueError: there is no such partition, or the node cannot lead it.

    """
    found = broker.topics.get(topic)
    indexes = [] if found is None else [one for one in found.partitions if index in (None, one)]
    if found is None or not indexes:
        raise ValueError(f"there is no partition {topic if index is None else f'{topic}-{index}'}")
    return move(broker, found, indexes, to)

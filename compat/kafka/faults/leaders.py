"""Leadership that moves: away and, with the next epoch, back, for there is nobody else."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from logstore.compat.kafka.broker import Broker


def move_leaders(broker: Broker, topic: str, index: int | None = None) -> dict[int, int]:
    """
    Let this broker lead a partition, or all of a topic, anew; return the leader epochs by index.

    Clients that know the old epoch are told ``FENCED_LEADER_EPOCH``, as after any election;
    batches from now on carry the new one.

    Raises:
        ValueError: there is no such partition.

    """
    found = broker.topics.get(topic)
    partitions = {} if found is None else found.partitions
    chosen = [one for one in partitions.values() if index in (None, one.index)]
    if found is None or not chosen:
        raise ValueError(f"there is no partition {topic if index is None else f'{topic}-{index}'}")
    epochs: dict[int, int] = {}
    for partition in chosen:
        partition.become_leader(partition.leader_epoch + 1)
        epochs[partition.index] = partition.leader_epoch
    broker.store.metadata.adopt([found])
    for partition in chosen:
        broker.readers.abandon(partition)  # who waits for data learns of it
    return epochs

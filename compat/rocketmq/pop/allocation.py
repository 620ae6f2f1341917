"""How queues are shared out among the members of a group (AllocateMessageQueueStrategy)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from logstore.compat.rocketmq.wire.message_queue import MessageQueue
from logstore.errors import LogStoreError

ALL_QUEUES = -1
#: (who asks, queues, members), both in order -> queues
Strategy: TypeAlias = Callable[[str, Sequence[MessageQueue], Sequence[str]], list[MessageQueue]]


class AllocationError(LogStoreError, ValueError):
    """Queues cannot be shared out: there are none, nobody is there, or nobody knows how."""


def averagely(
    client_id: str, queues: Sequence[MessageQueue], members: Sequence[str]
) -> list[MessageQueue]:
    """Return as many neighbours as everybody else gets, or one more for the first ones."""
    if client_id not in members:
        return []
    index = members.index(client_id)
    size, rest = divmod(len(queues), len(members))
    start = index * size + min(index, rest)
    return list(queues[start : start + size + (index < rest)])


def by_circle(
    client_id: str, queues: Sequence[MessageQueue], members: Sequence[str]
) -> list[MessageQueue]:
    """Return every so many-th queue."""
    if client_id not in members:
        return []
    return list(queues[members.index(client_id) :: len(members)])


_STRATEGIES: dict[str, Strategy] = {"AVG": averagely, "AVG_BY_CIRCLE": by_circle}


def allocate(
    strategy: str, client_id: str, queues: Sequence[MessageQueue], members: Sequence[str]
) -> list[MessageQueue]:
    """
    Return the queues that one member pulls from.

    Raises:
        AllocationError: there is no such strategy, or nothing or nobody to share out to.

    """
    found = _strategy(strategy)
    if not client_id or not queues or not members:
        raise AllocationError("nothing is shared out without queues, members and a client id")
    return found(client_id, queues, members)


def _strategy(name: str) -> Strategy:
    found = _STRATEGIES.get(name)
    if found is None:
        raise AllocationError(f"unsupported strategy [{name}]")
    return found


def allocate_for_pop(
    strategy: str,
    client_id: str,
    queues: Sequence[MessageQueue],
    members: Sequence[str],
    share_count: int,
) -> list[MessageQueue]:
    """
    Return the queues that one member pops from: its own, and those of so many members behind it.

    Where everybody shares with everybody that is each broker's queue -1, which stands for all.

    Raises:
        AllocationError: there is no such strategy, or nothing or nobody to share out to.

    """
    _strategy(strategy)  # it must be a known one, even where it is not needed
    if share_count <= 0 or share_count >= len(members) - 1:
        return [MessageQueue(queue.topic, queue.broker_name, ALL_QUEUES) for queue in queues]
    if len(members) <= len(queues):
        found = allocate(strategy, client_id, queues, members)
        if client_id in members:
            index = members.index(client_id)
            for number in range(1, share_count + 1):
                other = members[(index + number) % len(members)]
                found += allocate(strategy, other, queues, members)
        return found
    if not client_id or not queues:
        raise AllocationError("nothing is shared out without queues, members and a client id")
    if client_id not in members:
        return []
    return [queues[members.index(client_id) % len(queues)]]

"""Locks of queues for ordered consumption (RebalanceLockManager): one client of a group each."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import attrs

from logstore.compat.rocketmq.wire.message_queue import MessageQueue

#: a lock that was not asked for again in this time is anybody's
LOCK_LIFE_MS = 60_000


@attrs.define
class _Lock:
    client_id: str
    since_ms: int


class QueueLocks:
    """Who holds which queue. `now_ms` tells the time, which never goes back."""

    def __init__(self, now_ms: Callable[[], float]) -> None:
        self._now_ms = now_ms
        self._groups: dict[str, dict[MessageQueue, _Lock]] = {}

    def lock(
        self, group: str, client_id: str, queues: Iterable[MessageQueue]
    ) -> list[MessageQueue]:
        """Take, or hold on to, as many of `queues` as are free; return those that are held."""
        locks = self._groups.setdefault(group, {})
        now_ms = int(self._now_ms())
        held: list[MessageQueue] = []
        for queue in queues:
            lock = locks.get(queue)
            if lock is None or lock.client_id == client_id or _is_expired(lock, now_ms):
                locks[queue] = _Lock(client_id, now_ms)
                held.append(queue)
        return held

    def unlock(self, group: str, client_id: str, queues: Iterable[MessageQueue]) -> None:
        """Let go of queues; those that another client holds stay held."""
        locks = self._groups.get(group, {})
        for queue in queues:
            lock = locks.get(queue)
            if lock is not None and lock.client_id == client_id:
                del locks[queue]
        if not locks:
            self._groups.pop(group, None)

    def forget_expired(self) -> None:
        """Drop the groups none of whose locks is held any more."""
        for group in [group for group in self._groups if not self.is_any_held(group)]:
            del self._groups[group]

    def is_any_held(self, group: str) -> bool:
        """Tell whether some client of the group holds a queue: the group consumes in order."""
        now_ms = int(self._now_ms())
        locks = self._groups.get(group, {})
        return any(not _is_expired(lock, now_ms) for lock in locks.values())


def _is_expired(lock: _Lock, now_ms: int) -> bool:
    return now_ms - lock.since_ms > LOCK_LIFE_MS

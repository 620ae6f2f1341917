"""
Share sessions: a member names its partitions once, then only what changes.

===========  =====================================================================
epoch        meaning
===========  =====================================================================
0            opens a session, in place of one that the member has
-1           closes it; error 122, SHARE_SESSION_NOT_FOUND, without one
n            goes on: topics listed are new, forgotten ones go
not the next 123, INVALID_SHARE_SESSION_EPOCH
===========  =====================================================================

Epochs count requests, those that acknowledge too, and wrap from 2^31-1 to 1. A session belongs to
the connection that opened it. If there are as many as there may be, no more are opened: 133,
SHARE_SESSION_LIMIT_REACHED.

Source: ``ShareSessionCache``, ``ShareSession``, ``CachedSharePartition``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import attrs

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.refused_request import RefusedRequestError

INITIAL_EPOCH, FINAL_EPOCH = 0, -1
_EPOCH_MAX = 2**31 - 1


class PartitionKey(NamedTuple):
    """A partition as clients name it."""

    topic_id: bytes
    partition: int


class SessionKey(NamedTuple):
    """A member of a group, at the node that it reads from: it has a session with each."""

    group_id: str
    member_id: str
    node_id: int


@attrs.define(eq=False)
class ShareSession:
    """One member's partitions; those that must be named in the next answer have True."""

    key: SessionKey
    #: whose end is the session's end
    connection: object
    partitions: dict[PartitionKey, bool]
    next_epoch: int = 1

    def update(self, added: Iterable[PartitionKey], forgotten: Iterable[PartitionKey]) -> None:
        """Take partitions in, and let others go."""
        for key in added:
            self.partitions.setdefault(key, True)
        for key in forgotten:
            self.partitions.pop(key, None)

    def must_name(self, key: PartitionKey, error_code: int, *, has_records: bool) -> bool:
        """
        Tell whether an answer must name a partition, and note that it did.

        One that had records is served last next time; one that had an error is named once more.
        """
        is_due = self.partitions.get(key)
        if is_due is None:
            return has_records or error_code != 0
        self.partitions[key] = error_code != 0
        if has_records:
            self.partitions[key] = self.partitions.pop(key)
        return is_due or has_records or error_code != 0


class ShareSessions:
    """All sessions of a broker."""

    def __init__(self, count_max: int) -> None:
        self._count_max = count_max
        self._sessions: dict[SessionKey, ShareSession] = {}
        self._by_connection: dict[object, ShareSession] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def get(self, key: SessionKey) -> ShareSession:
        """
        Return a member's session.

        Raises:
            RefusedRequestError: 122, it has none.

        """
        found = self.find(key)
        if found is None:
            raise RefusedRequestError(ErrorCode.SHARE_SESSION_NOT_FOUND)
        return found

    def find(self, key: SessionKey) -> ShareSession | None:
        """Return a member's session, if it has one."""
        return self._sessions.get(key)

    def open(
        self, key: SessionKey, partitions: Iterable[PartitionKey], connection: object
    ) -> ShareSession:
        """
        Begin a member's session, in place of one that it has.

        Raises:
            RefusedRequestError: 133, there are too many; -1, a partition comes twice.

        """
        self._sessions.pop(key, None)
        wanted = list(partitions)
        if len(set(wanted)) < len(wanted):  # over which Kafka stumbles
            raise RefusedRequestError(ErrorCode.UNKNOWN_SERVER_ERROR)
        if len(self._sessions) >= self._count_max:
            raise RefusedRequestError(ErrorCode.SHARE_SESSION_LIMIT_REACHED)
        session = ShareSession(key, connection, dict.fromkeys(wanted, False))
        self._sessions[key] = self._by_connection[connection] = session
        return session

    def go_on(self, key: SessionKey, epoch: int) -> ShareSession:
        """
        Return a member's session if `epoch` is its next; count on.

        Raises:
            RefusedRequestError: 122, it has none; 123, it is at another epoch.

        """
        session = self.get(key)
        if session.next_epoch != epoch:
            raise RefusedRequestError(ErrorCode.INVALID_SHARE_SESSION_EPOCH)
        session.next_epoch = 1 if epoch == _EPOCH_MAX else epoch + 1
        return session

    def close(self, key: SessionKey) -> ShareSession | None:
        """Forget a member's session; return it, if there was one."""
        return self._sessions.pop(key, None)

    def of_connection(self, connection: object) -> ShareSession | None:
        """Return the last session that a connection opened, closed or not; it is gone now."""
        return self._by_connection.pop(connection, None)

    def is_open(self, session: ShareSession) -> bool:
        """Tell whether it is this session that its member has."""
        return self._sessions.get(session.key) is session

    def clear(self) -> None:
        """Forget all sessions."""
        self._sessions.clear()

    def has_members_of(self, group_id: str) -> bool:
        """Tell whether a member of a group has a session."""
        return any(key.group_id == group_id for key in self._sessions)

"""
The share-partitions that are open here, and the sessions of those who read them.

A share-partition is opened by the first fetch. It is dropped, and opened anew when somebody asks,
once the persister fences it, when its topic goes or its leader moves, and when the last member of
its group has gone.

Source: ``SharePartitionManager``, ``SharePartitionCache``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.error_messages import MESSAGES
from logstore.compat.kafka.groups.share.settings import ShareGroupSettings
from logstore.compat.kafka.refused_request import RefusedRequestError
from logstore.compat.kafka.share_reads.acknowledgement import AcknowledgementBatch
from logstore.compat.kafka.share_reads.share_partition import SharePartition
from logstore.compat.kafka.share_reads.share_sessions import (
    PartitionKey,
    SessionKey,
    ShareSessions,
)
from logstore.compat.kafka.share_state.persister import SharePartitionKey
from logstore.compat.kafka.topics.names import SHARE_GROUPS_TOPIC

if TYPE_CHECKING:
    from logstore.compat.kafka.broker import Broker
    from logstore.segments.kafka.topic import Topic

_log = logging.getLogger(__name__)
#: with these the persister says that a state is another's by now, or nobody's
_FENCING = (
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
)
_NOT_HOSTED = MESSAGES[ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]


class SharePartitions:
    """What this broker leads, as share groups read it."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._partitions: dict[SharePartitionKey, SharePartition] = {}
        self.sessions = ShareSessions(broker.config.given.integer("group.share.max.share.sessions"))
        #: what ends the wait of a connection's fetch
        self.waiting: dict[object, Callable[[], None]] = {}

    def __len__(self) -> int:
        return len(self._partitions)

    def settings(self, group_id: str) -> ShareGroupSettings:
        """Return what holds for a group now."""
        return ShareGroupSettings.of(self._broker, group_id)

    def topic_ids_of(self, group_id: str | None, member_id: str | None) -> set[bytes]:
        """Return the topics that a member's sessions are about; none without one."""
        found = (
            self.sessions.find(SessionKey(group_id or "", member_id or "", node_id))
            for node_id in self._broker.nodes.by_id
        )
        return {key.topic_id for one in found if one is not None for key in one.partitions}

    # opening and dropping

    def get(self, group_id: str, key: PartitionKey) -> SharePartition | None:
        """Return a share-partition if it is open."""
        found = self._partitions.get(SharePartitionKey(group_id, *key))
        if found is not None and found.log.leader_epoch != found.leader_epoch:
            self.drop(found.key)
            return None
        return found

    def opened(self, group_id: str, key: PartitionKey) -> SharePartition:
        """
        Return a share-partition; its state is read if it was not open.

        Raises:
            RefusedRequestError: there is no such partition, or no state of it for the group.

        """
        found = self.get(group_id, key)
        if found is not None:
            return found
        log = self._broker.by_id.get(key.topic_id, {}).get(key.partition)
        if log is None:
            raise RefusedRequestError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, _NOT_HOSTED)
        partition = SharePartition(
            SharePartitionKey(group_id, *key),
            log,
            self._broker.share_state,
            lambda: self.settings(group_id),
            self._broker.timers,
        )
        partition.on_timeout = self._broker.readers.wake
        partition.initialize()
        self._partitions[partition.key] = partition
        return partition

    def drop(self, key: SharePartitionKey) -> None:
        """Forget a share-partition, if it is open; what is kept of it is left alone."""
        partition = self._partitions.pop(key, None)
        if partition is not None:
            partition.fence()

    def forget_topic(self, topic: Topic) -> None:
        """Drop what was read of a topic that goes; with the states' own topic all is dropped."""
        is_state = topic.name == SHARE_GROUPS_TOPIC
        self._drop_all(
            key for key in self._partitions if is_state or key.topic_id == topic.topic_id
        )

    def forget_group(self, group_id: str) -> None:
        """Drop what a group has read."""
        self._drop_all(key for key in self._partitions if key.group_id == group_id)

    def _drop_all(self, keys: Iterable[SharePartitionKey]) -> None:
        for key in list(keys):
            self.drop(key)

    # ends of deliveries

    def acknowledge(
        self,
        member: SessionKey,
        said: Mapping[PartitionKey, Sequence[AcknowledgementBatch]],
    ) -> dict[PartitionKey, RefusedRequestError | None]:
        """End deliveries as a member says; return by partition why that did not go, or None."""
        outcome: dict[PartitionKey, RefusedRequestError | None] = {}
        for key, batches in said.items():
            partition = self.get(member.group_id, key)
            if partition is None:
                outcome[key] = RefusedRequestError(
                    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, _NOT_HOSTED
                )
            else:
                change = partial(partition.acknowledge, member.member_id, batches)
                outcome[key] = self._tried(partition, change)
        return outcome

    def release_session(self, member: SessionKey) -> None:
        """Close a member's session, and take back what it has."""
        session = self.sessions.close(member)
        for key in session.partitions if session is not None else ():
            partition = self.get(member.group_id, key)
            if partition is not None:
                error = self._tried(partition, partial(partition.release, member.member_id))
                if error is not None:
                    _log.error("%s: what %s had is not kept: %s", partition, member, error)

    def _tried(
        self, partition: SharePartition, change: Callable[[], None]
    ) -> RefusedRequestError | None:
        """Make a change; return why it was refused, or None. Who is fenced is dropped."""
        try:
            change()
        except RefusedRequestError as error:
            if error.code in _FENCING:
                self.drop(partition.key)
            return error
        return None

    def disconnected(self, connection: object) -> None:
        """End the session of a connection that is gone; with the last one goes what is open."""
        leave = self.waiting.pop(connection, None)
        if leave is not None:
            leave()
        session = self.sessions.of_connection(connection)
        if session is None:
            return
        if self.sessions.is_open(session):
            self.release_session(session.key)
        if not self.sessions.has_members_of(session.key.group_id):
            self.forget_group(session.key.group_id)
        self._broker.readers.wake()

    def close_all(self) -> None:
        """Forget all sessions and share-partitions: there are no share groups any more."""
        self.sessions.clear()
        self._drop_all(self._partitions)

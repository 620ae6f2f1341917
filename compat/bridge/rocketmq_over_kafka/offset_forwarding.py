"""Offsets that RocketMQ's groups commit, on their way into Kafka's log of offsets."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.groups.commit import Commit
from logstore.compat.kafka.groups.offsets_log import CommittedOffset

if TYPE_CHECKING:
    from logstore.compat.bridge.shared_topics import SharedTopics
    from logstore.compat.kafka.broker import Broker
    from logstore.segments.rocketmq.tables.consumer_offsets import ConsumerOffsetTable

_log = logging.getLogger(__name__)
#: RocketMQ writes its own table every five seconds
_INTERVAL_MS = 1_000


class OffsetForwarding:
    """
    Gathers what changes in `table`, and commits it to `kafka` once a second and at the end.

    A group that has members on Kafka's side takes no commits from others; what RocketMQ's members
    of that name commit then is seen by both while the broker runs, and stands in `table` only.
    """

    def __init__(self, kafka: Broker, table: ConsumerOffsetTable, topics: SharedTopics) -> None:
        self._kafka = kafka
        self._topics = topics
        self._changed: dict[str, dict[tuple[str, int], int]] = {}
        table.on_commit = self._note

    def start(self) -> None:
        """Forward from now on."""
        self._kafka.timers.after(_INTERVAL_MS, self._run)

    def _run(self) -> None:
        self._kafka.timers.after(_INTERVAL_MS, self._run)
        self.forward()

    def _note(self, group: str, topic: str, queue_id: int, queue_offset: int) -> None:
        if self._topics.is_shared(topic) and topic in self._kafka.topics:
            self._changed.setdefault(group, {})[topic, queue_id] = queue_offset

    def forward(self) -> None:
        """Commit what has changed since the last time."""
        changed, self._changed = self._changed, {}
        if not changed:
            return
        groups = self._kafka.groups
        now_ms = self._kafka.host.clock.wall_ms()
        for group, offsets in changed.items():
            known = groups.committed(group)
            news = {
                partition: CommittedOffset(offset, now_ms)
                for partition, offset in offsets.items()
                if partition not in known or known[partition].offset != offset
            }
            if news:
                codes = set(groups.commit_offsets(Commit(group, news)).values())
                if codes - {ErrorCode.NONE}:
                    _log.info("group %s: not forwarded: %s", group, codes)

"""
Queues of a kind that their topic does not have are made anew from the commit log.

A slave gets messages before it has learned of their topic, and makes plain queues of them. Java's
slave leaves them so when it learns that the topic's are batch queues: offsets are wrong from then
on, and its next start refuses the store. No master has such queues.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from logstore.segments.rocketmq.log.log_walk import LogWalk
from logstore.segments.rocketmq.queues.batch_consume_queue import BatchConsumeQueue

if TYPE_CHECKING:
    from logstore.segments.rocketmq.queues.consume_queues import AnyQueue
    from logstore.segments.rocketmq.store import RocketMQStore

__all__ = ["KindMender"]

_log = logging.getLogger(__name__)


class KindMender:
    """Makes the queues of a store anew whose kind is not what the topic table says."""

    def __init__(self, store: RocketMQStore) -> None:
        self._store = store
        #: topics whose queues are being made anew, and the physical offset where they begin
        self._begun: dict[str, int] = {}

    def mend(self) -> None:
        """
        Make all such queues anew; most of the time there are none.

        Raises:
            OSError, StorageError: the disk refused; the next call goes on.

        """
        for topic, found in self._wrong().items():
            start = min(map(self._start_of, found))
            self._begun[topic] = min(start, self._begun.get(topic, start))
        for topic, start in list(self._begun.items()):
            _log.warning("topic %s has queues of another kind: they are made anew", topic)
            self._make_anew(topic, start)
            del self._begun[topic]

    def _wrong(self) -> dict[str, list[AnyQueue]]:
        queues = self._store.consume_queues
        wrong: dict[str, list[AnyQueue]] = {}
        for (topic, _), queue in queues.by_key.items():
            is_batch = queues.settings.is_batch_topic(topic)
            if is_batch is not None and is_batch is not isinstance(queue, BatchConsumeQueue):
                wrong.setdefault(topic, []).append(queue)
        return wrong

    def _start_of(self, queue: AnyQueue) -> int:
        """Return where the first message of a queue stands, or the log begins."""
        first = bytes(queue.units(queue.min_queue_offset, 1)[:8])
        return int.from_bytes(first) if first else self._store.commit_log.min_physical_offset

    def _make_anew(self, topic: str, start: int) -> None:
        store, checkpoint = self._store, self._store.checkpoint
        # A start after a crash must not take them for durable while they are not.
        limit = max(start, 1)
        if checkpoint.logics_physical_offset > limit:
            checkpoint.logics_physical_offset = limit
            checkpoint.flush()
        config = store.topic_table.get(topic)
        if config is not None:
            store.prepare_topic(config)
        queues, end = store.consume_queues, store.dispatching.reput_from
        last = queues.last_store_timestamp_ms, queues.last_physical_offset
        for request in LogWalk(store.commit_log, start, end, store.dispatching.deliver_time):
            if request.topic == topic:
                queues.dispatch(request)
        queues.last_store_timestamp_ms, queues.last_physical_offset = last
        store.commit_log.flush()
        queues.write()
        for queue in queues.of_topic(topic).values():
            queue.flush()

"""
Messages popped in order, by queues of topics (ConsumerOrderInfoManager).

What is locked lasts: it is written to ``config/consumerOrderInfo.json``.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from logstore.compat.rocketmq.pop.order_book import OrderBook

if TYPE_CHECKING:
    from logstore.compat.rocketmq.broker import Broker

_log = logging.getLogger(__name__)

_FLUSH_INTERVAL_MS = 10_000


class OrderLocks(OrderBook):
    """The book of all topics' own queues, which a restart finds as it was."""

    def __init__(self, broker: Broker) -> None:
        super().__init__(broker)
        self.table.load()
        self._is_flushing = False
        self._flush_later()
        for key, queues in self.table.infos.items():
            topic, _, group = key.partition("@")
            for queue_id, info in queues.items():
                self._tell_when_free(topic, group, queue_id, info)

    def _freed(self, topic: str, group: str, queue_id: int) -> None:
        store, popping = self._broker.store, self._broker.popping
        committed = store.consumer_offsets.query(group, topic, queue_id)
        if store.max_queue_offset(topic, queue_id) > committed:
            if not popping.waits.wake_one(topic, group, -1):
                popping.waits.wake_one(topic, group, queue_id)
            popping.notices.freed(topic, queue_id)

    def _queue_count(self, topic: str) -> int:
        config = self._broker.topics.get(topic)
        return 0 if config is None else config.read_queue_count

    # lasting

    def _flush_later(self) -> None:
        self._broker.timers.after(_FLUSH_INTERVAL_MS, self._flush)

    def _flush(self) -> None:
        if not self._broker.store.is_open:
            return
        self._flush_later()
        if self.table.is_dirty and not self._is_flushing:
            self._clean()
            self._is_flushing = True
            write = self.table.begin_persist()
            self._broker.offload(write.run, self._flushed)

    def _flushed(self, error: BaseException | None) -> None:
        self._is_flushing = False
        self.table.end_persist(error if isinstance(error, OSError) else None)
        if error is not None:
            _log.error("%s: %s", self.table.path, error)

    def stop(self) -> None:
        """Make it last; a file that cannot be written has messages popped again at once."""
        super().stop()
        self._clean()
        try:
            self.table.persist_if_dirty()
        except OSError as error:
            _log.error("%s: %s", self.table.path, error)

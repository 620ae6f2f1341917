"""
Which half messages are done: messages of the op topic that name them by queue offset.

As in 5.x the offsets of many transactions are gathered in one message, written when it is large
enough or old enough (TransactionalOpBatchService). Those not yet written are lost when the process
is killed; their transactions are asked about once more.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from logstore.compat.rocketmq.topics import names
from logstore.segments.rocketmq.messages.message_draft import draft_message
from logstore.segments.rocketmq.messages.own_properties import OwnProperties
from logstore.segments.rocketmq.messages.properties import TAGS, WAIT

if TYPE_CHECKING:
    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.waiting import Timer

_log = logging.getLogger(__name__)

REMOVE_TAG = "d"
_PROPERTIES = OwnProperties({TAGS: REMOVE_TAG, WAIT: "true"}).encoded()


class OpMessages:
    """Writes op messages, by queue of the half topic."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._pending: dict[int, list[str]] = {}
        self._pending_bytes = 0
        self._timer: Timer | None = None

    def add(self, queue_id: int, half_queue_offset: int) -> None:
        """Say that a half message is committed or rolled back."""
        text = f"{half_queue_offset},"
        self._pending.setdefault(queue_id, []).append(text)
        self._pending_bytes += len(text)
        settings = self._broker.settings
        if self._pending_bytes > settings.transaction_op_bytes_max:
            self.write()
        elif self._timer is None:
            self._timer = self._broker.timers.after(
                settings.transaction_op_interval_ms, self._time_up
            )

    def _time_up(self) -> None:
        self._timer = None
        self.write()
        self._broker.requests_served()

    def write(self) -> None:
        """Write what is pending; what the store refuses stays pending."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        pending, self._pending, self._pending_bytes = self._pending, {}, 0
        for queue_id, texts in pending.items():
            if not self._put(queue_id, "".join(texts).encode()):
                self._pending[queue_id] = texts
                self._pending_bytes += sum(map(len, texts))

    def _put(self, queue_id: int, body: bytes) -> bool:
        broker = self._broker
        result = broker.store.put_message(
            draft_message(
                topic=names.OP_HALF_TOPIC,
                body=body,
                queue_id=queue_id,
                properties_text=_PROPERTIES,
                born_timestamp_ms=broker.host.clock.wall_ms(),
                born_host=broker.store_host,
                store_host=broker.store_host,
            )
        )
        if not result.is_ok:
            _log.error("an op message was not stored: %s", result.reason)
        return result.is_ok

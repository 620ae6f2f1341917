"""
The revive topic: checkpoints and acknowledgements on their way through time.

Both are messages with a time of their own: a checkpoint comes out of the time wheel a second before
its messages become visible again, an acknowledgement when they do. So whoever reads the topic has
seen every acknowledgement of a checkpoint two seconds after that.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from logstore.compat.rocketmq.pop.checkpoints import CHECKPOINT_TAG
from logstore.segments.rocketmq.messages.message_draft import draft_message
from logstore.segments.rocketmq.messages.own_properties import OwnProperties
from logstore.segments.rocketmq.messages.properties import TAGS, TIMER_DELIVER_MS, UNIQUE_KEY

if TYPE_CHECKING:
    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.rocketmq.pop.checkpoints import Ack, Checkpoint
    from logstore.segments.rocketmq.putting.put_result import PutResult

_log = logging.getLogger(__name__)

REVIVE_GROUP = "CID_RMQ_SYS_REVIVE_GROUP"
#: so long before the messages become visible a checkpoint is read (``ackTimeInterval``)
AHEAD_MS = 1000


class ReviveLog:
    """Puts what was popped and acknowledged into the revive topic."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._count = 0

    def next_queue_id(self) -> int:
        """Return the queue for the checkpoints of one more pop: each in turn."""
        queue_id = self._count % max(self._broker.settings.revive_queue_count, 1)
        self._count += 1
        return queue_id

    def put_checkpoint(self, checkpoint: Checkpoint, revive_queue_id: int) -> PutResult:
        """Put a checkpoint; its messages may be handed out only if it was taken."""
        return self._put(
            checkpoint.encoded(),
            revive_queue_id,
            CHECKPOINT_TAG,
            checkpoint.unique_key,
            checkpoint.revive_time_ms - AHEAD_MS,
        )

    def put_ack(self, ack: Ack, revive_queue_id: int, revive_time_ms: int) -> PutResult:
        """Put an acknowledgement of messages that would become visible at `revive_time_ms`."""
        self._broker.stats.count_acks(ack.group, ack.topic, len(ack.queue_offsets))
        return self._put(ack.encoded(), revive_queue_id, ack.tag, ack.unique_key, revive_time_ms)

    def _put(
        self, body: bytes, revive_queue_id: int, tag: str, unique_key: str, deliver_ms: int
    ) -> PutResult:
        broker = self._broker
        properties = OwnProperties(
            {TAGS: tag, TIMER_DELIVER_MS: str(deliver_ms), UNIQUE_KEY: unique_key}
        )
        draft = draft_message(
            topic=broker.revive_topic,
            body=body,
            queue_id=revive_queue_id,
            properties_text=properties.encoded(),
            born_timestamp_ms=broker.host.clock.wall_ms(),
            born_host=broker.store_host,
            store_host=broker.store_host,
        )
        draft.own_properties = properties
        result = broker.store.put_message(draft)
        if result.is_ok:
            broker.stats.leave_out(draft.topic, result.size_bytes)
        else:
            _log.error("%s: not put into %s: %s", unique_key, broker.revive_topic, result.reason)
        return result

"""
Groups that are too far behind may read no more (``protectBroker``), until somebody says so.

Only where ``disableConsumeIfConsumerReadSlowly`` is set, and not before it is anything is noted.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import attrs

from logstore.segments.rocketmq.reading.get_message import GetMessageStatus

if TYPE_CHECKING:
    from logstore.compat.rocketmq.broker import Broker
    from logstore.segments.rocketmq.reading.get_message import GetMessageResult

_log = logging.getLogger(__name__)

LOOK_INTERVAL_MS = 180_000
#: what tells how far behind the group is: it has read something, or all there is
_TELLING = frozenset(
    {
        GetMessageStatus.FOUND,
        GetMessageStatus.NO_MATCHED_MESSAGE,
        GetMessageStatus.MESSAGE_WAS_REMOVING,
        GetMessageStatus.OFFSET_FOUND_NULL,
        GetMessageStatus.OFFSET_OVERFLOW_ONE,
    }
)


def note_read(
    broker: Broker, group: str, topic: str, queue_id: int, result: GetMessageResult | None
) -> None:
    """Take note of how far behind a group is that has read of a queue, if that matters."""
    if not broker.settings.notes_slow_readers or result is None:
        return
    if result.status in _TELLING:
        broker.stats.behind_bytes[topic, group, queue_id] = result.physical_offset_lag


def disable_slow_readers(broker: Broker) -> None:
    """Forbid reading to the groups that were too far behind when they last read of any queue."""
    if not broker.settings.disables_slow_readers:
        broker.stats.behind_bytes.clear()
        return
    limit = broker.settings.behind_bytes_max
    behind = broker.stats.behind_bytes
    for group in {group for (_, group, _), count in behind.items() if count > limit}:
        config = broker.groups.table.get(group)
        if config is not None and config.is_consume_enabled:
            _log.warning("group %s is slow, and may read no more: consumeEnable", group)
            broker.groups.put(attrs.evolve(config, is_consume_enabled=False))

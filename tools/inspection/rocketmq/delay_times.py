"""How long each delay level of a store is: said by a setting, or shown by its schedule queues."""

from __future__ import annotations

from logstore.segments.rocketmq import store_rules
from logstore.segments.rocketmq.messages.corrupt_message import CorruptMessageError
from logstore.segments.rocketmq.messages.dispatch_request import (
    SCHEDULE_TOPIC,
    Blank,
    DeliverTime,
    read_dispatch_request,
)
from logstore.segments.rocketmq.queues.consume_queue_ext import (
    ConsumeQueueExtUnit,
    is_ext_address,
)
from logstore.segments.rocketmq.queues.consume_queue_unit import UNIT_BYTES, ConsumeQueueUnit
from logstore.tools.inspection.rocketmq.stored_store import StoredQueue, StoredStore

_EXT_UNIT_BYTES_MAX = 2**15


def deliver_time_of(store: StoredStore) -> DeliverTime:
    """Return when a message of a level is due, by its store time."""
    levels = store_rules.delay_levels(store.config)
    shown: dict[int, int] = {}
    if "messageDelayLevel" not in store.settings:
        for (topic, queue_id), queue in store.queues.items():
            delay_ms = _shown_delay(store, queue) if topic == SCHEDULE_TOPIC else None
            if delay_ms is not None:
                shown[queue_id + 1] = delay_ms

    def deliver_time(level: int, store_timestamp_ms: int) -> int:
        clipped = min(level, levels.level_max)
        if clipped in shown:
            return store_timestamp_ms + shown[clipped]
        return levels.deliver_time_ms(level, store_timestamp_ms)

    return deliver_time


def _due_time(queue: StoredQueue, tags_code: int) -> int | None:
    """Return what a unit says in place of a tags code, None if its extension is not there."""
    if not is_ext_address(tags_code):
        return tags_code
    if queue.ext is None:
        return None
    unit = ConsumeQueueExtUnit.decode(queue.ext.read(tags_code + 2**63, _EXT_UNIT_BYTES_MAX))
    return None if unit is None else unit.tags_code


def _shown_delay(store: StoredStore, queue: StoredQueue) -> int | None:
    """Return what the first unit whose message is there says."""
    for file in queue.files.files:
        for position in range(0, file.size_bytes, UNIT_BYTES):
            data = queue.files.read(file.base + position, UNIT_BYTES)
            if len(data) < UNIT_BYTES or not any(data):
                return None
            unit = ConsumeQueueUnit.decode(data)
            try:
                found = read_dispatch_request(
                    store.commit_log.read(unit.physical_offset, max(unit.size_bytes, 0))
                )
            except CorruptMessageError:
                continue
            due_ms = _due_time(queue, unit.tags_code)
            if (
                not isinstance(found, Blank)
                and found.topic == SCHEDULE_TOPIC
                and due_ms is not None
            ):
                return due_ms - found.store_timestamp_ms
    return None

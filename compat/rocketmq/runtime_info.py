"""The broker's runtime table, which ``mqadmin brokerStatus`` prints: Java's keys, our numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.rocketmq.topics import names
from logstore.segments.rocketmq.settings.delay_levels import DelayLevels

if TYPE_CHECKING:
    from logstore.compat.rocketmq.broker import Broker

#: Java's thread pools and the settings that say how much may wait for them; here nothing waits
_QUEUES = {
    "sendThreadPoolQueue": 10_000,
    "pullThreadPoolQueue": 100_000,
    "litePullThreadPoolQueue": 100_000,
    "queryThreadPoolQueue": 20_000,
    "ackThreadPoolQueue": 100_000,
}
_END_TRANSACTION_CAPACITY = 100_000
_UNIT = 1024


def runtime_info(broker: Broker) -> dict[str, str]:
    """Return the whole table."""
    store = broker.store
    table = {
        "brokerActive": "false" if broker.settings.is_slave else "true",
        "brokerVersionDesc": "V5_5_0",
        "startAcceptSendRequestTimeStamp": str(broker.settings.start_accepting_ms),
        "timerReadBehind": "0",
        "timerOffsetBehind": str(broker.timed_delivery.unread_count),
        "timerCongestNum": str(broker.timed_delivery.waiting_count),
        "timerEnqueueTps": "0.0",
        "timerDequeueTps": "0.0",
        "EndTransactionQueueSize": "0",
        "EndTransactionThreadPoolQueueCapacity": str(_END_TRANSACTION_CAPACITY),
        **broker.stats.daily(),
    }
    for name, capacity in _QUEUES.items():
        table[f"{name}Size"] = "0"
        table[f"{name}Capacity"] = str(capacity)
        table[f"{name}HeadWaitTimeMills"] = "0"
    for level in DelayLevels.parse(broker.settings.delay_levels).delays_ms:
        done = store.delay_offsets.get(level)
        if done is not None:
            end = store.max_queue_offset(names.SCHEDULE_TOPIC, level - 1)
            table[f"scheduleMessageOffset_{level}"] = f"{done},{end}"
    table.update(store.runtime())
    return table | _store_rows(broker)


def _store_rows(broker: Broker) -> dict[str, str]:
    """Return what the broker asks its store for one by one."""
    store = broker.store
    log = store.commit_log
    space = broker.host.fs.volume_space(store.directory)
    total = _readable(space.total_bytes)
    free = _readable(space.usable_bytes + space.reserved_bytes)
    return {
        "commitLogDirCapacity": f"Total : {total}, Free : {free}.",
        "earliestMessageTimeStamp": str(store.earliest_store_timestamp_ms()),
        "pageCacheLockTimeMills": "0",  # nobody waits for a lock here
        "remainHowManyDataToFlush": _readable(log.max_physical_offset - log.flushed_where),
        # Java's word for "as many as you like": there is no pool to run out of buffers.
        "remainTransientStoreBufferNumbs": "2147483647",
    }


def _readable(size_bytes: int) -> str:
    """Return a size as Java prints it: whole bytes, or one decimal of the next unit."""
    if size_bytes < _UNIT:
        return f"{size_bytes} B"
    power = (size_bytes.bit_length() - 1) // 10
    return f"{size_bytes / _UNIT**power:.1f} {'KMGTPE'[power - 1]}iB"

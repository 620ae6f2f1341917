"""A store with files so small that a few messages fill them."""

from __future__ import annotations

from collections.abc import Mapping

from logstore.host import Host
from logstore.segments.rocketmq.store import RocketMQStore, StoreOptions

DIRECTORY = "/store"
SETTINGS = {
    "mappedFileSizeCommitLog": "4096",
    "mappedFileSizeConsumeQueue": "100",
    "maxHashSlotNum": "7",
    "maxIndexNum": "11",
    "maxMessageSize": "3000",
}


def small_store(
    host: Host,
    *,
    is_writable: bool = True,
    settings: Mapping[str, str] | None = None,
) -> RocketMQStore:
    """Open the store of a host; `settings` go over those that make it small."""
    options = StoreOptions(is_writable=is_writable, settings={**SETTINGS, **(settings or {})})
    return RocketMQStore(host, DIRECTORY, options)


def bodies(store: RocketMQStore, topic: str = "TopicTest", queue_id: int = 0) -> list[bytes]:
    """Return the bodies of all messages of a queue."""
    queue = store.queue(topic, queue_id)
    return [message.body for message in queue.messages(queue.start_offset, 1 << 20)]

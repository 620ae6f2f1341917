"""Partitions that the cluster knows of and that are in none of the directories that are read."""

from __future__ import annotations

import logging
from collections.abc import Callable

from logstore.segments.kafka.store import KafkaStore

_log = logging.getLogger(__name__)
_TOPICS_SHOWN = 5


def tell_absent(store: KafkaStore, wants: Callable[[str, int], bool]) -> None:
    """Say of which topics only a part is here: a disk of the node, or another node, is missing."""
    absent: dict[str, int] = {}
    for topic in store.topics_by_name.values():
        count = sum(
            wants(topic.name, index)
            for index in range(topic.partition_count)
            if index not in topic.partitions
        )
        if count:
            absent[topic.name] = count
    if not absent:
        return
    shown = [f"{count} of {name}" for name, count in sorted(absent.items())[:_TOPICS_SHOWN]]
    rest = len(absent) - len(shown)
    more = f" and of {rest} more topics" if rest else ""
    _log.warning(
        "%s: lacks partitions that the cluster has: %s%s; other directories have them: name all, "
        "with commas between",
        store.directory,
        ", ".join(shown),
        more,
    )

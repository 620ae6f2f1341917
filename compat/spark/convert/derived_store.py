"""
Consume queues and index of a new RocketMQ store, put together of what its tasks derived.

The result is what the store's recovery would make of the commit log, without reading that again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import attrs

from logstore.compat.spark.convert.derived_parts import (
    Derived,
    keys_path,
    read_keys,
    read_units,
    units_path,
)
from logstore.deferred_sync import DeferredFileSystem, sync_volume
from logstore.os_host import system_host
from logstore.segments.rocketmq.opening.directory import StoreDirectory
from logstore.segments.rocketmq.opening.loading import StoreParts, load_parts
from logstore.segments.rocketmq.queues.consume_queue import ConsumeQueue
from logstore.segments.rocketmq.settings.release import Release
from logstore.segments.rocketmq.settings.store_config import StoreConfig

#: with one of these on a message may be in several queues, or its unit lead to an extension
_UNDERIVED = ("enableConsumeQueueExt", "enableMultiDispatch", "enableLmq")


def is_derivable(settings: Mapping[str, str]) -> bool:
    """Tell whether a store of these settings can be put together of what tasks derive."""
    config = StoreConfig(settings)
    return not any(config.boolean(name) for name in _UNDERIVED)


def put_together(
    data: Path,
    derived_folder: Path,
    settings: Mapping[str, str],
    derived: Sequence[Derived | None],
) -> bool:
    """
    Write queues, index and checkpoint beside the commit log; tell whether that was possible.

    `derived` are the tasks' in order. The store then is as after a clean stop, but for its tables;
    if not it has a commit log alone, and its recovery will make the rest.

    Raises:
        OSError, WriteFailedError: the disk refused.

    """
    config = StoreConfig(settings)
    found = [one for one in derived if one is not None]
    if not found or len(found) < len(derived) or not is_derivable(settings):
        return False
    # Each queue has a file of its own; none of them counts before all of them are there.
    host = attrs.evolve(system_host(), fs=DeferredFileSystem())
    home = StoreDirectory(host, str(data), is_writable=True)
    try:
        parts = load_parts(home, config, settings, Release.V5, lambda _: False)
        try:
            for number, one in enumerate(found):
                _put_units(parts, units_path(derived_folder, number), one)
                if config.boolean("messageIndexEnable"):
                    for entries in read_keys(keys_path(derived_folder, number)):
                        parts.index.put_many(entries)
            _make_durable(parts, found)
        finally:
            parts.close()
    finally:
        home.release()
    sync_volume(str(data))
    return True


def _put_units(parts: StoreParts, path: Path, derived: Derived) -> None:
    """Put a task's units behind those of the tasks before it."""
    queues = parts.consume_queues
    with path.open("rb") as file:
        for run in derived.runs:
            queue = queues.find_or_create(run.topic, run.queue_id)
            assert isinstance(queue, ConsumeQueue), "no topic of a new store has another kind"
            queue.put_run(read_units(file, run), run.queue_offset, run.next_physical_offset)
            queues.mark_unwritten(queue)
    queues.write()  # what waits in memory is bounded, however long the log is


def _make_durable(parts: StoreParts, found: Sequence[Derived]) -> None:
    """Write what was put, and say so in the checkpoint."""
    parts.consume_queues.flush()
    flush = parts.index.begin_flush(is_thorough=True)
    flush.run()
    parts.index.end_flush(flush)
    last, checkpoint = found[-1], parts.checkpoint
    checkpoint.physic_msg_timestamp_ms = last.store_timestamp_ms
    checkpoint.logics_msg_timestamp_ms = last.store_timestamp_ms
    checkpoint.logics_physical_offset = last.last_physical_offset
    checkpoint.flush()

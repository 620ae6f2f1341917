"""A piece of a RocketMQ commit log, measured: every message, put down to its queue."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from logstore.compat.spark.predicates import Where
from logstore.compat.spark.record_start import next_record_position
from logstore.compat.spark.rocketmq_rows import message_at, rows_within
from logstore.compat.spark.rocketmq_unit import RocketMQUnit
from logstore.errors import CorruptEntryError, LogStoreError
from logstore.host import File, FileSystem
from logstore.segments.rocketmq.columns import MessageColumns, iterate_columns
from logstore.segments.rocketmq.messages.message_batch import decode_batch_body
from logstore.segments.rocketmq.messages.properties import KEYS, parse_properties
from logstore.segments.rocketmq.messages.system_flags import (
    COMPRESSED,
    COMPRESSION_MASK,
    COMPRESSION_SHIFT,
    INNER_BATCH,
)
from logstore.tools.inspection.stats.key_hash import hash_of, key_hashes
from logstore.tools.inspection.stats.partition_stats import Measured, PartitionStats

#: where damage is counted: no queue can be told of what cannot be read
NOWHERE = ("", -1)
_CODECS = {0: "zlib", 1: "lz4", 2: "zstd", 3: "zlib"}


def measure_rocketmq(fs: FileSystem, unit: RocketMQUnit, where: Where) -> Measured:
    """Return what is in the unit between the times of `where`, by topic and queue id."""
    file = fs.open(unit.path, writable=False)
    measure = _Measure(file, unit, where)
    try:
        measure.take_all()
    finally:
        file.close()
    return measure.found


class _Measure:
    def __init__(self, file: File, unit: RocketMQUnit, where: Where) -> None:
        self.found: Measured = {}
        self._file = file
        self._unit = unit
        self._low, self._high = where.timestamp_ms_min, where.timestamp_ms_max

    def take_all(self) -> None:
        """Take all records that start in the unit."""
        unit, file = self._unit, self._file
        base, end = unit.base_physical_offset, unit.end_position
        position = next_record_position(file, base, unit.position, end)
        while position < end:
            try:
                for columns in iterate_columns(file, unit.path, position, None):
                    position = columns.next_position
                    self._take(columns)
                    if position >= end:
                        break
                else:
                    break
            except CorruptEntryError as error:
                for columns in iterate_columns(file, unit.path, position, error.position):
                    self._take(columns)
                if error.position < end:
                    self._of(NOWHERE).damaged_count += 1
                position = next_record_position(file, base, error.position + 1, end)

    def _of(self, place: tuple[str, int]) -> PartitionStats:
        return self.found.setdefault(place, PartitionStats())

    def _take(self, columns: MessageColumns) -> None:
        unit, born = self._unit, columns.born_timestamp_ms
        starts_here = columns.physical_offset - unit.base_physical_offset < unit.end_position
        is_wanted = columns.scan.is_queued & starts_here
        is_wanted &= (born >= self._low) & (born <= self._high)
        is_batch = (columns.sys_flag & INNER_BATCH) != 0
        rows = np.flatnonzero(is_wanted & ~is_batch & rows_within(columns, unit.bounds))
        if len(rows):
            self._take_rows(columns, rows)
        for row in np.flatnonzero(is_wanted & is_batch).tolist():
            self._take_batch(columns, row)

    def _take_rows(self, columns: MessageColumns, rows: NDArray[np.intp]) -> None:
        """Take messages, queue by queue."""
        numbers, texts = columns.topic.numbers[rows].astype(np.int64), columns.topic.texts
        queues = columns.queue_id[rows].astype(np.int64)
        order = np.lexsort((queues, numbers))
        changes = (np.diff(numbers[order]) != 0) | (np.diff(queues[order]) != 0)
        hashes = key_hashes(columns.keys.data, columns.keys.bounds)
        unpacked = _unpacked_bytes(columns, rows)
        for places in np.split(order, np.flatnonzero(changes) + 1):
            first, taken = int(places[0]), rows[places]
            stats = self._of((texts[int(numbers[first])], int(queues[first])))
            sizes = columns.size_bytes[taken].astype(np.int64)
            is_keyed = ~columns.keys.is_null[taken]
            stats.add_records(
                columns.queue_offset[taken],
                columns.born_timestamp_ms[taken],
                sizes.astype(np.float64),
                hashes[taken][is_keyed],
            )
            stats.entry_count += len(taken)
            stats.entry_sizes.add(sizes)
            codecs = _codecs(columns.sys_flag[taken])
            for codec in np.unique(codecs).tolist():
                of_it = codecs == codec
                packed = float(sizes[of_it].sum())
                stats.add_packed(_name(codec), packed, float(unpacked[places][of_it].sum()))

    def _take_batch(self, columns: MessageColumns, row: int) -> None:
        """Take the messages of an inner batch, which share its bytes."""
        message = message_at(columns, row)
        bounds = self._unit.bounds.by_queue.get((message.topic, message.queue_id))
        if bounds is None:
            return
        body = message.plain_body()
        items = decode_batch_body(body)
        base = int(message.properties.get("INNER_BASE", message.queue_offset))
        wanted = [
            (base + index, parse_properties(item.properties_text).get(KEYS))
            for index, item in enumerate(items)
            if bounds[0] <= base + index < bounds[1]
        ]
        if not wanted:
            return
        stats = self._of((message.topic, message.queue_id))
        share = len(wanted) / len(items)
        hashes = [hash_of(keys.encode()) for _, keys in wanted if keys is not None]
        stats.add_records(
            np.array([offset for offset, _ in wanted], dtype=np.int64),
            np.full(len(wanted), message.born_timestamp_ms, dtype=np.int64),
            np.full(len(wanted), message.size_bytes / len(items)),
            np.array(hashes, dtype=np.uint64).view(np.int64),
        )
        stats.entry_count += 1
        stats.entry_sizes.add(np.array([message.size_bytes], dtype=np.int64))
        unpacked = message.size_bytes - len(message.body) + len(body)
        codec = int(_codecs(np.array([message.sys_flag]))[0])
        stats.add_packed(_name(codec), message.size_bytes * share, unpacked * share)


def _codecs(sys_flags: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return the number of each message's codec, -1 without one."""
    codecs = (sys_flags & COMPRESSION_MASK) >> COMPRESSION_SHIFT
    return np.where((sys_flags & COMPRESSED) != 0, codecs, -1)


def _name(codec: int) -> str:
    return "none" if codec < 0 else _CODECS.get(codec, f"unknown-{codec}")


def _unpacked_bytes(columns: MessageColumns, rows: NDArray[np.intp]) -> NDArray[np.int64]:
    """Return how large these messages were with plain bodies; of a broken one, as it stands."""
    sizes = columns.size_bytes[rows].astype(np.int64)
    for place in np.flatnonzero((columns.sys_flag[rows] & COMPRESSED) != 0).tolist():
        message = message_at(columns, int(rows[place]))
        try:
            sizes[place] += len(message.plain_body()) - len(message.body)
        except LogStoreError:
            continue
    return sizes

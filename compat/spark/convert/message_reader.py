"""What a task reads of a Kafka store: the records of its units, as the messages they become."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from logstore.compat.spark.convert.committed_columns import committed_columns, taken
from logstore.compat.spark.convert.damage import Damage
from logstore.compat.spark.convert.kept_fields import KeptFields
from logstore.compat.spark.convert.message_packing import MessageBatch
from logstore.compat.spark.convert.plain_messages import PlainMessages, plain_messages
from logstore.compat.spark.convert.restored_messages import RestoredBatch
from logstore.compat.spark.convert.topic_names import rocketmq_name
from logstore.compat.spark.planned_file import open_planned
from logstore.compat.spark.stores import file_system_of
from logstore.compat.spark.work_unit import WorkUnit
from logstore.segments.compiled.reused_memory import ReusedMemory
from logstore.segments.kafka.columns import RecordColumns

Messages = PlainMessages | MessageBatch | RestoredBatch


class MessageReader:
    """Reads units of the store at `source`, `scan_bytes` in all; each in the same memory."""

    def __init__(self, source: str, scan_bytes: int = 0) -> None:
        self._fs = file_system_of(source, scan_bytes)
        self._kept = KeptFields(source)
        self._memory = ReusedMemory()

    def messages(
        self,
        unit: WorkUnit,
        *,
        is_measured: bool = False,
        on_damage: Callable[[Damage], None] | None = None,
    ) -> Iterator[Messages]:
        """
        Yield the wanted records of a unit step by step, none of them empty.

        With `is_measured` only sizes are to be known. What one step yields must not be looked at in
        the next.

        Raises:
            CorruptEntryError: a batch is damaged, without `on_damage`; it names file and position.

        """
        topic = rocketmq_name(unit.topic)
        begin = unit.position, unit.start_offset
        if self._kept.is_empty:  # no record was a message that has more than it says
            file = open_planned(self._fs, unit)
            is_checked = not is_measured or on_damage is not None
            try:
                for plain in plain_messages(
                    file, unit, topic, self._memory, is_measured=is_measured, is_checked=is_checked
                ):
                    begin = plain.next_position, plain.next_offset
                    if len(plain):
                        yield plain
            finally:
                file.close()
        if begin[0] == unit.end_position:
            return
        for columns in committed_columns(
            self._fs,
            unit,
            is_measured=is_measured,
            on_damage=on_damage,
            begin=None if begin[0] == unit.position else begin,
        ):
            yield from _messages(unit, topic, columns, self._kept)


def _messages(
    unit: WorkUnit, topic: str, columns: RecordColumns, kept: KeptFields
) -> Iterator[MessageBatch | RestoredBatch]:
    """Yield what records are as messages: those that they were before, where that is known."""
    found = kept.table(unit.topic, unit.partition, columns.offset)
    if found is None:
        if len(columns):
            yield MessageBatch(topic, unit.partition, columns)
        return
    table, rows = found
    is_kept = (rows >= 0) & is_still(table, rows, columns)
    cuts = np.flatnonzero(np.diff(is_kept)) + 1
    for first, last in pairwise((0, *cuts.tolist(), len(rows))):
        part = columns
        if last - first < len(rows):
            part = taken(columns, np.arange(first, last))
        if is_kept[first]:
            restored = table.take(rows[first:last])
            yield RestoredBatch(topic, unit.partition, part, restored)
        else:
            yield MessageBatch(topic, unit.partition, part)


def is_still(table: Any, rows: NDArray[np.int64], columns: RecordColumns) -> NDArray[np.bool_]:
    """
    Tell which records may be what `rows` of kept fields are of: those born at the same time.

    A topic may have been deleted and made anew, with other records at the same offsets.
    """
    born = table.column("born_timestamp").to_numpy().astype("datetime64[ms]").astype(np.int64)
    same: NDArray[np.bool_] = born[np.maximum(rows, 0)] == columns.timestamp_ms
    return same

"""
What Kafka has no place for, beside a store that was RocketMQ's: a row a message, as Parquet.

One file a task, ``logstore-messages-<task>.parquet`` in the target; topic and partition are
Kafka's names. With it the way back restores every message.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from logstore.compat.spark.convert.row_groups import RowGroupWriter
from logstore.segments.rocketmq.columns import MessageColumns, to_arrow
from logstore.segments.rocketmq.messages.system_flags import COMPRESSED

FIELDS_PATTERN = "logstore-messages-*.parquet"
_FIELDS = (
    "flag",
    "sys_flag",
    "born_timestamp",
    "store_timestamp",
    "born_host",
    "store_host",
    "reconsume_times",
    "prepared_transaction_offset",
    "body_crc",
    "properties",
)


class MessageFieldsWriter:
    """Writes the fields of one task's messages; the file is durable when it is closed."""

    def __init__(self, directory: Path, number: int) -> None:
        self._pa: Any = importlib.import_module("pyarrow")
        self._rows = RowGroupWriter(
            directory / FIELDS_PATTERN.replace("*", f"{number:06d}"),
            ("offset", *_FIELDS, "stored_body"),
            rising=("offset", "born_timestamp", "store_timestamp"),
            odd=("body_crc", "properties", "stored_body"),
            statistics=("topic", "partition", "offset"),
        )

    def __enter__(self) -> Self:
        return self

    def add(
        self,
        topic: str,
        partition: int,
        offsets: NDArray[np.int64],
        columns: MessageColumns,
    ) -> None:
        """Add messages of one partition, a row each."""
        found = to_arrow(columns, _FIELDS).columns
        stored = _compressed_bodies(self._pa, columns)
        self._rows.add(topic, partition, (offsets, *found, stored))

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._rows.__exit__(kind, error, trace)


def _compressed_bodies(pa: Any, columns: MessageColumns) -> Any:
    """Return the stored bodies of those that are compressed: nobody makes the same bytes again."""
    is_packed = (columns.sys_flag & COMPRESSED) != 0
    if not is_packed.any():
        return pa.nulls(len(columns), pa.binary())
    bodies = [
        body if is_one else None
        for body, is_one in zip(columns.body, is_packed.tolist(), strict=True)
    ]
    return pa.array(bodies, pa.binary())

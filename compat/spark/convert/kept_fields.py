"""
What an earlier conversion kept of messages or records, looked up by offset for the way back.

The files are those of :mod:`logstore.compat.spark.convert.message_fields`, and the rests of
:mod:`logstore.compat.spark.convert.offset_map`: each of their row groups has rows of one partition,
in order, and its statistics say which. So a task reads only what it needs, some megabytes at a
time.
"""

from __future__ import annotations

import importlib
from collections import OrderedDict
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from logstore.compat.spark.convert.message_fields import FIELDS_PATTERN

_CACHED_GROUPS_MAX = 8


@attrs.frozen
class _Group:
    """A row group: messages of one partition with offsets in ``[first, last]``."""

    path: str
    number: int
    first: int
    last: int


class KeptFields:
    """
    The kept fields of all partitions of a store; a store that was never converted has none.

    `pattern` names the files, whose first three columns are topic, partition and `offset_name`.
    """

    def __init__(
        self, directory: str, pattern: str = FIELDS_PATTERN, offset_name: str = "offset"
    ) -> None:
        self._paths = sorted(str(path) for path in Path(directory).glob(pattern))
        self._offset_name = offset_name
        self._read: OrderedDict[_Group, Any] = OrderedDict()
        self._opened: Any = None
        self._opened_path = ""

    @property
    def is_empty(self) -> bool:
        """Whether nothing was kept of anything."""
        return not self._paths

    @cached_property
    def _groups(self) -> dict[tuple[str, int], list[_Group]]:
        """The row groups of every partition, by offset."""
        parquet: Any = importlib.import_module("pyarrow.parquet")
        found: dict[tuple[str, int], list[_Group]] = {}
        for path in self._paths:
            metadata = parquet.read_metadata(path)
            for number in range(metadata.num_row_groups):
                rows = metadata.row_group(number)
                topic, partition, offset = (rows.column(index).statistics for index in range(3))
                group = _Group(path, number, offset.min, offset.max)
                found.setdefault((topic.min, partition.min), []).append(group)
        for groups in found.values():
            groups.sort(key=lambda group: group.first)
        return found

    def table(
        self, topic: str, partition: int, offsets: NDArray[np.int64]
    ) -> tuple[Any, NDArray[np.int64]] | None:
        """
        Return a ``pyarrow.Table``, and for each of these offsets its row there, -1 for none.

        `offsets` are in order. None if nothing was kept of any of them.
        """
        if not self._paths or len(offsets) == 0:
            return None
        tables = list(self._tables(topic, partition, int(offsets[0]), int(offsets[-1])))
        if not tables:
            return None
        pa: Any = importlib.import_module("pyarrow")
        table = pa.concat_tables(tables)
        known = table.column(self._offset_name).to_numpy()
        rows = np.searchsorted(known, offsets)
        is_known = known[np.minimum(rows, len(known) - 1)] == offsets
        if not is_known.any():
            return None
        return table, np.where(is_known, rows, -1).astype(np.int64)

    def _tables(self, topic: str, partition: int, first: int, last: int) -> Iterator[Any]:
        for group in self._groups.get((topic, partition), ()):
            if group.first <= last and group.last >= first:
                yield self._table(group)

    def _table(self, group: _Group) -> Any:
        if group not in self._read:
            self._read[group] = self._file_of(group.path).read_row_group(group.number)
            if len(self._read) > _CACHED_GROUPS_MAX:
                self._read.popitem(last=False)
        return self._read[group]

    def _file_of(self, path: str) -> Any:
        """Return a file; the last one stays open, as its footer has a line for every group."""
        if path != self._opened_path:
            parquet: Any = importlib.import_module("pyarrow.parquet")
            self._opened, self._opened_path = parquet.ParquetFile(path), path
        return self._opened

"""
What ``DumpLogSegments`` has found wrong, kept until its end and then said on stderr.

Release 4.x sorts what it says of a file, 3.9 says the latest first; the files themselves come in
the order of a hash map (:mod:`.java_hash_order`).
"""

from __future__ import annotations

from collections.abc import Iterator

from logstore.tools.inspection.java_hash_order import java_order, scala_order
from logstore.tools.inspection.writer_release import ToolRelease

_Pair = tuple[int, int]


class Complaints:
    """Pairs of numbers by kind and by the file's absolute path."""

    def __init__(self, release: ToolRelease) -> None:
        self._release = release
        self._index: dict[str, list[_Pair]] = {}
        self._time_mismatch: dict[str, list[_Pair]] = {}
        self._time_order: dict[str, list[_Pair]] = {}
        self._not_found: dict[str, list[_Pair]] = {}
        self._offsets: dict[str, list[_Pair]] = {}

    def index_mismatch(self, path: str, index_offset: int, log_offset: int) -> None:
        """An offset index entry leads to a batch that ends elsewhere."""
        self._index.setdefault(path, []).append((index_offset, log_offset))

    def time_mismatch(self, path: str, index_ms: int, log_ms: int) -> None:
        """A time index entry's batch has another largest timestamp."""
        self._time_mismatch.setdefault(path, []).append((index_ms, log_ms))

    def time_order(self, path: str, index_ms: int, previous_ms: int) -> None:
        """A time index entry is not younger than the one before."""
        self._time_order.setdefault(path, []).append((index_ms, previous_ms))

    def offset_not_found(self, path: str, index_offset: int, log_offset: int) -> None:
        """A time index entry's offset ends no batch; the next one ends at `log_offset`, or -1."""
        self._not_found.setdefault(path, []).append((index_offset, log_offset))

    def gap(self, path: str, offset: int, following: int) -> None:
        """A record does not follow the one before."""
        self._offsets.setdefault(path, []).append((offset, following))

    def lines(self) -> Iterator[str]:
        """Yield what is printed in the end."""
        is_new = self._release is ToolRelease.V4_3
        yield from self._said(
            self._index, "Mismatches in :{}", "  Index offset: {}, log offset: {}",
            is_sorted=is_new, is_reversed=True,
        )  # fmt: skip
        yield from self._said(
            self._time_mismatch, "Found timestamp mismatch in :{}",
            "  Index timestamp: {}, log timestamp: {}",
        )  # fmt: skip
        yield from self._said(
            self._time_order, "Found out of order timestamp in :{}",
            "  Index timestamp: {}, Previously indexed timestamp: {}",
        )  # fmt: skip
        place = " :{}" if is_new else " the log."
        yield from self._said(
            self._not_found, f"The following indexed offsets are not found in{place}",
            "Indexed offset: {}, found log offset: {}",
        )  # fmt: skip
        yield from self._said(
            self._offsets, "Non-consecutive offsets in {}", "  {} is followed by {}",
            is_sorted=is_new, is_reversed=not is_new,
        )  # fmt: skip

    def _said(
        self,
        by_path: dict[str, list[_Pair]],
        heading: str,
        line: str,
        *,
        is_sorted: bool = False,
        is_reversed: bool = False,
    ) -> Iterator[str]:
        ordered = java_order if self._release is ToolRelease.V4_3 else scala_order
        for path in ordered(by_path):
            yield heading.format(path)
            pairs = by_path[path]
            if is_sorted:  # a map by the first number: of several only the last is kept
                pairs = sorted(dict(pairs).items())
            for first, second in reversed(pairs) if is_reversed else pairs:
                yield line.format(first, second)

"""
Index files as ``DumpLogSegments`` reads them: every whole entry, zeros and all.

Source: ``OffsetIndex``, ``TimeIndex``, ``AbstractIndex`` (read-only), ``TransactionIndex``.
"""

from __future__ import annotations

import struct

import attrs

from logstore.host import FileSystem, read_file

_WARM_BYTES = 8192


class JavaError(Exception):
    """
    Where Kafka's tool ends with an exception: its class and message.

    `begun` is what it has already printed of the line that it was at.
    """

    def __init__(self, java_class: str, message: str | None, begun: str = "") -> None:
        super().__init__(java_class if message is None else f"{java_class}: {message}")
        self.begun = begun


def corrupt_index(message: str) -> JavaError:
    """Return the exception of a failed sanity check."""
    return JavaError("org.apache.kafka.storage.internals.log.CorruptIndexException", message)


@attrs.frozen
class JavaIndex:
    """The entries of an offset index (offset, position) or a time index (timestamp, offset)."""

    path: str
    base_offset: int
    entries: list[tuple[int, int]]
    size_bytes: int

    def position_of(self, offset: int) -> int:
        """Return where an offset index says to look, by Java's search, also in disorder."""
        entries = self.entries
        if not entries:
            return 0
        first_warm = max(0, len(entries) - 1 - _WARM_BYTES // 8)
        low, high = 0, first_warm
        if entries[first_warm][0] < offset:
            low, high = first_warm, len(entries) - 1
        elif entries[0][0] > offset:
            return 0
        while low < high:
            middle = (low + high + 1) // 2
            found = entries[middle][0]
            if found == offset:
                return entries[middle][1]
            if found > offset:
                high = middle - 1
            else:
                low = middle
        return entries[low][1]


def read_offset_index(fs: FileSystem, path: str, base_offset: int) -> JavaIndex:
    """Return the offset index at `path`. Raises JavaError if it is missing."""
    data = _content(fs, path)
    entries = [
        (base_offset + relative, position)
        for relative, position in struct.iter_unpack(">ii", data[: len(data) - len(data) % 8])
    ]
    return JavaIndex(path, base_offset, entries, len(data))


def read_time_index(fs: FileSystem, path: str, base_offset: int) -> JavaIndex:
    """Return the time index at `path`. Raises JavaError if it is missing."""
    data = _content(fs, path)
    entries = [
        (timestamp_ms, base_offset + relative)
        for timestamp_ms, relative in struct.iter_unpack(">qi", data[: len(data) - len(data) % 12])
    ]
    return JavaIndex(path, base_offset, entries, len(data))


def _content(fs: FileSystem, path: str) -> bytes:
    if not fs.exists(path):  # Kafka's tool makes an empty file, and then fails to size it
        raise JavaError("java.lang.IllegalArgumentException", "Invalid max index size: -1")
    return read_file(fs, path)


def check_offset_index(index: JavaIndex, absolute_path: str) -> None:
    """Make the check that a starting broker makes. Raises JavaError."""
    if index.entries and index.entries[-1][0] < index.base_offset:
        raise corrupt_index(
            f"Corrupt index found, index file {absolute_path} has non-zero size but the last "
            f"offset is {index.entries[-1][0]} which is less than the base offset "
            f"{index.base_offset}"
        )
    if index.size_bytes % 8:
        raise corrupt_index(
            f"Index file {absolute_path} is corrupt, found {index.size_bytes} bytes which is "
            "neither positive nor a multiple of 8"
        )


def check_time_index(index: JavaIndex, absolute_path: str) -> None:
    """Make the check that a starting broker makes. Raises JavaError."""
    if index.entries:
        first_ms, (last_ms, last_offset) = index.entries[0][0], index.entries[-1]
        start = f"Corrupt time index found, time index file ({absolute_path}) has non-zero size but"
        if last_ms < first_ms:
            raise corrupt_index(
                f"{start} the last timestamp is {last_ms} which is less than the first timestamp "
                f"{first_ms}"
            )
        if last_offset < index.base_offset:
            raise corrupt_index(
                f"{start} the last offset is {last_offset} which is less than the first offset "
                f"{index.base_offset}"
            )
    if index.size_bytes % 12:
        raise corrupt_index(
            f"Time index file {absolute_path} is corrupt, found {index.size_bytes} bytes which is "
            "neither positive nor a multiple of 12"
        )


def read_transaction_index(
    fs: FileSystem, path: str, absolute_path: str
) -> list[tuple[int, int, int, int, int]]:
    """
    Return every (version, producer id, first, last, last stable offset).

    Raises:
        JavaError: one has an unknown version; Kafka's tool prints none then.

    """
    layout = struct.Struct(">bxqqqq")  # of the version Java looks at the first byte only
    data = read_file(fs, path)
    found: list[tuple[int, int, int, int, int]] = []
    for entry in layout.iter_unpack(data[: len(data) - len(data) % layout.size]):
        version, producer_id, first, last, stable = entry
        if version > 0:
            raise JavaError(
                "org.apache.kafka.common.KafkaException",
                f"Unexpected aborted transaction version {version} in transaction index "
                f"{absolute_path}, current version is 0",
            )
        found.append((version, producer_id, first, last, stable))
    return found

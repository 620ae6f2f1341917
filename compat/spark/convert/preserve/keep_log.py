"""Tasks on the way from RocketMQ: a file of the commit log, or other files, to recipes."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs
import numpy as np

from logstore.compat.spark.convert.preserve.file_chunks import chunks, digest_of
from logstore.compat.spark.convert.preserve.kept_rocketmq import (
    BOUND,
    FILES_PATTERN,
    KEPT,
    LOG_PATTERN,
    RESTORED,
    KeptFile,
    KeptLogFile,
    file_schema,
    log_schema,
    recipe_path,
)
from logstore.compat.spark.convert.preserve.recipe_file import RecipeWriter
from logstore.compat.spark.convert.queue_units import QueueUnits
from logstore.compat.spark.convert.work_folder import Attempt
from logstore.host import File
from logstore.os_host import system_host
from logstore.segments.rocketmq.messages.message_layout import (
    FIXED_FIELDS,
    PREFIX,
    TOPIC_LENGTH_V1_MAX,
    VERSIONS,
    MessageVersion,
)

NAME_DIGITS = 20
_READ_BYTES = 4 * 1024 * 1024
_TEXT_LENGTH = struct.Struct(">H")
_DIGEST_BYTES = 16


def message_fingerprint(data: bytes | memoryview) -> bytes:
    """Return a digest of a stored message."""
    return hashlib.blake2b(data, digest_size=_DIGEST_BYTES).digest()


@attrs.frozen
class KeptLog:
    """What one task found: the file, its size, how much of it is kept as it is, the last time."""

    file: KeptLogFile
    size_bytes: int
    kept_bytes: int
    store_timestamp_ms_max: int


@attrs.frozen
class KeepLogTask:
    """
    Writes the recipe of a commit log file of `file_bytes`.

    `queues` are those that become partitions, by topic and queue id.
    """

    number: int
    path: str
    physical_offset: int
    size_bytes: int
    file_bytes: int
    recipe: int
    queues: Mapping[tuple[str, int], QueueUnits]

    def run(self, attempt: Attempt) -> KeptLog:
        """Write it; return what stands in the file."""
        units = _Units(self.queues)
        spans: dict[tuple[str, int], tuple[int, int]] = {}
        kept_bytes = newest_ms = 0
        file = system_host().fs.open(self.path, writable=False)
        path = recipe_path(attempt.beside, LOG_PATTERN, self.recipe)
        try:
            with RecipeWriter(path, log_schema()) as writer:
                for position, data in _records(file, self.file_bytes):
                    row = self._row(position, data, units)
                    if row["kind"] == RESTORED:
                        place = (row["topic"], row["queue_id"])
                        first, _ = spans.get(place, (row["queue_offset"], 0))
                        spans[place] = (first, row["queue_offset"])
                    kept_bytes += len(row["kept"] or b"")
                    newest_ms = max(newest_ms, row.get("stored_ms", 0))
                    writer.add(row, len(data))
            count = writer.group_count
        finally:
            file.close()
        ranges = tuple((*place, *span) for place, span in sorted(spans.items()))
        found = KeptLogFile(self.physical_offset, self.recipe, count, ranges)
        return KeptLog(found, self.size_bytes, kept_bytes, newest_ms)

    def _row(self, position: int, data: bytes, units: _Units) -> dict[str, Any]:
        """Return the recipe of a message, or of what is none."""
        row: dict[str, Any] = {
            "kind": KEPT,
            "position": position,
            "size": len(data),
            "kept": data,
        }
        parsed = _parsed(data)
        if parsed is None:
            return row
        topic, queue_id, queue_offset, stored_ms, is_as_written = parsed
        row |= {
            "topic": topic,
            "queue_id": queue_id,
            "queue_offset": queue_offset,
            "stored_ms": stored_ms,
        }
        place = (topic, queue_id)
        if place in self.queues and self.queues[place].is_batch:
            row["kind"] = BOUND
        elif units.physical_offset(place, queue_offset) == self.physical_offset + position:
            row["kind"] = BOUND
            if is_as_written:
                fingerprint = message_fingerprint(data)
                row |= {"kind": RESTORED, "fingerprint": fingerprint, "kept": None}
        return row


class _Units:
    """Where the messages of queues stand, looked up one by one."""

    def __init__(self, queues: Mapping[tuple[str, int], QueueUnits]) -> None:
        self._queues = queues
        self._files: dict[str, Any] = {}

    def physical_offset(self, place: tuple[str, int], queue_offset: int) -> int:
        """Return where a queue says that a message stands, -1 if it has none of that offset."""
        units = self._queues.get(place)
        if units is None or not units.first <= queue_offset < units.first + units.count:
            return -1
        if queue_offset >= units.written_end:
            start = (queue_offset - units.written_end) * units.unit_bytes
            return int.from_bytes(units.unwritten[start : start + 8], "big")
        position = queue_offset * units.unit_bytes
        base = position - position % units.file_bytes
        path = f"{units.directory}/{base:0{NAME_DIGITS}d}"
        if path not in self._files:
            if len(self._files) >= 64:
                self._files.clear()
            self._files[path] = np.memmap(path, np.uint8, "r").data
        return int.from_bytes(self._files[path][position - base : position - base + 8], "big")


def _parsed(data: bytes) -> tuple[str, int, int, int, bool] | None:
    """
    Return topic, queue id, queue offset and store time of a message, None if it is none.

    The last is whether it is encoded as the way back would do it.
    """
    version = VERSIONS.get(data[4:8])
    if version is None:
        return None
    fields = FIXED_FIELDS[data[39] >> 4 & 3]
    if len(data) < fields.size:
        return None
    values = fields.unpack_from(data)
    at = fields.size + values[-1]
    topic_end = at + version.topic_length_bytes
    topic_bytes = data[topic_end : topic_end + int.from_bytes(data[at:topic_end], "big")]
    topic_end += len(topic_bytes)
    if topic_end + 2 > len(data):
        return None
    is_whole = topic_end + 2 + _TEXT_LENGTH.unpack_from(data, topic_end)[0] == len(data)
    topic = topic_bytes.decode(errors="surrogateescape")
    is_long = len(topic) > TOPIC_LENGTH_V1_MAX
    usual = MessageVersion.V2 if is_long else MessageVersion.V1
    queue_id, queue_offset, stored_ms = values[3], values[5], values[10]
    return topic, queue_id, queue_offset, stored_ms, is_whole and version is usual


def _records(file: File, end: int) -> Iterator[tuple[int, bytes]]:
    """Yield every message of a commit log file with its position, then what else is not zero."""
    position, data, at = 0, b"", 0
    while position < end:
        left = len(data) - at
        if left < PREFIX.size and position + left < end:
            data, at = file.read(position, min(_READ_BYTES, end - position)), 0
            continue
        size_bytes, magic = PREFIX.unpack_from(data, at) if left >= PREFIX.size else (0, b"")
        if magic not in VERSIONS or not PREFIX.size < size_bytes <= end - position:
            break
        if left < size_bytes:
            data, at = file.read(position, min(max(_READ_BYTES, size_bytes), end - position)), 0
            continue
        yield position, data[at : at + size_bytes]
        position += size_bytes
        at += size_bytes
    yield from chunks(file, position, end)


@attrs.frozen
class KeptFiles:
    """What one task did."""

    files: tuple[KeptFile, ...]
    size_bytes: int


@attrs.frozen
class KeepFilesTask:
    """Writes the recipe of files as they are, without their zeros; paths are below `source`."""

    number: int
    source: str
    recipe: int
    paths: tuple[str, ...]
    size_bytes: int

    def run(self, attempt: Attempt) -> KeptFiles:
        """Write it; return which of its groups belong to which file."""
        found: list[KeptFile] = []
        target = recipe_path(attempt.beside, FILES_PATTERN, self.recipe)
        kept_bytes = 0
        with RecipeWriter(target, file_schema()) as writer:
            for name in self.paths:
                path = Path(self.source, name)
                first_group = writer.group_count
                file = system_host().fs.open(str(path), writable=False)
                try:
                    size_bytes = file.size()
                    for position, data in chunks(file, 0, size_bytes):
                        writer.add({"position": position, "kept": data}, len(data))
                        kept_bytes += len(data)
                finally:
                    file.close()
                writer.end_group()
                count = writer.group_count - first_group
                digest = digest_of(path)
                found.append(KeptFile(name, size_bytes, digest, self.recipe, first_group, count))
        return KeptFiles(tuple(found), kept_bytes)

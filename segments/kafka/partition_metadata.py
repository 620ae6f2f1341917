"""
``partition.metadata``: the id of the topic that a partition directory belongs to.

Two lines, the last one without an end::

    version: 0
    topic_id: ASNFZ4mrze8P7cuph2VDIQ

It is on disk before the first record is. Any version from 0 on is read; the zero id is refused. A
file of nothing, or of zeros only, is what a power loss leaves of one that was not synced: it counts
as missing.

Source: ``PartitionMetadataFile``, ``PartitionMetadataReadBuffer``.
"""

from __future__ import annotations

import io
import re
from typing import NamedTuple

from logstore.errors import CorruptFileError
from logstore.host import FileSystem, read_file, write_file
from logstore.segments.kafka.kafka_uuid import ZERO, UuidTextError, uuid_from_text, uuid_to_text

FILE_NAME = "partition.metadata"

_COLON = re.compile(r":[ \t\n\x0b\f\r]+")


class PartitionMetadata(NamedTuple):
    """What the file says; `topic_id` is 16 bytes."""

    topic_id: bytes
    version: int = 0

    @classmethod
    def read(cls, fs: FileSystem, directory: str) -> PartitionMetadata | None:
        """Return what the file in `directory` says, None without one. Raises CorruptFileError."""
        path = f"{directory}/{FILE_NAME}"
        try:
            data = read_file(fs, path)
        except FileNotFoundError:
            return None
        if not any(data):
            return None
        try:
            text = data.decode()
        except UnicodeDecodeError:
            raise CorruptFileError(path, "not UTF-8") from None
        lines = io.StringIO(text, newline=None).read().split("\n")
        version = _field(path, lines, 0, "version")
        if not (version.isascii() and version.isdecimal() and len(version) <= 10):
            raise CorruptFileError(path, f"version {version!r} is no number")
        try:
            topic_id = uuid_from_text(_field(path, lines, 1, "topic_id"))
        except UuidTextError as error:
            raise CorruptFileError(path, f"topic_id: {error}") from None
        if topic_id == ZERO:
            raise CorruptFileError(path, "the topic id is zero")
        return cls(topic_id, int(version))

    def write(self, fs: FileSystem, directory: str, *, sync: bool = True) -> None:
        """Replace the file."""
        text = f"version: {self.version}\ntopic_id: {uuid_to_text(self.topic_id)}"
        write_file(fs, f"{directory}/{FILE_NAME}", text.encode(), sync=sync)


def _field(path: str, lines: list[str], index: int, name: str) -> str:
    fields = _COLON.split(lines[index]) if index < len(lines) else []
    if len(fields) != 2 or fields[0] != name:
        raise CorruptFileError(path, f"line {index + 1} has no {name}")
    return fields[1]

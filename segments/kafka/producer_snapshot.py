"""
Producer snapshots: the state of a partition's producers up to an offset, in a file.

``00000000000000000011.snapshot`` covers the log below offset 11. Layout, big-endian::

    version i16 = 1 | crc u32 | count i32 | entries
    crc is the CRC-32C of all that follows it

    entry of 46 bytes:
    producer id i64 | epoch i16 | last sequence i32 | last offset i64 | offset delta i32
    timestamp i64 | coordinator epoch i32 | first offset of the open transaction i64 (-1: none)

Of the five batches that are remembered only the last is kept. A last offset of -1: none.

Source: ``ProducerStateManager``, ``ProducerSnapshot.json``.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from typing import NamedTuple

from logstore.checksum import crc32c
from logstore.errors import CorruptFileError
from logstore.host import FileSystem, read_file

SUFFIX = ".snapshot"

_VERSION = 1
_HEADER = struct.Struct(">hIi")
_ENTRY = struct.Struct(">qhiqiqiq")
_CRC_END = 6
_NAME = re.compile(r"([0-9]{20})\.snapshot")


class ProducerSnapshotEntry(NamedTuple):
    """One producer, field by field as in the file."""

    producer_id: int
    epoch: int
    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp_ms: int
    coordinator_epoch: int
    transaction_first_offset: int


def encode_snapshot(entries: Sequence[ProducerSnapshotEntry]) -> bytes:
    """Return the content of a snapshot file."""
    body = b"".join(_ENTRY.pack(*entry) for entry in entries)
    head = _HEADER.pack(_VERSION, 0, len(entries))
    crc = crc32c(head[_CRC_END:] + body)
    return _HEADER.pack(_VERSION, crc, len(entries)) + body


def decode_snapshot(data: bytes, path: str = "snapshot") -> list[ProducerSnapshotEntry]:
    """Return the entries of a snapshot file. Raises CorruptFileError, which names `path`."""
    if len(data) < _HEADER.size:
        raise CorruptFileError(path, f"{len(data)} bytes are less than a header")
    version, crc, count = _HEADER.unpack_from(data)
    if version != _VERSION:
        raise CorruptFileError(path, f"version {version}, expected {_VERSION}")
    computed = crc32c(memoryview(data)[_CRC_END:])
    if crc != computed:
        raise CorruptFileError(path, f"CRC is {computed:#010x}, the header says {crc:#010x}")
    if len(data) != _HEADER.size + count * _ENTRY.size:
        raise CorruptFileError(path, f"{len(data)} bytes do not hold {count} entries")
    return [ProducerSnapshotEntry(*fields) for fields in _ENTRY.iter_unpack(data[_HEADER.size :])]


def read_snapshot(fs: FileSystem, path: str) -> list[ProducerSnapshotEntry]:
    """Return the entries in a snapshot file. Raises CorruptFileError."""
    return decode_snapshot(read_file(fs, path), path)


def snapshot_name(offset: int) -> str:
    """Return the name of the snapshot that covers the log below `offset`."""
    return f"{offset:020d}{SUFFIX}"


def list_snapshots(fs: FileSystem, directory: str) -> list[int]:
    """Return the offsets of the snapshots in a directory, in order."""
    matches = (_NAME.fullmatch(entry.name) for entry in fs.list_directory(directory))
    return sorted(int(match[1]) for match in matches if match is not None)

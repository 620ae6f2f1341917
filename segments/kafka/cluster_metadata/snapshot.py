"""
Snapshots: all metadata up to an offset of the log, in place of the records below it.

::

    __cluster_metadata-0/00000000000000007113-0000000004.checkpoint
                         offsets below 7113, the last of them of epoch 4
    bootstrap.checkpoint   beside the partitions: what a new cluster starts with

A batch with a header, batches of records, a batch with a footer; their offsets count from 0 and
have nothing to do with those of the log. One that is being written ends in ``.part``.

Source: ``Snapshots``, ``RecordsSnapshotWriter``, ``BootstrapDirectory``, ``BatchFileWriter``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from logstore.errors import CorruptEntryError, CorruptFileError
from logstore.host import FileSystem
from logstore.segments.kafka.batch_walk import walk_batches
from logstore.segments.kafka.cluster_metadata.batches import (
    Entry,
    decode_entries,
    encode_snapshot_footer,
    encode_snapshot_header,
    encode_values,
)
from logstore.segments.kafka.cluster_metadata.records import FeatureLevelRecord, encode_record
from logstore.segments.kafka.control_record import ControlType, control_type
from logstore.segments.kafka.record import decode_records

BOOTSTRAP = "bootstrap.checkpoint"

_NAME = re.compile(r"([0-9]{20})-([0-9]{10})\.checkpoint")


class SnapshotId(NamedTuple):
    """Up to which offset (exclusive) a snapshot goes, and of which epoch that is."""

    end_offset: int
    epoch: int

    @property
    def file_name(self) -> str:
        """The name of its file."""
        return f"{self.end_offset:020d}-{self.epoch:010d}.checkpoint"


def newest_snapshot(fs: FileSystem, directory: str) -> SnapshotId | None:
    """Return the newest snapshot in a metadata log's directory, None without one."""
    names = [_NAME.fullmatch(entry.name) for entry in fs.list_directory(directory)]
    return max((SnapshotId(int(m[1]), int(m[2])) for m in names if m is not None), default=None)


def read_snapshot(fs: FileSystem, path: str) -> Iterator[Entry]:
    """
    Yield the records of a snapshot.

    Raises:
        CorruptFileError: it is damaged, or has no footer, so that nobody knows what is missing.

    """
    file = fs.open(path, writable=False)
    is_whole = False
    try:
        for batch in walk_batches(file, path):
            is_whole = False
            if batch.is_control:
                is_whole = any(
                    control_type(record) is ControlType.SNAPSHOT_FOOTER
                    for record in decode_records(batch.data)
                )
            yield from decode_entries(batch, path)
    except CorruptEntryError as error:
        raise CorruptFileError(path, f"position {error.position}: {error.reason}") from error
    finally:
        file.close()
    if not is_whole:
        raise CorruptFileError(path, "a snapshot without a footer is not whole")


def encode_bootstrap(features: Mapping[str, int], now_ms: int) -> bytes:
    """Return the content of the ``bootstrap.checkpoint`` of a directory with these features."""
    values = [encode_record(FeatureLevelRecord(name, level)) for name, level in features.items()]
    return b"".join(
        (
            encode_snapshot_header(0, epoch=0, timestamp_ms=now_ms),
            encode_values(values, 1, epoch=0, timestamp_ms=now_ms),
            encode_snapshot_footer(1 + len(values), epoch=0, timestamp_ms=now_ms),
        )
    )

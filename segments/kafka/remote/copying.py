"""Files copied from one file system to another, with their length and sum."""

from __future__ import annotations

from logstore.checksum import crc32c
from logstore.errors import CorruptFileError
from logstore.host import FileSystem
from logstore.segments.kafka.remote.segment_metadata import ObjectSum

_STEP_BYTES = 8 * 1024 * 1024


def copy_file(
    source: FileSystem, source_path: str, target: FileSystem, target_path: str, position: int = 0
) -> ObjectSum:
    """Copy a file from `position` on, and sync it; return length and sum of what was copied."""
    origin = source.open(source_path, writable=False)
    try:
        copy = target.open(target_path, create=True)
        try:
            copy.truncate(0)
            written, crc = 0, 0
            while data := origin.read(position + written, _STEP_BYTES):
                copy.write(written, data)
                crc = crc32c(data, crc)
                written += len(data)
            copy.sync()
        finally:
            copy.close()
    finally:
        origin.close()
    return ObjectSum(written, crc)


def check_sum(found: ObjectSum, expected: ObjectSum | None, name: str) -> None:
    """Raise CorruptFileError unless an object is what was copied; None: nobody knows."""
    if expected is not None and found != expected:
        raise CorruptFileError(
            name,
            f"{found.size_bytes} bytes with CRC {found.crc32c:#010x}; "
            f"{expected.size_bytes} bytes with CRC {expected.crc32c:#010x} were copied",
        )

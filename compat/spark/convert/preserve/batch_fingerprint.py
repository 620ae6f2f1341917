"""Whether a batch's records are what they were: by a digest of how anybody would write them."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Sequence

from logstore.segments.kafka.record import Record, encode_batch
from logstore.segments.kafka.record_batch import HEADER_BYTES

_DIGEST_BYTES = 16
_TIME = struct.Struct(">q")


def written_records(records: Sequence[Record], base_offset: int, base_timestamp_ms: int) -> bytes:
    """
    Return what stands behind the header of a batch of magic 2 of these records, uncompressed.

    Raises:
        CorruptRecordError: their offsets do not rise, or are too far apart.

    """
    # A delete horizon is nothing but another base timestamp.
    batch = encode_batch(records, base_offset=base_offset, delete_horizon_ms=base_timestamp_ms)
    return bytes(memoryview(batch)[HEADER_BYTES:])


def fingerprint(written: bytes, base_timestamp_ms: int) -> bytes:
    """Return the digest of what :func:`written_records` returned."""
    digest = hashlib.blake2b(_TIME.pack(base_timestamp_ms), digest_size=_DIGEST_BYTES)
    digest.update(written)
    return digest.digest()

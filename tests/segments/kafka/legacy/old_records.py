"""What tests of the old formats make their messages of."""

from __future__ import annotations

import struct
import zlib

from hypothesis import strategies as st

from logstore.segments.kafka.compression import Codec
from logstore.segments.kafka.record import Record

T = 1700000000000
#: what messages can be compressed with
CODECS = (Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4)

_field = st.none() | st.binary(max_size=60)
_time = st.just(-1) | st.integers(0, 2**62)


@st.composite
def old_records(draw: st.DrawFn) -> list[Record]:
    """Draw records that an old format can hold: no headers, offsets that rise, with holes."""
    offset = draw(st.integers(0, 2**60))
    records: list[Record] = []
    for gap in draw(st.lists(st.integers(1, 1000), min_size=1, max_size=12)):
        records.append(Record(offset, draw(_time), draw(_field), draw(_field)))
        offset += gap
    return records


def with_crc(data: bytes | bytearray) -> bytes:
    """Return the message with the CRC that it should have."""
    return bytes(data[:12]) + zlib.crc32(data[16:]).to_bytes(4) + bytes(data[16:])


def wrapped(
    content: bytes | None,
    *,
    offset: int,
    attributes: int = 1,
    timestamp_ms: int = T,
    is_compressed: bool = False,
) -> bytes:
    """Return a wrapper of magic 1 around any bytes, which are gzipped if they are to be."""
    value = content
    if content is not None and not is_compressed and attributes & 7 == Codec.GZIP:
        value = zlib.compress(content, wbits=31)
    size_bytes = -1 if value is None else len(value)
    checked = struct.pack(">bBqii", 1, attributes, timestamp_ms, -1, size_bytes) + (value or b"")
    return with_crc(struct.pack(">qiI", offset, 4 + len(checked), 0) + checked)

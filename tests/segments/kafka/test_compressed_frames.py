"""Compressed data are walked without being decompressed: what must be whole is."""

from __future__ import annotations

import importlib
import random
import zlib
from typing import Any

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from logstore.segments.kafka.append_errors import InvalidRecordError
from logstore.segments.kafka.compression import (
    Codec,
    CompressionError,
    check_frames,
    compress,
    decompress,
)
from logstore.segments.kafka.config import LogConfig
from logstore.segments.kafka.record import Record, encode_batch
from logstore.segments.kafka.record_batch import HEADER_BYTES, RecordBatch
from logstore.segments.kafka.validation import DECOMPRESSED_BATCH_BYTES_MAX, accepted

NOW_MS = 1_700_000_000_000
CODECS = [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD]
#: half noise, half not: some blocks are stored as they are, some compressed
PLAIN = random.Random(1).randbytes(150_000) + b"a value like any other " * 8_000


def lz4_frame(**options: Any) -> bytes:
    """Return a frame of another writer."""
    frame: Any = importlib.import_module("lz4.frame")
    compressed: bytes = frame.compress(PLAIN, block_linked=False, **options)
    return compressed


def zstd_frame(**options: Any) -> bytes:
    """Return a frame of another writer."""
    return zstandard.ZstdCompressor(**options).compress(PLAIN)


def whole() -> dict[str, tuple[Codec, bytes]]:
    """Return data as the writers that there are leave them."""
    gzip_members = zlib.compress(PLAIN, wbits=31) + zlib.compress(b"more", wbits=31)
    skippable = b"\x52\x2a\x4d\x18\x05\x00\x00\x00hello"
    return {
        **{codec.name.lower(): (codec, compress(codec, PLAIN)) for codec in CODECS},
        "gzip members": (Codec.GZIP, gzip_members),
        "snappy streams": (Codec.SNAPPY, compress(Codec.SNAPPY, PLAIN) * 2),
        "lz4 sums": (Codec.LZ4, lz4_frame(block_checksum=True, content_checksum=True)),
        "lz4 size": (Codec.LZ4, lz4_frame(store_size=True, block_size=7)),
        "lz4 trailing": (Codec.LZ4, compress(Codec.LZ4, PLAIN) + b"junk"),
        "zstd sums": (Codec.ZSTD, zstd_frame(write_checksum=True, write_content_size=True)),
        "zstd frames": (Codec.ZSTD, zstd_frame(level=19) + skippable + zstd_frame()),
    }


WHOLE = whole()


@pytest.mark.parametrize("name", WHOLE)
def test_whole_data_pass(name: str) -> None:
    """Of every writer, with or without sums, sizes, more frames and members."""
    codec, data = WHOLE[name]
    assert decompress(codec, data)
    check_frames(codec, memoryview(data))


@pytest.mark.parametrize("name", ["snappy", "lz4", "lz4 sums", "lz4 size", "zstd", "zstd sums"])
@pytest.mark.parametrize("cut_bytes", [1, 2, 3, 4, 5, 100, 50_000])
def test_cut_data_are_refused(name: str, cut_bytes: int) -> None:
    """Wherever they end too early; the sum behind an lz4 frame nobody reads."""
    codec, data = WHOLE[name]
    if name == "lz4 sums" and cut_bytes <= 4:
        cut_bytes += 4
    with pytest.raises(CompressionError, match="cut short"):
        check_frames(codec, memoryview(data)[:-cut_bytes])


@settings(deadline=None)
@given(st.sampled_from(sorted(WHOLE)), st.data())
def test_what_can_be_decompressed_is_never_refused(name: str, data: st.DataObject) -> None:
    """Whatever bytes are changed: the walk knows less than the codec, and refuses less."""
    codec, whole_data = WHOLE[name]
    changed = bytearray(whole_data)
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.one_of(st.integers(0, 40), st.integers(0, len(changed) - 1)))
        changed[place] = data.draw(st.integers(0, 255))
    try:
        check_frames(codec, memoryview(changed))
    except CompressionError:
        with pytest.raises(CompressionError):
            decompress(codec, changed)


@given(st.sampled_from(CODECS), st.binary(max_size=300))
def test_any_bytes_pass_or_are_refused(codec: Codec, data: bytes) -> None:
    """Nothing else comes out of the walk."""
    refusals: list[str] = []
    try:
        check_frames(codec, memoryview(data))
    except CompressionError as error:
        refusals.append(str(error))
    assert all(refusals)


@pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.name.lower())
def test_a_leader_refuses_large_batches_whose_data_are_broken(codec: Codec) -> None:
    """Also where the CRC is right: a consumer could not read them, and Kafka refuses them."""
    records = [Record(n, NOW_MS, b"k", PLAIN[n * 900 : n * 900 + 1000]) for n in range(100)]
    good = encode_batch(records, codec=codec)
    assert len(good) > DECOMPRESSED_BATCH_BYTES_MAX
    batch = accepted(memoryview(bytearray(good)), LogConfig(), NOW_MS)
    assert bytes(batch.data) == bytes(good)

    bad = bytearray(good)
    if codec is Codec.GZIP:
        bad[HEADER_BYTES + 30 : HEADER_BYTES + 300] = bytes(270)
    else:
        del bad[-10:]
        bad[8:12] = (len(bad) - 12).to_bytes(4, "big")
    bad[17:21] = RecordBatch(memoryview(bad), len(bad)).computed_crc().to_bytes(4, "big")
    with pytest.raises(InvalidRecordError, match=codec.name.lower()):
        accepted(memoryview(bad), LogConfig(), NOW_MS)

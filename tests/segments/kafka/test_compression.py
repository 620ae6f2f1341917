"""The codecs of record batches."""

from __future__ import annotations

import contextlib
import gzip
import importlib
import tracemalloc
from typing import Any

import pytest
import zstandard
from cramjam import snappy
from hypothesis import given
from hypothesis import strategies as st

from logstore.segments.kafka.compression import (
    Codec,
    CompressionError,
    DecompressedTooLargeError,
    compress,
    decompress,
    looks_like,
)

lz4_frame: Any = importlib.import_module("lz4.frame")  # has no types

CODECS = [codec for codec in Codec if codec is not Codec.NONE]

RECORDS = bytes.fromhex("1c000000046b310476310202680278100002020104763200")
#: RECORDS as a Java client compressed them
JAVA = {
    Codec.GZIP: "1f8b08000000000000ff9361606060c9366429336462ca60aa10606062626429336200"
    "00ed33249518000000",
    Codec.SNAPPY: "82534e415050590000000001000000010000001a185c"
    "1c000000046b310476310202680278100002020104763200",
    Codec.LZ4: "04224d18604082180000801c000000046b31047631020268027810000202010476320000000000",
    Codec.ZSTD: "28b52ffd0058c000001c000000046b310476310202680278100002020104763200010000",
}


@pytest.mark.parametrize("codec", CODECS)
def test_reads_what_java_wrote(codec: Codec) -> None:
    """Each codec decompresses the bytes of a Java client."""
    assert looks_like(codec, bytes.fromhex(JAVA[codec]))
    assert decompress(codec, bytes.fromhex(JAVA[codec])) == RECORDS


@pytest.mark.parametrize("codec", CODECS)
def test_frames_are_those_of_java(codec: Codec) -> None:
    """Header and framing are Java's; the compressed part may differ between library versions."""
    header_bytes = {Codec.GZIP: 10, Codec.SNAPPY: 16, Codec.LZ4: 7, Codec.ZSTD: 6}[codec]
    trailer_bytes = {Codec.GZIP: 8, Codec.SNAPPY: 0, Codec.LZ4: 4, Codec.ZSTD: 3}[codec]
    ours, theirs = compress(codec, RECORDS), bytes.fromhex(JAVA[codec])
    assert ours[:header_bytes] == theirs[:header_bytes]
    assert ours[len(ours) - trailer_bytes :] == theirs[len(theirs) - trailer_bytes :]


@given(data=st.binary(max_size=2000), repeat=st.integers(1, 200), codec=st.sampled_from(Codec))
def test_round_trip(data: bytes, repeat: int, codec: Codec) -> None:
    """What was compressed comes back, also over many blocks and from a memoryview."""
    data *= repeat
    compressed = compress(codec, memoryview(data))
    assert decompress(codec, memoryview(compressed)) == data
    assert looks_like(codec, compressed)


@pytest.mark.parametrize(
    ("codec", "levels"),
    [(Codec.GZIP, (-1, 1, 9)), (Codec.LZ4, (1, 9, 17)), (Codec.ZSTD, (-5, 1, 3, 19))],
)
def test_levels(codec: Codec, levels: tuple[int, ...]) -> None:
    """Every level that Kafka allows is taken and reads back."""
    data = b"".join(b"%d, " % number for number in range(5000))
    for level in levels:
        assert decompress(codec, compress(codec, data, level)) == data


def test_lz4_default_is_the_fast_level() -> None:
    """Level 9, the default, is Java's fast compressor; a lower level is the thorough one."""
    data = b"".join(b"%d, " % (number * 7919 % 1000) for number in range(20000))
    assert compress(Codec.LZ4, data) == compress(Codec.LZ4, data, 9)
    assert len(compress(Codec.LZ4, data, 3)) < len(compress(Codec.LZ4, data, 9))


def test_snappy_blocks_hold_32_kib() -> None:
    """The xerial stream is cut into blocks of at most 32 KiB of uncompressed data."""
    compressed = compress(Codec.SNAPPY, bytes(100_000))
    position, sizes = 16, list[int]()
    while position < len(compressed):
        size_bytes = int.from_bytes(compressed[position : position + 4], "big")
        block = compressed[position + 4 : position + 4 + size_bytes]
        sizes.append(len(bytes(snappy.decompress_raw(block))))
        position += 4 + size_bytes
    assert sizes == [32768, 32768, 32768, 1696]


def test_raw_snappy_is_read() -> None:
    """Snappy without framing, as other clients write it, is accepted."""
    raw = bytes(snappy.compress_raw(RECORDS))
    assert looks_like(Codec.SNAPPY, raw)
    assert decompress(Codec.SNAPPY, raw) == RECORDS


def test_streams_may_follow_each_other() -> None:
    """Two gzip members, snappy streams or zstd frames decompress to both contents."""
    for codec in (Codec.GZIP, Codec.SNAPPY, Codec.ZSTD):
        assert decompress(codec, compress(codec, b"ab") + compress(codec, b"c")) == b"abc"
    skippable = bytes.fromhex("502a4d1803000000") + b"xyz"
    assert decompress(Codec.ZSTD, skippable + compress(Codec.ZSTD, b"ab")) == b"ab"


def test_foreign_writers_are_read() -> None:
    """Frames with names, sizes and checksums that other libraries write are accepted."""
    data = b"payload " * 1000
    assert decompress(Codec.GZIP, gzip.compress(data, mtime=5)) == data
    frame = lz4_frame.compress(
        data, block_linked=False, content_checksum=True, block_checksum=True, store_size=True
    )
    assert decompress(Codec.LZ4, frame) == data
    sized = zstandard.ZstdCompressor(write_checksum=True).compress(data)
    assert decompress(Codec.ZSTD, sized) == data


def test_dependent_lz4_blocks_are_refused() -> None:
    """Java's reader refuses them, so they must not get into a log."""
    with pytest.raises(CompressionError, match="dependent"):
        decompress(Codec.LZ4, lz4_frame.compress(bytes(200_000), block_linked=True))


@pytest.mark.parametrize("codec", CODECS)
def test_a_bomb_is_refused(codec: Codec) -> None:
    """Data that grow beyond the limit are refused; growing to just the limit is fine."""
    bomb = compress(codec, bytes(3_000_000))
    for limit in (0, 1000, 2_999_999):
        with pytest.raises(DecompressedTooLargeError):
            decompress(codec, bomb, limit)
    assert decompress(codec, bomb, 3_000_000) == bytes(3_000_000)


@pytest.mark.parametrize("codec", CODECS)
def test_a_bomb_takes_no_memory(codec: Codec) -> None:
    """Refusing costs memory of the order of the limit and the compressed data, not of the bomb."""
    bomb = compress(codec, bytes(20_000_000))
    tracemalloc.start()
    try:
        with pytest.raises(DecompressedTooLargeError):
            decompress(codec, bomb, 1000)
        assert tracemalloc.get_traced_memory()[1] < 3_000_000
    finally:
        tracemalloc.stop()


def test_a_zstd_frame_with_a_size_is_refused_by_it() -> None:
    """A claimed content size above the limit is refused before anything is decompressed."""
    frame = zstandard.ZstdCompressor().compress(bytes(1_000_000))
    with pytest.raises(DecompressedTooLargeError):
        decompress(Codec.ZSTD, frame, 1000)


@pytest.mark.parametrize("codec", CODECS)
def test_cut_data(codec: Codec) -> None:
    """Compressed data that are cut short never decompress to the whole, and mostly not at all."""
    data = bytes(range(256)) * 4
    compressed = compress(codec, data)
    for size in range(len(compressed)):
        if codec is Codec.SNAPPY and size == 16:
            assert decompress(codec, compressed[:size]) == b""  # a stream of no blocks
            continue
        with pytest.raises(CompressionError):
            decompress(codec, compressed[:size])


@pytest.mark.parametrize("codec", CODECS)
def test_foreign_data_do_not_look_like_it(codec: Codec) -> None:
    """Plain text and the output of the other codecs are told apart."""
    assert not looks_like(codec, b"")
    assert not looks_like(codec, b"\xff" * 20)
    for other in CODECS:
        if other is not codec:
            assert not looks_like(codec, compress(other, RECORDS))


@given(data=st.binary(max_size=100), codec=st.sampled_from(CODECS), keep=st.integers(0, 12))
def test_fuzz(data: bytes, codec: Codec, keep: int) -> None:
    """Any bytes, also behind a genuine start, give a result or a CompressionError."""
    for blob in (data, bytes.fromhex(JAVA[codec])[:keep] + data):
        looks_like(codec, blob)
        with contextlib.suppress(CompressionError):
            assert len(decompress(codec, blob, 10_000)) <= 10_000


@given(position=st.integers(0, 30), value=st.integers(0, 255), codec=st.sampled_from(CODECS))
def test_fuzz_one_byte(position: int, value: int, codec: Codec) -> None:
    """One wrong byte in genuine data gives a result or a CompressionError."""
    blob = bytearray.fromhex(JAVA[codec])
    blob[position % len(blob)] = value
    with contextlib.suppress(CompressionError):
        assert len(decompress(codec, blob, 10_000)) <= 10_000

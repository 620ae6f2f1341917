"""Compressed bodies, as the clients write them."""

from __future__ import annotations

import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logstore.segments.rocketmq.messages.body_compression import (
    BodyCompressionError,
    CompressionType,
    compress_body,
    decompress_body,
)
from logstore.segments.rocketmq.messages.message import decode_message
from tests.segments.rocketmq.golden_case import GoldenCase, golden_cases
from tests.segments.rocketmq.golden_records import stored_records


@given(st.binary(max_size=3000), st.sampled_from(CompressionType))
def test_a_body_comes_back(body: bytes, kind: CompressionType) -> None:
    """Every compression gives back what went in."""
    assert decompress_body(kind, compress_body(kind, body)) == body


@pytest.mark.parametrize("kind", list(CompressionType))
def test_a_body_that_grows_too_large_is_refused(kind: CompressionType) -> None:
    """The limit itself is fine, one byte less is not, and little memory is taken."""
    packed = compress_body(kind, bytes(50_000_000))
    assert len(packed) < 1_000_000
    assert len(decompress_body(kind, packed, 50_000_000)) == 50_000_000
    with pytest.raises(BodyCompressionError, match="more than 49999999 bytes"):
        decompress_body(kind, packed, 49_999_999)


@pytest.mark.parametrize("kind", list(CompressionType))
def test_cut_and_foreign_bodies_are_refused(kind: CompressionType) -> None:
    """Nothing comes out of half of a body."""
    packed = compress_body(kind, b"a body of some length, " * 100)
    for data in (packed[:-5], packed[: len(packed) // 2], b"", b"no compressed body"):
        with pytest.raises(BodyCompressionError, match=r"zlib|LZ4|zstd"):
            decompress_body(kind, data)


def test_other_types_are_refused() -> None:
    """Numbers 4 to 7 mean nothing."""
    for kind in (4, 5, 6, 7):
        with pytest.raises(BodyCompressionError, match=f"type {kind}"):
            decompress_body(kind, zlib.compress(b"x"))
        with pytest.raises(BodyCompressionError, match=f"type {kind}"):
            compress_body(kind, b"x")


@pytest.mark.parametrize("case", golden_cases("properties"), ids=lambda case: case.id)
def test_all_three_compressions_occur_in_golden_data(case: GoldenCase) -> None:
    """Real clients wrote zlib as type 3, LZ4 and zstd, and all are unpacked."""
    messages = [decode_message(record.data) for record in stored_records(case.store)]
    packed = [message for message in messages if message.is_compressed]
    assert {message.sys_flag & 0x700 for message in packed} == {0x100, 0x200, 0x300}
    assert sum(len(one.plain_body()) for one in packed) > sum(len(one.body) for one in packed)

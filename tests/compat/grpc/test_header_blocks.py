"""Header blocks, written by others and read by us."""

from __future__ import annotations

import random

import hpack
import pytest

from logstore.compat.grpc.frames import ErrorCode, Http2Error
from logstore.compat.grpc.header_blocks import HEADER_BYTES_MAX, BlockReader

#: RFC 7541, C.3 to C.4: three requests each, without Huffman's code and with it
REQUESTS = (
    (
        "828684410f7777772e6578616d706c652e636f6d",
        "828684be58086e6f2d6361636865",
        "828785bf400a637573746f6d2d6b65790c637573746f6d2d76616c7565",
    ),
    (
        "828684418cf1e3c2e5f23a6ba0ab90f4ff",
        "828684be5886a8eb10649cbf",
        "828785bf408825a849e95ba97d7f8925a849e95bb8e8b4bf",
    ),
)
_FIRST = [
    (":method", "GET"),
    (":scheme", "http"),
    (":path", "/"),
    (":authority", "www.example.com"),
]
FIELDS = (
    _FIRST,
    [*_FIRST, ("cache-control", "no-cache")],
    [
        (":method", "GET"), (":scheme", "https"), (":path", "/index.html"),
        (":authority", "www.example.com"), ("custom-key", "custom-value"),
    ],
)  # fmt: skip


@pytest.mark.parametrize("blocks", REQUESTS)
def test_the_examples_of_the_standard(blocks: tuple[str, ...]) -> None:
    """Each block depends on those before it."""
    reader = BlockReader()
    for block, fields in zip(blocks, FIELDS, strict=True):
        assert reader.read(bytes.fromhex(block)) == fields


@pytest.mark.parametrize("seed", range(30))
def test_what_a_library_writes(seed: int) -> None:
    """Fields that come again and fields that do not, in tables that change their size."""
    draw = random.Random(seed)
    encoder, reader = hpack.Encoder(), BlockReader()
    for _ in range(60):
        if not draw.randrange(10):
            encoder.header_table_size = draw.choice((0, 60, 500, 4096))
        fields = [
            (
                draw.choice((":path", "x-mq-client-id", "größe", f"x-{draw.randrange(40)}")),
                draw.choice(("", "1", "a" * draw.randrange(400), str(draw.random()), "/ü€")),
            )
            for _ in range(draw.randrange(12))
        ]
        kept = [hpack.NeverIndexedHeaderTuple(*one) if not draw.randrange(9) else one
                for one in fields]  # fmt: skip
        block = encoder.encode(kept, huffman=bool(draw.randrange(2)))
        assert reader.read(block) == fields


@pytest.mark.parametrize(
    "block",
    [
        "80", "be", "ff80808080808001", "7f", "40", "4005616263", "400161", "408101",
        "3fe21f", "82203f", "ff", "0f", "00", "0083ffffffff0161",
    ],
)  # fmt: skip
def test_what_is_no_block(block: str) -> None:
    """Ends the connection, whatever it is."""
    with pytest.raises(Http2Error) as caught:
        BlockReader().read(bytes.fromhex(block))
    assert caught.value.code == ErrorCode.COMPRESSION_ERROR


def test_headers_above_all_limits() -> None:
    """Said in few bytes: a long field that is named again and again."""
    reader = BlockReader()
    reader.read(b"\x40\x01a\x7f\xe1\x16" + bytes(3040))
    with pytest.raises(Http2Error) as caught:
        reader.read(b"\xbe" * (HEADER_BYTES_MAX // 3040 + 1))
    assert caught.value.code == ErrorCode.ENHANCE_YOUR_CALM

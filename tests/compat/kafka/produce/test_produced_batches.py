"""The partitions of a produced topic: one quick look tells of usual batches what is there."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logstore.compat.kafka.framing import MalformedRequestError, Reader, uvarint
from logstore.compat.kafka.produce.batches import SOME_UNUSUAL, UNUSUAL, read_batches
from logstore.compat.kafka.writer import Writer
from logstore.segments.kafka.compression import Codec
from logstore.segments.kafka.record import Record, encode_batch
from logstore.segments.kafka.record_batch import HEADER_BYTES
from logstore.segments.kafka.usual_batch import usual_header
from tests.compat.kafka.batches import altered

NOW_MS = 1_700_000_000_000
TAGS = b"\x01\x05\x02ab"


def batch_of(count: int, size_bytes: int, codec: Codec = Codec.NONE, attributes: int = 0) -> bytes:
    """Return a batch as a client sends it, but for the attributes."""
    records = [Record(n, NOW_MS + n, b"k", b"v" * size_bytes) for n in range(count)]
    data = bytearray(encode_batch(records, codec=codec))
    data[22] |= attributes
    return bytes(data)


def entry(index: int, records: bytes | None, tags: bytes = b"\x00") -> bytes:
    """Return one partition of a flexible request."""
    size = uvarint(0 if records is None else len(records) + 1)
    return struct.pack(">i", index) + size + (records or b"") + tags


SMALL = batch_of(1, 100)
BATCHES = st.one_of(
    st.builds(batch_of, st.sampled_from([1, 2, 5]), st.integers(0, 300)),
    st.builds(batch_of, st.just(3), st.just(50), st.sampled_from([Codec.GZIP, Codec.LZ4])),
    st.builds(batch_of, st.just(1), st.just(90), st.just(Codec.NONE), st.sampled_from([8, 16, 32])),
    st.just(batch_of(1, 20_000)),
    st.just(bytes(encode_batch([Record(0, NOW_MS, b"k", b"v" * 90)], producer_id=7))),
    st.tuples(st.integers(0, len(SMALL) - 1), st.integers(1, 255)).map(
        lambda change: bytes(byte ^ change[1] * (at == change[0]) for at, byte in enumerate(SMALL))
    ),
    st.binary(max_size=300),
    st.none(),
)


@given(st.lists(st.tuples(st.integers(0, 2**31 - 1), BATCHES, st.sampled_from([b"\x00", TAGS]))))
def test_all_is_read_and_told_as_one_by_one(
    wanted: list[tuple[int, bytes | None, bytes]],
) -> None:
    """Numbers, bytes, attributes, and what :func:`usual_header` says of each batch alone."""
    body = b"".join(entry(*one) for one in wanted) + b"behind"
    reader = Reader(memoryview(body), 0, is_flexible=True)
    found, attributes = read_batches(reader, len(wanted))
    assert [(index, bytes(records)) for index, records, *_ in found] == [
        (index, records or b"") for index, records, _ in wanted
    ]
    assert [told for _, _, *told in found] == [
        list(usual_header(records) or (UNUSUAL, 0, -1)) for _, records, *_ in found
    ]
    expected = 0
    for _, records, _ in wanted:
        expected |= records[22] if records is not None and len(records) >= 61 else 0
        is_usual = records is not None and usual_header(memoryview(records)) is not None
        expected |= 0 if is_usual else SOME_UNUSUAL
    assert attributes == expected
    assert reader.position == len(body) - len(b"behind")


@pytest.mark.parametrize("producer_id", [-1, 0, 2**40])
@pytest.mark.parametrize("size_bytes", [100, 150, 20_000])
def test_plain_batches_are_told_as_usual(size_bytes: int, producer_id: int) -> None:
    """Whatever length they have, in flexible versions and in older ones, numbered or not."""
    record = Record(0, NOW_MS, b"k", b"v" * size_bytes)
    data = bytes(encode_batch([record], producer_id=producer_id))
    flexible = Reader(memoryview(entry(7, data) * 2), 0, is_flexible=True)
    plain = struct.pack(">ii", 7, len(data)) + data
    fixed = Reader(memoryview(plain * 2), 0, is_flexible=False)
    for reader in (flexible, fixed):
        found, _ = read_batches(reader, 2)
        assert [(index, *told) for index, _, *told in found] == [(7, 0, NOW_MS, producer_id)] * 2


@given(st.integers(0, len(entry(1, SMALL)) * 2 - 1), st.booleans())
def test_a_request_that_is_cut_short_is_refused(cut: int, is_flexible: bool) -> None:
    """Wherever the cut is: as what hangs up on the client."""
    plain = struct.pack(">ii", 1, len(SMALL)) + SMALL
    body = (entry(1, SMALL) if is_flexible else plain) * 2
    reader = Reader(memoryview(body[:cut]), 0, is_flexible=is_flexible)
    with pytest.raises((MalformedRequestError, struct.error, IndexError)):
        read_batches(reader, 2)


@pytest.mark.parametrize("is_flexible", [True, False])
@pytest.mark.parametrize("marked", range(4))
def test_attributes_of_all_batches_are_seen(is_flexible: bool, marked: int) -> None:
    """Whichever batch has the bit, and however many bytes its length takes."""
    sizes = (61, 126, 200, 20_000)
    batches = [bytearray(size) for size in sizes]
    batches[marked][22] = 0x10
    writer = Writer(is_flexible=is_flexible)
    for index, batch in enumerate(batches):
        writer.i32(index)
        if is_flexible:
            writer.raw(uvarint(len(batch) + 1))
        else:
            writer.i32(len(batch))
        writer.raw(bytes(batch))
        writer.tags()
    reader = Reader(memoryview(writer.body()), 0, is_flexible=is_flexible)
    found, attributes = read_batches(reader, len(sizes))
    assert [(index, bytes(records)) for index, records, *_ in found] == [
        (index, bytes(batch)) for index, batch in enumerate(batches)
    ]
    assert (attributes, reader.position) == (0x10 | SOME_UNUSUAL, len(writer.body()))


@pytest.mark.parametrize("size_bytes", [0, 1, 22, 23, 60])
def test_what_is_too_short_for_a_batch_has_no_attributes(size_bytes: int) -> None:
    """Nothing behind its end is taken for them."""
    data = struct.pack(">ii", 0, size_bytes) + b"\xff" * size_bytes + b"\xff" * 40
    reader = Reader(memoryview(data), 0, is_flexible=False)
    ((index, records, *_),), attributes = read_batches(reader, 1)
    assert (index, len(records), attributes) == (0, size_bytes, SOME_UNUSUAL)


def test_the_first_record_is_looked_into() -> None:
    """Its key is longer than the record, with a checksum that is right; of no batch behind it."""
    sound = batch_of(1, 100)
    bad = altered(sound, HEADER_BYTES + 5, "b", 0x7E)
    for batches, is_known, usual in (
        ([bad, sound], False, [False, True]),
        ([sound, bad], False, [True, True]),
        ([bad, sound], True, [True, True]),
    ):
        body = b"".join(entry(number, one) for number, one in enumerate(batches)) + b"behind"
        reader = Reader(memoryview(body), 0, is_flexible=True)
        found, _ = read_batches(reader, 2, is_known=is_known)
        assert [batch[2] != UNUSUAL for batch in found] == usual

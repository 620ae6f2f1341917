"""Sparse content against a plain bytearray."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from logstore.testing.sparse_bytes import CHUNK_BYTES, SparseBytes

POSITIONS = st.one_of(
    st.integers(0, 50),
    st.integers(CHUNK_BYTES - 50, CHUNK_BYTES + 50),
    st.integers(3 * CHUNK_BYTES - 50, 3 * CHUNK_BYTES + 50),
)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), POSITIONS, st.binary(max_size=99)),
        st.tuples(st.just("resize"), POSITIONS, st.just(b"")),
        st.tuples(st.just("erase"), POSITIONS, st.binary(max_size=99)),
    ),
    max_size=15,
)


def build(steps: list[tuple[str, int, bytes]]) -> tuple[SparseBytes, bytearray]:
    """Do the steps to both."""
    sparse, plain = SparseBytes(), bytearray()
    for kind, position, data in steps:
        if kind == "write":
            sparse.write(position, data)
            if data:
                plain.extend(bytes(max(0, position - len(plain))))
                plain[position : position + len(data)] = data
        elif kind == "resize":
            sparse.resize(position)
            del plain[position:]
            plain.extend(bytes(position - len(plain)))
        else:
            stop = min(position + len(data), len(plain))
            sparse.erase(position, position + len(data))
            if position < stop:
                plain[position:stop] = bytes(stop - position)
    return sparse, plain


@given(STEPS, POSITIONS, st.integers(0, 300_000))
def test_it_reads_like_a_bytearray(
    steps: list[tuple[str, int, bytes]], position: int, size_bytes: int
) -> None:
    """Whatever was written, cut, extended or erased, every read is the same."""
    sparse, plain = build(steps)
    assert sparse.size_bytes == len(plain)
    assert sparse.read(0, len(plain) + 1) == plain
    assert sparse.read(position, size_bytes) == plain[position : position + size_bytes]
    assert sparse.copy().read(0, len(plain)) == plain


@given(STEPS, POSITIONS, st.integers(0, 300_000))
def test_pieces_and_zeros_make_the_whole(
    steps: list[tuple[str, int, bytes]], start: int, size_bytes: int
) -> None:
    """What `pieces` leaves out is zeros."""
    sparse, plain = build(steps)
    whole = bytearray(max(0, min(start + size_bytes, len(plain)) - start))
    for position, piece in sparse.pieces(start, start + size_bytes):
        whole[position - start : position - start + len(piece)] = piece
    assert whole == plain[start : start + size_bytes]


@given(STEPS, POSITIONS, st.binary(max_size=200), st.integers(0, 250))
def test_what_fits_fits_exactly(
    steps: list[tuple[str, int, bytes]], position: int, data: bytes, free_bytes: int
) -> None:
    """Writing what fits takes no more than what was free, and one byte more would not fit."""
    sparse, _ = build(steps)
    fitting = sparse.fitting_bytes(position, len(data), free_bytes)
    for count, fits in ((fitting, True), (fitting + 1, False)):
        if count <= len(data):
            copy = sparse.copy()
            copy.write(position, data[:count])
            assert (copy.stored_bytes - sparse.stored_bytes <= free_bytes) is fits


def test_what_fits_is_counted_across_chunks() -> None:
    """A write over a chunk boundary takes from the same free bytes on both sides of it."""
    sparse = SparseBytes()
    sparse.write(0, b"x" * (CHUNK_BYTES - 10))
    fitting = [sparse.fitting_bytes(CHUNK_BYTES - 20, 100, free) for free in (0, 5, 10, 50, 90)]
    assert fitting == [10, 15, 20, 60, 100]


def test_a_hole_is_free() -> None:
    """A gigabyte that was only announced takes next to no memory."""
    sparse = SparseBytes()
    sparse.resize(1 << 30)
    sparse.write((1 << 30) - 1, b"x")
    sparse.erase(0, (1 << 30) - CHUNK_BYTES)
    assert sparse.stored_bytes <= CHUNK_BYTES
    assert sparse.read((1 << 30) - 3, 9) == b"\0\0x"
    assert sparse.pieces(0, (1 << 30) - CHUNK_BYTES) == []


def test_an_append_costs_what_it_appends() -> None:
    """Eight times the appends store eight times the bytes, chunk by chunk, with none to spare."""
    sparse = SparseBytes()
    for number in range(8 * 1024):
        sparse.write(number * 100, bytes([number % 255 + 1]) * 100)
    assert sparse.stored_bytes == sparse.size_bytes == 819_200


@given(STEPS, POSITIONS)
def test_nothing_but_zeros_stands_before_what_is_stored_next(
    steps: list[tuple[str, int, bytes]], start: int
) -> None:
    """And nothing but zeros from there on where nothing is stored any more."""
    sparse, plain = build(steps)
    found = sparse.next_stored(start)
    assert found is None or start <= found < len(plain)
    assert not any(plain[start:found])

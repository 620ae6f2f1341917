"""Frames come out whole, however the bytes arrive."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logstore.compat.connection import BUFFER_BYTES_KEPT, FrameBuffer, FrameError


def feed(
    frames: FrameBuffer, data: bytes, step_bytes: int, landing: memoryview | None = None
) -> list[bytes]:
    """
    Receive `data` in steps and return every frame that comes out.

    After each step somebody else receives in the `landing`, where there is one.
    """
    found: list[bytes] = []
    position = 0
    while position < len(data):
        target = frames.writable()
        assert len(target) > 0
        count = min(step_bytes, len(target), len(data) - position)
        target[:count] = data[position : position + count]
        frames.received(count)
        position += count
        while (frame := frames.next_frame()) is not None:
            found.append(bytes(frame))
        if landing is not None:
            if frames.start < frames.end:
                frames.settle()
            landing[:] = b"\xff" * len(landing)
    return found


def framed(payloads: list[bytes]) -> bytes:
    """Return the payloads as they stand on the wire."""
    return b"".join(struct.pack(">i", len(payload)) + payload for payload in payloads)


@given(
    st.one_of(
        st.tuples(st.lists(st.integers(0, 200), max_size=8), st.integers(1, 300)),
        st.tuples(st.lists(st.integers(0, 70_000), max_size=8), st.integers(500, 100_000)),
    )
)
def test_frames_survive_every_split(stream: tuple[list[int], int]) -> None:
    """Whatever the sizes of frames and of the pieces that arrive, the payloads are the same."""
    sizes, step_bytes = stream
    payloads = [bytes([index % 251]) * size for index, size in enumerate(sizes)]

    assert payloads == feed(FrameBuffer(1_000_000), framed(payloads), step_bytes)


def test_a_frame_that_waits_keeps_its_bytes() -> None:
    """Frames that are not taken yet stay whole while more bytes arrive behind them."""
    frames = FrameBuffer(1_000_000)
    payloads = [bytes([index]) * 40_000 for index in range(20)]
    data = framed(payloads)
    position = 0
    while position < len(data):
        target = frames.writable()
        count = min(len(target), len(data) - position)
        target[:count] = data[position : position + count]
        frames.received(count)
        position += count

    assert len(frames.pending()) == len(data)
    assert payloads == [bytes(frames.next_frame() or b"") for _ in payloads]
    assert frames.next_frame() is None


@pytest.mark.parametrize("length", [-1, -(2**31), 1001, 2**31 - 1])
def test_an_impossible_length_is_an_error(length: int) -> None:
    """A negative length or one above the limit is refused before any memory is taken for it."""
    frames = FrameBuffer(1000)
    target = frames.writable()
    target[:4] = struct.pack(">i", length)
    frames.received(4)

    with pytest.raises(FrameError, match=str(length)):
        frames.next_frame()
    assert len(frames.writable()) < 100_000


def test_memory_of_a_large_frame_is_given_back() -> None:
    """After a frame above what is kept the buffer is small again."""
    frames = FrameBuffer(100_000_000)
    payload = bytes(BUFFER_BYTES_KEPT * 4)
    assert [payload] == feed(frames, framed([payload]), 1_000_000)

    assert len(frames.writable()) < BUFFER_BYTES_KEPT


# memory that connections share


@given(
    st.one_of(
        st.tuples(st.lists(st.integers(0, 200), max_size=8), st.integers(1, 300)),
        st.tuples(st.lists(st.integers(0, 400_000), max_size=8), st.integers(500, 500_000)),
    )
)
def test_frames_survive_others_in_the_same_memory(stream: tuple[list[int], int]) -> None:
    """What one connection has received stays its own, whatever arrives for another one."""
    sizes, step_bytes = stream
    payloads = [bytes([index % 251]) * size for index, size in enumerate(sizes)]
    landing = memoryview(bytearray(20_000))
    frames = FrameBuffer(1_000_000, landing)
    assert payloads == feed(frames, framed(payloads), step_bytes, landing)


def test_connections_with_whole_small_frames_have_no_memory_of_their_own() -> None:
    """They receive into the shared memory; only a part of a frame is taken out of it."""
    landing = memoryview(bytearray(20_000))
    frames = FrameBuffer(1_000_000, landing)
    for _ in range(3):
        assert frames.writable() is landing
        feed(frames, framed([b"x" * 100] * 5), 10_000, landing)
    feed(frames, framed([b"y" * 100])[:50], 50, landing)
    assert len(frames.pending()) == 50
    assert frames.writable() is not landing


def test_connections_with_large_frames_keep_memory_of_their_own() -> None:
    """Otherwise the start of each large frame would be copied."""
    landing = memoryview(bytearray(20_000))
    frames = FrameBuffer(10_000_000, landing)
    assert feed(frames, framed([b"z" * 900_000]), 1 << 20, landing) == [b"z" * 900_000]
    assert len(frames.writable()) >= 900_000

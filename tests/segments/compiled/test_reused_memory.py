"""Memory is given out again when the last who looks at it lets go, and never before."""

from __future__ import annotations

import numpy as np
import pytest

from logstore.segments.compiled.reused_memory import REUSED_BYTES_MIN, ReusedMemory

COUNT = REUSED_BYTES_MIN // 8


def place_of(array: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> int:
    """Return the address of the first number."""
    return array.ctypes.data


def test_memory_that_nobody_uses_is_given_out_again() -> None:
    """The array of the next step stands where that of the last step stood."""
    memory = ReusedMemory()
    first = memory.array(COUNT, np.int64)
    place = place_of(first)
    del first
    for _ in range(50):
        assert place_of(memory.array(COUNT, np.int64)) == place


@pytest.mark.parametrize("kind", ["array", "view", "memoryview", "rows", "arrow"])
def test_what_is_still_looked_at_is_not_given_out(kind: str) -> None:
    """The array itself, a part of it, a memoryview or an Arrow buffer keep what they show."""
    memory = ReusedMemory()
    made = memory.array(COUNT, np.int64)
    made[:] = 7
    held: object = made
    if kind == "view":
        held = made[5:10]
    elif kind == "memoryview":
        held = made.data[3:]
    elif kind == "rows":
        held = made.reshape(-1, 4)[:, 1].view(np.uint64)
    elif kind == "arrow":
        held = pytest.importorskip("pyarrow").py_buffer(made)
    del made
    for _ in range(40):
        memory.array(COUNT, np.int64)[:] = 9
    if kind == "arrow":
        held = np.frombuffer(held, np.int64)  # type: ignore[call-overload]
    assert set(np.asarray(held).ravel().tolist()) == {7}


def test_arrays_have_the_length_and_kind_that_was_asked_for() -> None:
    """Small ones, large ones, and ones a little smaller than what was there before."""
    memory = ReusedMemory()
    for count in (0, 1, 1000, REUSED_BYTES_MIN, REUSED_BYTES_MIN + 12345, REUSED_BYTES_MIN + 12344):
        small, middle = memory.array(count, np.uint8), memory.array(count, np.int32)
        large = memory.array(count, np.int64)
        small[:], middle[:], large[:] = 1, 2, 3
        assert (len(small), len(middle), len(large)) == (count, count, count)
        assert (small.itemsize, middle.itemsize, large.itemsize) == (1, 4, 8)
        assert (small.sum(), middle.sum(), large.sum()) == (count, 2 * count, 3 * count)


def test_whoever_keeps_everything_costs_no_more_than_that() -> None:
    """Blocks that stay in use are forgotten, so that they end with their last user."""
    memory = ReusedMemory()
    kept = [memory.array(COUNT, np.int64) for _ in range(100)]
    places = {place_of(array) for array in kept}
    assert len(places) == 100
    assert len(memory._blocks) < 50  # pyright: ignore[reportPrivateUsage]

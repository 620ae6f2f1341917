"""
Steps of many bytes at once, for compiled loops: numbers, words, copies, checksums.

Numba knows arrays of bytes, one byte at a time; what a processor does with eight or sixteen of them
is said in :mod:`logstore.segments.compiled.machine_code`. Without numba the same functions are
plain Python. None of them checks where it reads or writes: who calls them has.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
#: an integer of Python where the loops run as they are, one of 64 bits where they are compiled
Number = int | np.int64


def signed_32(source: Bytes, at: Number) -> Number:
    """Return the number of four bytes, the highest first, with its sign."""
    return int.from_bytes(source[at : at + 4].tobytes(), "big", signed=True)


def signed_64(source: Bytes, at: Number) -> Number:
    """Return the number of eight bytes, the highest first, with its sign."""
    return int.from_bytes(source[at : at + 8].tobytes(), "big", signed=True)


def word(source: Bytes, at: Number) -> np.uint64:
    """Return eight bytes as they come, the first one lowest."""
    return np.uint64(int.from_bytes(source[at : at + 8].tobytes(), "little"))


def put_32(target: Bytes, at: Number, value: Number) -> None:
    """Write the lowest 32 bits of a number, the highest byte first."""
    raw = (int(value) & 0xFFFF_FFFF).to_bytes(4, "big")
    target[at : at + 4] = np.frombuffer(raw, np.uint8)


def put_64(target: Bytes, at: Number, value: Number) -> None:
    """Write the lowest 64 bits of a number, the highest byte first."""
    raw = (int(value) & 0xFFFF_FFFF_FFFF_FFFF).to_bytes(8, "big")
    target[at : at + 8] = np.frombuffer(raw, np.uint8)


def copy(source: Bytes, start: Number, size_bytes: Number, target: Bytes, at: Number) -> None:
    """Copy bytes from one array to another."""
    target[at : at + size_bytes] = source[start : start + size_bytes]


def fold_crc32(source: Bytes, start: Number, count: Number) -> tuple[np.uint64, np.uint64]:
    """
    Return two words whose CRC-32 from 0 on is that of ``source[start:start + 16 * count]``.

    That is four times sixteen bytes at least. Only where :data:`CAN_FOLD`.
    """
    raise NotImplementedError(f"{count} steps from {start} on, of {len(source)} bytes")


def _find_machine_code() -> Any:
    try:
        return importlib.import_module("logstore.segments.compiled.machine_code")
    except ImportError:
        return None


_machine_code = _find_machine_code()
#: whether :func:`fold_crc32` may be called: this processor multiplies without carries
CAN_FOLD = _machine_code is not None and _machine_code.can_multiply()
if _machine_code is not None and not TYPE_CHECKING:
    signed_32, signed_64 = _machine_code.read_signed(32), _machine_code.read_signed(64)
    word = _machine_code.read_word()
    put_32, put_64 = _machine_code.write_number(32), _machine_code.write_number(64)
    copy = _machine_code.copy_bytes()
    if CAN_FOLD:
        fold_crc32 = _machine_code.fold_crc32()

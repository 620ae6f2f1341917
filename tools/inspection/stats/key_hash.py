"""64 bits for each key of a column (FNV-1a), so that keys can be counted without making objects."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

_START, _PRIME, _MASK = 0xCBF29CE484222325, 0x100000001B3, 0xFFFF_FFFF_FFFF_FFFF


def _find_njit() -> Any:
    try:
        return importlib.import_module("numba").njit
    except ImportError:
        return None


_njit = _find_njit()


def key_hashes(data: NDArray[np.uint8], bounds: NDArray[np.int32]) -> NDArray[np.int64]:
    """Return a hash a key; key i is ``data[bounds[i]:bounds[i + 1]]``."""
    found = np.empty(max(len(bounds) - 1, 0), dtype=np.uint64)
    if _njit is not None:
        _fill(data, bounds, found)
    else:
        whole, places = data.tobytes(), bounds.tolist()
        for row in range(len(found)):
            found[row] = hash_of(whole[places[row] : places[row + 1]])
    return found.view(np.int64)


def hash_of(key: bytes) -> int:
    """Return the hash of one key, without a sign."""
    value = _START
    for byte in key:
        value = (value ^ byte) * _PRIME & _MASK
    return value


def _fill_rows(
    data: NDArray[np.uint8], bounds: NDArray[np.int32], found: NDArray[np.uint64]
) -> None:
    for row in range(len(found)):
        value = np.uint64(_START)
        for place in range(bounds[row], bounds[row + 1]):
            value = (value ^ np.uint64(data[place])) * np.uint64(_PRIME)
        found[row] = value


_fill: Any = _fill_rows if _njit is None else _njit(cache=True, nogil=True)(_fill_rows)

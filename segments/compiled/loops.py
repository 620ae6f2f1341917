"""How loops over records are compiled, and what they work on."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Int64s = NDArray[np.int64]
UInt64s = NDArray[np.uint64]
FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])
#: an integer of Python where the loops run as they are, one of 64 bits where they are compiled
Number = int | np.int64


def _find_njit() -> Any:
    try:
        return importlib.import_module("numba").njit
    except ImportError:
        return None


_njit = _find_njit()


def is_available() -> bool:
    """Tell whether numba can be imported, so that the loops are fast."""
    return _njit is not None


def compiled(function: FunctionT) -> FunctionT:
    """Return `function` as numba compiles it at its first call, or as it is without numba."""
    if _njit is None:
        return function
    return cast("FunctionT", _njit(cache=True, nogil=True)(function))


def uncounted(function: FunctionT) -> FunctionT:
    """
    As :func:`compiled`, for what makes no arrays: it counts no references to those it is given.

    That costs as much as a short loop at every call, and those of the caller live on anyway.
    """
    if _njit is None:
        return function
    return cast("FunctionT", _njit(cache=True, nogil=True, _nrt=False)(function))


def inlined(function: FunctionT) -> FunctionT:
    """As :func:`uncounted`, for a step of every record: its code stands where it is called."""
    if _njit is None:
        return function
    return cast("FunctionT", _njit(cache=True, nogil=True, forceinline=True, _nrt=False)(function))

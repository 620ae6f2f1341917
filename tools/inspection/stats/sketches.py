"""
What cannot be counted exactly in little memory: how many keys differ, and how sizes are spread.

Both are sketches of Apache DataSketches (HyperLogLog, KLL), a few kilobytes however much they have
seen; two of them make one.
"""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: 2**12 registers: off by 1.6 percent (one standard deviation), in 2 KiB
_KEYS_LOG = 12
#: ranks are off by 1.3 percent
_SIZES_K = 200


def _library() -> Any:
    return importlib.import_module("datasketches")


class DistinctKeys:
    """How many different keys there are, about."""

    __slots__ = ("_sketch",)

    def __init__(self, content: bytes | None = None) -> None:
        kind = _library().hll_sketch
        self._sketch: Any = kind(_KEYS_LOG) if content is None else kind.deserialize(content)

    def __reduce__(self) -> tuple[type[DistinctKeys], tuple[bytes]]:
        return DistinctKeys, (self._sketch.serialize_compact(),)

    def add(self, hashes: NDArray[np.int64]) -> None:
        """Take the hashes of keys; those that are there already change nothing."""
        update = self._sketch.update
        for value in np.unique(hashes).tolist():
            update(value)

    def merge(self, other: DistinctKeys) -> None:
        """Take all that another one has seen."""
        union = _library().hll_union(_KEYS_LOG)
        union.update(self._sketch)
        union.update(other._sketch)
        self._sketch = union.get_result()

    def count(self) -> int:
        """Return how many there are; exact up to some dozen."""
        estimate: float = self._sketch.get_estimate()
        return round(estimate)


class SizeSpread:
    """Sizes in bytes: what half of them are below, and other quantiles."""

    __slots__ = ("_sketch",)

    def __init__(self, content: bytes | None = None) -> None:
        kind = _library().kll_floats_sketch
        self._sketch: Any = kind(_SIZES_K) if content is None else kind.deserialize(content)

    def __reduce__(self) -> tuple[type[SizeSpread], tuple[bytes]]:
        return SizeSpread, (self._sketch.serialize(),)

    def add(self, sizes: NDArray[np.int64]) -> None:
        """Take sizes."""
        if len(sizes):
            self._sketch.update(sizes.astype(np.float32))

    def merge(self, other: SizeSpread) -> None:
        """Take all that another one has seen."""
        self._sketch.merge(other._sketch)

    def quantile(self, rank: float) -> int | None:
        """Return the size that this share of all is not larger than; None without any."""
        if self._sketch.is_empty():
            return None
        found: float = self._sketch.get_quantile(rank)
        return round(found)

    @property
    def largest(self) -> int | None:
        """The largest size, None without any."""
        if self._sketch.is_empty():
            return None
        found: float = self._sketch.get_max_value()
        return round(found)

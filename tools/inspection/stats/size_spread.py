"""How sizes are spread, in a few kilobytes however many there are; two of them make one."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

_STEP = math.log(1.02)


class SizeSpread:
    """
    Sizes in bytes: what half of them are below, and other quantiles, right to one percent.

    A count for each step of two percent, so that the order in which sizes are taken is all one.
    """

    __slots__ = ("_counts", "_largest", "_smallest")

    def __init__(
        self,
        counts: dict[int, int] | None = None,
        smallest: int | None = None,
        largest: int | None = None,
    ) -> None:
        self._counts = {} if counts is None else counts
        self._smallest = smallest
        self._largest = largest

    def __reduce__(
        self,
    ) -> tuple[type[SizeSpread], tuple[dict[int, int], int | None, int | None]]:
        return SizeSpread, (self._counts, self._smallest, self._largest)

    def add(self, sizes: NDArray[np.int64]) -> None:
        """Take sizes, each at least 1."""
        if not len(sizes):
            return
        steps, counts = np.unique(
            np.ceil(np.log(sizes) / _STEP).astype(np.int64), return_counts=True
        )
        found = dict(zip(steps.tolist(), counts.tolist(), strict=True))
        self.merge(SizeSpread(found, int(sizes.min()), int(sizes.max())))

    def merge(self, other: SizeSpread) -> None:
        """Take all that another one has seen."""
        if other._smallest is None or other._largest is None:
            return
        for step, count in other._counts.items():
            self._counts[step] = self._counts.get(step, 0) + count
        smallest, largest = self._smallest, self._largest
        self._smallest = other._smallest if smallest is None else min(smallest, other._smallest)
        self._largest = other._largest if largest is None else max(largest, other._largest)

    def quantile(self, rank: float) -> int | None:
        """Return the size that this share of all is not larger than; None without any."""
        if self._smallest is None or self._largest is None:
            return None
        wanted, seen = rank * sum(self._counts.values()), 0
        for step in sorted(self._counts):
            seen += self._counts[step]
            if seen >= wanted:
                # a step covers (low, high]; its middle is off by one percent at the most
                middle = math.exp((step - 0.5) * _STEP)
                return round(min(max(middle, self._smallest), self._largest))
        return self._largest

    @property
    def largest(self) -> int | None:
        """The largest size, None without any."""
        return self._largest

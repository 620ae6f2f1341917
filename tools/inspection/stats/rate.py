"""Records and bytes over time, in as many buckets as can be looked at."""

from __future__ import annotations

from collections.abc import Iterator

import attrs
import numpy as np
from numpy.typing import NDArray

_SECOND, _HOUR, _DAY = 1_000, 3_600_000, 86_400_000
#: each divides the next one, so that buckets can be put together
WIDTHS_MS: tuple[int, ...] = (
    _SECOND,
    10 * _SECOND,
    60 * _SECOND,
    600 * _SECOND,
    _HOUR,
    6 * _HOUR,
    _DAY,
    *((_DAY * 7) << power for power in range(34)),
)
BUCKETS_MAX = 256


@attrs.define
class Rate:
    """
    What came in each bucket of `width_ms`, by the number of the bucket since 1970.

    Buckets are as narrow as they can be with at most :data:`BUCKETS_MAX` of them in use.
    """

    width_ms: int = WIDTHS_MS[0]
    records: dict[int, int] = attrs.field(factory=dict[int, int])
    size_bytes: dict[int, float] = attrs.field(factory=dict[int, float])

    def add(self, times_ms: NDArray[np.int64], sizes: NDArray[np.float64]) -> None:
        """Take records: when each was made, and how many bytes it has."""
        if not len(times_ms):
            return
        buckets = np.unique(times_ms // self.width_ms)
        while len(buckets) > BUCKETS_MAX and self._can_widen:
            self._widen()
            buckets = np.unique(times_ms // self.width_ms)
        rows = np.searchsorted(buckets, times_ms // self.width_ms)
        counts = np.bincount(rows)
        weights = np.bincount(rows, weights=sizes)
        for bucket, count, weight in zip(
            buckets.tolist(), counts.tolist(), weights.tolist(), strict=True
        ):
            self.records[bucket] = self.records.get(bucket, 0) + count
            self.size_bytes[bucket] = self.size_bytes.get(bucket, 0.0) + weight
        self._shrink(BUCKETS_MAX)

    def merge(self, other: Rate) -> None:
        """Take all that another one has."""
        while self.width_ms < other.width_ms:
            self._widen()
        factor = self.width_ms // other.width_ms
        for bucket, count in other.records.items():
            self.records[bucket // factor] = self.records.get(bucket // factor, 0) + count
        for bucket, size in other.size_bytes.items():
            self.size_bytes[bucket // factor] = self.size_bytes.get(bucket // factor, 0.0) + size
        self._shrink(BUCKETS_MAX)

    def narrowed_to(self, count_max: int) -> Rate:
        """Return the same in at most so many buckets from the first one to the last."""
        found = Rate(self.width_ms, dict(self.records), dict(self.size_bytes))
        while found.bucket_count > count_max and found._can_widen:
            found._widen()
        return found

    @property
    def bucket_count(self) -> int:
        """Buckets from the first to the last, empty ones between them too."""
        return max(self.records) - min(self.records) + 1 if self.records else 0

    def buckets(self) -> Iterator[tuple[int, int, float]]:
        """Yield (start in ms since 1970, records, bytes) of each bucket in use, in order."""
        for bucket in sorted(self.records):
            yield bucket * self.width_ms, self.records[bucket], self.size_bytes[bucket]

    @property
    def _can_widen(self) -> bool:
        return self.width_ms < WIDTHS_MS[-1]

    def _shrink(self, count_max: int) -> None:
        while len(self.records) > count_max and self._can_widen:
            self._widen()

    def _widen(self) -> None:
        wider = WIDTHS_MS[WIDTHS_MS.index(self.width_ms) + 1]
        factor = wider // self.width_ms
        records: dict[int, int] = {}
        sizes: dict[int, float] = {}
        for bucket, count in self.records.items():
            records[bucket // factor] = records.get(bucket // factor, 0) + count
        for bucket, size in self.size_bytes.items():
            sizes[bucket // factor] = sizes.get(bucket // factor, 0.0) + size
        self.width_ms, self.records, self.size_bytes = wider, records, sizes

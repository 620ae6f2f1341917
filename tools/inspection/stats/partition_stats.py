"""What was seen of one partition or queue; two of these make one."""

from __future__ import annotations

import attrs
import numpy as np
from numpy.typing import NDArray

from logstore.tools.inspection.stats.distinct_keys import DistinctKeys
from logstore.tools.inspection.stats.rate import Rate
from logstore.tools.inspection.stats.size_spread import SizeSpread

NO_TIMESTAMP = -1


@attrs.define
class Packed:
    """Bytes as they are stored with one codec, and what they are without it."""

    size_bytes: float = 0.0
    unpacked_bytes: float = 0.0


@attrs.define
class PartitionStats:
    """
    Counts of one partition, or of some of its records.

    An entry is what is stored as one: a batch of Kafka's, a message of RocketMQ's. Bytes of an
    entry of which only some records are wanted count in their share. `control_count` are
    transaction markers, which are no records; `damaged_count` entries that could not be read,
    `gone_count` files that a broker had removed before they were.
    """

    record_count: int = 0
    keyed_count: int = 0
    null_count: int = 0
    entry_count: int = 0
    control_count: int = 0
    damaged_count: int = 0
    gone_count: int = 0
    first_offset: int | None = None
    last_offset: int | None = None
    first_ms: int | None = None
    last_ms: int | None = None
    codecs: dict[str, Packed] = attrs.field(factory=dict[str, Packed])
    rate: Rate = attrs.field(factory=Rate)
    keys: DistinctKeys = attrs.field(factory=DistinctKeys)
    entry_sizes: SizeSpread = attrs.field(factory=SizeSpread)

    @property
    def size_bytes(self) -> int:
        """Bytes on disk."""
        return round(sum(packed.size_bytes for packed in self.codecs.values()))

    @property
    def distinct_key_count(self) -> int:
        """How many keys differ: about, but never more than there are."""
        return min(self.keys.count(), self.keyed_count)

    @property
    def unpacked_bytes(self) -> int:
        """Bytes without compression."""
        return round(sum(packed.unpacked_bytes for packed in self.codecs.values()))

    def add_records(
        self,
        offsets: NDArray[np.int64],
        times_ms: NDArray[np.int64],
        sizes: NDArray[np.float64],
        key_hashes: NDArray[np.int64],
    ) -> None:
        """Take records: their bytes on disk, and the hashes of the keys of those that have one."""
        if not len(offsets):
            return
        self.record_count += len(offsets)
        self.keyed_count += len(key_hashes)
        self._reach_offsets(int(offsets.min()), int(offsets.max()))
        is_timed = times_ms != NO_TIMESTAMP
        if is_timed.any():
            timed = times_ms[is_timed]
            self._reach_times(int(timed.min()), int(timed.max()))
            self.rate.add(timed, sizes[is_timed])
        self.keys.add(key_hashes)

    def add_packed(self, codec: str, size_bytes: float, unpacked_bytes: float) -> None:
        """Take bytes of entries of one codec."""
        packed = self.codecs.setdefault(codec, Packed())
        packed.size_bytes += size_bytes
        packed.unpacked_bytes += unpacked_bytes

    def merge(self, other: PartitionStats) -> None:
        """Take all that was seen of other records."""
        self.record_count += other.record_count
        self.keyed_count += other.keyed_count
        self.null_count += other.null_count
        self.entry_count += other.entry_count
        self.control_count += other.control_count
        self.damaged_count += other.damaged_count
        self.gone_count += other.gone_count
        if other.first_offset is not None and other.last_offset is not None:
            self._reach_offsets(other.first_offset, other.last_offset)
        if other.first_ms is not None and other.last_ms is not None:
            self._reach_times(other.first_ms, other.last_ms)
        for codec, packed in other.codecs.items():
            self.add_packed(codec, packed.size_bytes, packed.unpacked_bytes)
        self.rate.merge(other.rate)
        self.keys.merge(other.keys)
        self.entry_sizes.merge(other.entry_sizes)

    def _reach_offsets(self, first: int, last: int) -> None:
        self.first_offset = first if self.first_offset is None else min(self.first_offset, first)
        self.last_offset = last if self.last_offset is None else max(self.last_offset, last)

    def _reach_times(self, first_ms: int, last_ms: int) -> None:
        self.first_ms = first_ms if self.first_ms is None else min(self.first_ms, first_ms)
        self.last_ms = last_ms if self.last_ms is None else max(self.last_ms, last_ms)


#: by topic and partition or queue id
Measured = dict[tuple[str, int], PartitionStats]


def merge_into(all_of_it: Measured, more: Measured) -> None:
    """Put what was seen of other records to what is there."""
    for place, stats in more.items():
        known = all_of_it.setdefault(place, stats)
        if known is not stats:
            known.merge(stats)

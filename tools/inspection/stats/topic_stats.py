"""The partitions of one topic put together, and how evenly it is spread over them."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from logstore.tools.inspection.stats.partition_stats import PartitionStats
from logstore.tools.inspection.stats.store_stats import StoreStats

#: a partition is hot with so many times the bytes of the mean one
HOT_FACTOR = 2.0


@attrs.frozen
class TopicStats:
    """One topic: `whole` is all of it, `partitions` what was asked for, empty ones too."""

    topic: str
    whole: PartitionStats
    partitions: dict[int, PartitionStats]

    @property
    def skew(self) -> float | None:
        """How many times the bytes of the mean partition the largest one has; None if empty."""
        sizes = [stats.size_bytes for stats in self.partitions.values()]
        return max(sizes) * len(sizes) / sum(sizes) if sum(sizes) else None

    @property
    def hot_partitions(self) -> list[int]:
        """Partitions with far more bytes than the mean."""
        total = self.whole.size_bytes
        return [
            index
            for index, stats in self.partitions.items()
            if stats.size_bytes * len(self.partitions) >= HOT_FACTOR * total > 0
        ]

    def content(self) -> dict[str, object]:
        """Return it for programs; times are ms since 1970."""
        return {
            "topic": self.topic,
            "partitionCount": len(self.partitions),
            **_content(self.whole),
            "rate": _rate_content(self.whole),
            "skew": None if self.skew is None else round(self.skew, 3),
            "hotPartitions": self.hot_partitions,
            "partitions": [
                {
                    "partition": index,
                    "firstOffset": stats.first_offset,
                    "lastOffset": stats.last_offset,
                    **_content(stats),
                }
                for index, stats in self.partitions.items()
            ],
        }


def topics_of(found: StoreStats) -> Iterator[TopicStats]:
    """Yield the topics of a store, by name."""
    for topic, indexes in found.partitions.items():
        whole = PartitionStats()
        partitions: dict[int, PartitionStats] = {}
        for index in indexes:
            stats = found.measured.get((topic, index), PartitionStats())
            partitions[index] = stats
            whole.merge(stats)
        yield TopicStats(topic, whole, partitions)


def _content(stats: PartitionStats) -> dict[str, object]:
    size_bytes, unpacked_bytes = stats.size_bytes, stats.unpacked_bytes
    return {
        "records": stats.record_count,
        "bytes": size_bytes,
        "uncompressedBytes": unpacked_bytes,
        "compressionRatio": round(unpacked_bytes / size_bytes, 3) if size_bytes else None,
        "codecs": {
            codec: {
                "bytes": round(packed.size_bytes),
                "uncompressedBytes": round(packed.unpacked_bytes),
            }
            for codec, packed in sorted(stats.codecs.items())
        },
        "recordsWithKey": stats.keyed_count,
        "distinctKeys": stats.distinct_key_count,
        "nullValues": stats.null_count,
        "entries": stats.entry_count,
        "entryBytes": {
            "p50": stats.entry_sizes.quantile(0.5),
            "p99": stats.entry_sizes.quantile(0.99),
            "max": stats.entry_sizes.largest,
        },
        "controlBatches": stats.control_count,
        "damaged": stats.damaged_count,
        "firstTimestamp": stats.first_ms,
        "lastTimestamp": stats.last_ms,
    }


def _rate_content(stats: PartitionStats) -> dict[str, object]:
    return {
        "bucketMs": stats.rate.width_ms,
        "buckets": [
            {"start": start, "records": records, "bytes": round(size_bytes)}
            for start, records, size_bytes in stats.rate.buckets()
        ],
    }

"""
What a pass over one partition needs to know, as a value.

It is made where the partition is used, and may go to another process: the files that it names are
sealed and do not change.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import attrs

from logstore.segments.kafka.compaction.batch_filter import LastRecord, last_records
from logstore.segments.kafka.compaction.cleanable import Cleanable, segments_between
from logstore.segments.kafka.compaction.offset_map import key_count_max
from logstore.segments.kafka.config import LogConfig
from logstore.segments.kafka.transaction_index import AbortedTransaction


@attrs.frozen
class CompactionLimits:
    """How much memory the map of keys may take, as Kafka's ``log.cleaner.dedupe.buffer.*`` say."""

    buffer_bytes: int = 134217728
    load_factor: float = 0.9

    @property
    def key_count_max(self) -> int:
        """How many keys one pass maps."""
        return key_count_max(self.buffer_bytes, self.load_factor)


@attrs.frozen
class CompactionPlan:
    """
    A pass at `now_ms` over `directory`: keys are mapped from `start` on, all below `bound` copied.

    `dirty` and `segments` are the base offsets of the segments whose keys are mapped and of those
    that are copied. Tombstones without a horizon stay in segments younger than `old_horizon_ms`.
    """

    directory: str
    config: LogConfig
    start: int
    bound: int
    now_ms: int
    old_horizon_ms: int
    key_count_max: int
    dirty: tuple[int, ...]
    segments: tuple[int, ...]
    last_records: Mapping[int, LastRecord]
    aborted: tuple[AbortedTransaction, ...]

    @classmethod
    def of(cls, cleanable: Cleanable, now_ms: int, limits: CompactionLimits) -> Self:
        """Return the plan of a pass over what is cleanable."""
        partition = cleanable.partition
        start, bound = cleanable.first_dirty_offset, cleanable.first_uncleanable_offset
        segments = segments_between(partition, -1, bound)
        clean = segments_between(partition, -1, start)
        aborted: list[AbortedTransaction] = []
        if segments:
            aborted = partition.aborted_transactions(segments[0].base_offset, bound)
        old_horizon_ms = 0
        if clean:
            modified_ms = partition.host.fs.modified_ms(clean[-1].path)
            old_horizon_ms = modified_ms - partition.config.delete_retention_ms
        return cls(
            directory=partition.files.directory,
            config=partition.config,
            start=start,
            bound=bound,
            now_ms=now_ms,
            old_horizon_ms=old_horizon_ms,
            key_count_max=limits.key_count_max,
            dirty=tuple(s.base_offset for s in segments_between(partition, start, bound)),
            segments=tuple(s.base_offset for s in segments),
            last_records=last_records(partition.producers),
            aborted=tuple(aborted),
        )

    def content(self) -> dict[str, Any]:
        """Return it as JSON has it; :meth:`from_content` makes the same of that."""
        return {
            **attrs.asdict(self, recurse=False),
            "config": attrs.asdict(self.config),
            "last_records": [[key, *attrs.astuple(one)] for key, one in self.last_records.items()],
            "aborted": [tuple(one) for one in self.aborted],
        }

    @classmethod
    def from_content(cls, content: Mapping[str, Any]) -> Self:
        """Return the plan that :meth:`content` was made of."""
        given: dict[str, Any] = content["config"]
        config: dict[str, Any] = {
            name: tuple(value)  # pyright: ignore[reportUnknownArgumentType]
            if isinstance(value, list)
            else value
            for name, value in given.items()
        }
        fields: dict[str, Any] = {
            **content,
            "config": LogConfig(**config),
            "dirty": tuple(content["dirty"]),
            "segments": tuple(content["segments"]),
            "last_records": {key: LastRecord(*rest) for key, *rest in content["last_records"]},
            "aborted": tuple(AbortedTransaction(*one) for one in content["aborted"]),
        }
        return cls(**fields)

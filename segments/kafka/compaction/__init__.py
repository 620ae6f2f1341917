"""
Compaction: of every key the last record stays, and in the end not even that if it is a tombstone.

::

    cleanable = find_cleanable(partition, checkpoint, now_ms)
    compaction = Compaction(cleanable, now_ms, CompactionLimits())
    compact(compaction)

Offsets and order stay as they are; the log gets holes. The last batch of each producer stays, if
need be without records, and so does what read_committed readers need to know. What a crash leaves
of the files is told in :mod:`~logstore.segments.kafka.crash_leftovers`.
"""

from __future__ import annotations

from logstore.segments.kafka.compaction.cleanable import Cleanable, find_cleanable
from logstore.segments.kafka.compaction.cleaner import Cleaner
from logstore.segments.kafka.compaction.cleaner_checkpoint import CleanerCheckpoint
from logstore.segments.kafka.compaction.compaction import (
    Compaction,
    CompactionLimits,
    Replacement,
    compact,
)
from logstore.segments.kafka.compaction.compaction_place import (
    CompactionPlace,
    InterruptedPassError,
    InThisProcess,
)

__all__ = [
    "Cleanable",
    "Cleaner",
    "CleanerCheckpoint",
    "Compaction",
    "CompactionLimits",
    "CompactionPlace",
    "InThisProcess",
    "InterruptedPassError",
    "Replacement",
    "compact",
    "find_cleanable",
]

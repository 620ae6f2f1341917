"""What appending a produced batch comes to."""

from __future__ import annotations

from typing import NamedTuple

from logstore.segments.kafka.record_batch import NO_TIMESTAMP


class Appended(NamedTuple):
    """What a leader answers to a produced batch. For a duplicate: the offsets of the first time."""

    base_offset: int
    last_offset: int
    log_append_time_ms: int = NO_TIMESTAMP
    is_duplicate: bool = False

"""
Where each key was written last: what tells a compaction which records are superseded.

Kafka keeps 24 bytes a key in a fixed piece of memory and stops where that is full; the rest of the
log is for the next pass. So does this map, at the same number of keys, though a ``dict`` of Python
needs more memory for them: its keys are whole and never taken for one another.

Source: ``SkimpyOffsetMap``.
"""

from __future__ import annotations

from logstore.segments.kafka.config_keys import INT_MAX

ENTRY_BYTES = 24
NO_OFFSET = -1


def key_count_max(buffer_bytes: int, load_factor: float) -> int:
    """
    Return how many keys Kafka maps with so large a buffer (``log.cleaner.dedupe.*``).

    Java's ints bound both, the buffer and the keys, of which a large factor asks for more.
    """
    slots = min(buffer_bytes, INT_MAX) // ENTRY_BYTES
    return max(int(min(slots * load_factor, INT_MAX)), 1)


class OffsetMap:
    """
    The last offset of each key, for at most `key_count_max` keys.

    `latest_offset` is how far the map knows the log, -1 at first: records above it are not judged.
    """

    def __init__(self, key_count_max: int) -> None:
        self.key_count_max = key_count_max
        self.latest_offset = NO_OFFSET
        self.offsets: dict[bytes, int] = {}

    def __len__(self) -> int:
        return len(self.offsets)

    def put(self, key: bytes, offset: int) -> bool:
        """Note that `key` was written at `offset`; False, and nothing noted, if the map is full."""
        if len(self.offsets) >= self.key_count_max:
            return False  # as in Kafka, also if it knows the key
        self.offsets[key] = self.latest_offset = offset
        return True

    def get(self, key: bytes) -> int:
        """Return the last offset of `key`, -1 if it was not put."""
        return self.offsets.get(key, NO_OFFSET)

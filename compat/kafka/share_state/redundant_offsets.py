"""
Up to where a partition of ``__share_group_state`` says nothing that is not said again later.

Nothing compacts this topic: what lies before the oldest of the last snapshots of all
share-partitions is deleted from the front.

Source: ``ShareCoordinatorOffsetsManager``.
"""

from __future__ import annotations

from logstore.compat.kafka.share_state.persister import SharePartitionKey


class RedundantOffsets:
    """Notes at which offsets of one partition the last snapshots stand."""

    def __init__(self) -> None:
        #: in the order of their offsets
        self._snapshots: dict[SharePartitionKey, int] = {}
        self._redundant_below = 0
        self._deleted_below = 0

    def note(self, key: SharePartitionKey, offset: int, *, is_end: bool) -> None:
        """Take note of a snapshot, or of the end of a state: itself it still counts."""
        self._snapshots.pop(key, None)
        self._snapshots[key] = offset
        self._redundant_below = next(iter(self._snapshots.values()))
        if is_end:
            del self._snapshots[key]

    def deletable_below(self) -> int | None:
        """Return below which offset all may go, None if no more may go than has gone."""
        below = self._redundant_below
        return None if below == self._deleted_below else below

    def note_deleted(self, below: int) -> None:
        """Take note that everything below an offset has gone."""
        self._deleted_below = below

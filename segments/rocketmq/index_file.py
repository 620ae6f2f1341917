"""One index file: from the hash of a key to physical offsets (signatures)."""

from __future__ import annotations

import attrs

from logstore.host import Host


@attrs.frozen
class IndexSizes:
    """How many slots and entries an index file has (``maxHashSlotNum``, ``maxIndexNum``)."""

    slot_count: int = 5_000_000
    entry_count: int = 20_000_000

    @property
    def file_size_bytes(self) -> int:
        """Length of every file."""
        return 40 + 4 * self.slot_count + 20 * self.entry_count


class IndexFile:
    """
    One index file. What is put waits in memory until :meth:`write`; reads see it at once.

    Header fields: `begin_timestamp_ms`, `end_timestamp_ms`, `begin_physical_offset`,
    `end_physical_offset`, `slot_count_used`, `next_number` (Java's ``indexCount``).
    """

    def __init__(self, host: Host, path: str, sizes: IndexSizes) -> None:
        raise NotImplementedError

    @property
    def is_full(self) -> bool:
        """Whether no entry fits any more."""
        raise NotImplementedError

    def put(self, key_hash: int, physical_offset: int, store_timestamp_ms: int) -> bool:
        """Add an entry; tell whether there was room. `key_hash` is not negative."""
        raise NotImplementedError

    def select(self, key_hash: int, count_max: int, begin_ms: int, end_ms: int) -> list[int]:
        """Return physical offsets of entries with this hash in [begin, end], newest first."""
        raise NotImplementedError

    def write(self) -> None:
        """Hand everything pending to the file in a few calls, entries before slots and header."""
        raise NotImplementedError

    def sync(self) -> None:
        """Make what was written durable."""
        raise NotImplementedError

    def close(self) -> None:
        """Give the handle back; does not write."""
        raise NotImplementedError

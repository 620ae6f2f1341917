"""
The extension of a consume queue: tags code, store time and filter bit map of its messages.

A unit of the queue whose tags code is an address leads here (``enableConsumeQueueExt``).
(Java: ``ConsumeQueueExt``.)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from logstore.host import Host

#: tags codes at or below this are addresses; hash codes are above
ADDRESS_MAX = -(2**31) - 1
UNIT_SIZE_BYTES_MAX = 32767


def is_ext_address(tags_code: int) -> bool:
    """Tell whether a tags code leads into the extension."""
    return tags_code <= ADDRESS_MAX


@attrs.frozen
class ConsumeQueueExtUnit:
    """What the extension holds of one message."""

    tags_code: int
    store_timestamp_ms: int
    filter_bit_map: bytes | None = None

    @property
    def size_bytes(self) -> int:
        """How long the unit is."""
        return 20 + len(self.filter_bit_map or b"")


class ConsumeQueueExt:
    """The extension of one queue."""

    def __init__(
        self,
        host: Host,
        directory: str,
        *,
        file_size_bytes: int = 48 * 1024 * 1024,
        is_clean: bool = True,
        is_writable: bool = True,
    ) -> None:
        raise NotImplementedError

    def put(self, unit: ConsumeQueueExtUnit) -> int | None:
        """Append a unit; return its address, None where it cannot be stored."""
        raise NotImplementedError

    def get(self, address: int) -> ConsumeQueueExtUnit | None:
        """Return the unit at an address, None where there is none."""
        raise NotImplementedError

    def recover(self) -> None:
        """Find the end."""
        raise NotImplementedError

    def truncate_above(self, address: int) -> None:
        """Let go of all behind the unit at `address` (``truncateByMaxAddress``)."""
        raise NotImplementedError

    def truncate_below(self, address: int) -> None:
        """Remove files that end below `address` (``truncateByMinAddress``)."""
        raise NotImplementedError

    def flush(self, least_pages: int = 0) -> bool:
        """Sync if that many pages wait."""
        raise NotImplementedError

    def close(self) -> None:
        """Let go of the files."""
        raise NotImplementedError

    def destroy(self) -> None:
        """Remove all files."""
        raise NotImplementedError

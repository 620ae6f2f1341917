"""What a recovery found and did; returned and logged, never silent."""

from __future__ import annotations

import attrs


@attrs.frozen
class Recovery:
    """
    The outcome of opening a log after an unclean stop.

    `next_offset` is where appends continue, `dropped_bytes` how much was cut off, `reason` why the
    first cut entry was not valid (None where nothing was cut), `kept_aside` the files that hold
    what was cut from them.
    """

    next_offset: int
    checked_bytes: int = 0
    dropped_bytes: int = 0
    reason: str | None = None
    kept_aside: tuple[str, ...] = ()

    @property
    def is_clean(self) -> bool:
        """Tell whether every byte found was good."""
        return self.dropped_bytes == 0

    def joined(self, later: Recovery) -> Recovery:
        """Return the outcome of this recovery followed by that of later segments."""
        return Recovery(
            later.next_offset,
            self.checked_bytes + later.checked_bytes,
            self.dropped_bytes + later.dropped_bytes,
            self.reason or later.reason,
            self.kept_aside + later.kept_aside,
        )

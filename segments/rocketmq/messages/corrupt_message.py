"""The error of every decoder of messages."""

from __future__ import annotations

from logstore.errors import LogStoreError


class CorruptMessageError(LogStoreError):
    """
    The bytes at a position are no message.

    `skip_bytes` is the length that the record claims if only the sum of its parts belies it, so
    that a reader may go on behind it as Java does; -1 if nothing can be said.
    """

    def __init__(self, position: int, reason: str, skip_bytes: int = -1) -> None:
        super().__init__(f"position {position}: {reason}")
        self.position = position
        self.reason = reason
        self.skip_bytes = skip_bytes

"""How calls end."""

from __future__ import annotations

import enum

from logstore.errors import LogStoreError


class GrpcCode(enum.IntEnum):
    """What a client is told; those that are told here."""

    OK = 0
    CANCELLED = 1
    UNKNOWN = 2
    INVALID_ARGUMENT = 3
    RESOURCE_EXHAUSTED = 8
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14


class CallError(LogStoreError):
    """A call ends without an answer; `code` and the text are what the client is told."""

    def __init__(self, code: GrpcCode, text: str) -> None:
        super().__init__(text)
        self.code = code

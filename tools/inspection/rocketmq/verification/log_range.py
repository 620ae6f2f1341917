"""A piece of a commit log that was walked apart from the rest: small values that can travel."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import attrs

from logstore.segments.rocketmq.messages.dispatch_request import DispatchRequest
from logstore.tools.inspection.rocketmq.stored_files import StoredFile
from logstore.tools.inspection.rocketmq.stored_store import QueueKey
from logstore.tools.inspection.verification.finding import Finding


class MessagePlace(NamedTuple):
    """What the unit of a message must say."""

    physical_offset: int
    size_bytes: int
    tags_code: int

    @classmethod
    def of(cls, request: DispatchRequest) -> MessagePlace:
        """Return it for a message."""
        return cls(request.physical_offset, request.size_bytes, request.tags_code)


@attrs.frozen
class LogRange:
    """The records of a commit log file that start at positions ``[start, end)``."""

    file: StoredFile
    start: int
    end: int

    @property
    def size_bytes(self) -> int:
        """How long it is."""
        return self.end - self.start


@attrs.frozen
class QueueMarks:
    """
    What messages say of the units of their queue, by number.

    `right` are runs ``(start, end)`` of units that are as they must be.
    """

    right: list[tuple[int, int]]
    missing: dict[int, MessagePlace]
    wrong: dict[int, MessagePlace]


@attrs.frozen
class IndexSpan:
    """
    The entries that messages must have are rows ``[first, first + count)`` of the index.

    All before them lead to messages further ahead, all behind them further on.
    """

    first: int
    count: int


@attrs.frozen
class WalkedPart:
    """
    Good records one behind the other, at ``[position, end_position)`` of their file.

    `batches` go to batch queues and are not held against anything yet; `without_queue` counts
    messages whose queue is not there. `index` is None where entries are not as they must be.
    """

    position: int
    end_position: int
    message_count: int
    newest_ms: int
    findings: list[Finding]
    queues: dict[QueueKey, QueueMarks]
    without_queue: Counter[QueueKey]
    batches: list[tuple[QueueKey, int, DispatchRequest]]
    index: IndexSpan | None

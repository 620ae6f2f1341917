"""Half-open intervals of offsets."""

from __future__ import annotations

import attrs


@attrs.frozen
class Span:
    """
    The offsets ``[start, end)`` that an entry, a segment or a log covers.

    Offsets are points in *that log's own* coordinate: records in a Kafka partition, bytes in a
    RocketMQ commit log, units in a consume queue.
    """

    start: int
    end: int

    def __attrs_post_init__(self) -> None:
        assert self.start <= self.end, f"span [{self.start}, {self.end}) is inside out"

    def __contains__(self, offset: int) -> bool:
        return self.start <= offset < self.end

    def __len__(self) -> int:
        return self.end - self.start

    def __str__(self) -> str:
        return f"[{self.start}, {self.end})"

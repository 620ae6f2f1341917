"""What a pull gets: its status, and runs of bytes in commit log files."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

from logstore.segment import Extent

if TYPE_CHECKING:
    from logstore.host import File

__all__ = ["GetMessageResult", "GetMessageStatus"]

#: so much between two messages is read rather than left out
_GAP_BYTES = 65536


class GetMessageStatus(enum.Enum):
    """Every outcome of a pull in Java's order (``GetMessageStatus``)."""

    FOUND = 0
    NO_MATCHED_MESSAGE = 1
    MESSAGE_WAS_REMOVING = 2
    OFFSET_FOUND_NULL = 3
    OFFSET_OVERFLOW_BADLY = 4
    OFFSET_OVERFLOW_ONE = 5
    OFFSET_TOO_SMALL = 6
    NO_MATCHED_LOGIC_QUEUE = 7
    NO_MESSAGE_IN_QUEUE = 8
    OFFSET_RESET = 9


class GetMessageResult:
    """
    What a pull gets (``GetMessageResult``).

    `runs` are the messages' bytes in the order of the queue, neighbours joined: (file, position,
    size) each. `filtered_count` messages were read and did not pass. `physical_offset_lag` is how
    far the last message looked at is from the end of the commit log.
    """

    __slots__ = (
        "count",
        "filtered_count",
        "max_queue_offset",
        "min_queue_offset",
        "next_begin_offset",
        "physical_offset_lag",
        "runs",
        "size_bytes",
        "status",
        "suggests_slave",
    )

    def __init__(
        self, status: GetMessageStatus, next_begin_offset: int, min_offset: int, max_offset: int
    ) -> None:
        self.status = status
        self.next_begin_offset = next_begin_offset
        self.min_queue_offset = min_offset
        self.max_queue_offset = max_offset
        self.runs: list[tuple[File, int, int]] = []
        self.count = 0
        self.size_bytes = 0
        self.filtered_count = 0
        self.physical_offset_lag = 0
        self.suggests_slave = False

    @property
    def pieces(self) -> list[Extent]:
        """The runs as they are handed to a socket."""
        return [Extent(*run) for run in self.runs]

    def read(self) -> bytes:
        """
        Return all messages, one after the other.

        Runs that stand near each other in one file are read at once, with what is between.
        """
        runs = self.runs
        count = len(runs)
        if count == 1:
            file, position, size = runs[0]
            return file.read(position, size)
        parts: list[bytes | memoryview] = []
        index = 0
        while index < count:
            file, start, wanted = runs[index]
            end = start + wanted
            last = index + 1
            while last < count:
                next_file, position, size = runs[last]
                next_end = position + size
                # Reading twice as much as is wanted costs less than a second system call.
                is_far = next_end - start > 2 * wanted + _GAP_BYTES
                if next_file is not file or position < end or is_far:
                    break
                wanted += size
                end = next_end
                last += 1
            window = memoryview(file.read(start, end - start))
            for _, position, size in runs[index:last]:
                position -= start
                parts.append(window[position : position + size])
            index = last
        return b"".join(parts)

"""
One queue of a topic: 20 bytes for each of its messages, in queue order.

An offset of this log is a unit, the *queue offset*; the name of a file is its first unit's byte.
(Java: ``ConsumeQueue``.)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from logstore.host import Host
    from logstore.segments.rocketmq.consume_queue_ext import ConsumeQueueExt, ConsumeQueueExtUnit

FILE_UNITS = 300_000


@attrs.frozen
class QueueFileSpan:
    """The units of one file: queue offsets ``[first, end)``, last written at `modified_ms`."""

    first_queue_offset: int
    end_queue_offset: int
    modified_ms: int


class ConsumeQueue:
    """
    The units of one queue.

    Raises, on construction, what the files' load rules say (CorruptFileError names the file).
    """

    unit_size_bytes = 20

    def __init__(
        self,
        host: Host,
        directory: str,
        topic: str,
        queue_id: int,
        *,
        file_size_bytes: int = FILE_UNITS * 20,
        is_clean: bool = True,
        is_writable: bool = True,
        ext: ConsumeQueueExt | None = None,
    ) -> None:
        """`directory` is that of this one queue; it need not be there yet."""
        self.topic = topic
        self.queue_id = queue_id
        self.directory = directory
        self.ext = ext
        #: everything below this physical offset is in the queue already (``maxPhysicOffset``)
        self.max_physical_offset = -1
        raise NotImplementedError

    # where it is

    @property
    def units_per_file(self) -> int:
        """How many units one file holds."""
        raise NotImplementedError

    @property
    def min_queue_offset(self) -> int:
        """The first queue offset whose message is still there (``minLogicOffset / 20``)."""
        raise NotImplementedError

    @property
    def max_queue_offset(self) -> int:
        """The queue offset after the last unit, buffered ones included."""
        raise NotImplementedError

    @property
    def flushed_where(self) -> int:
        """Everything below this queue offset is durable."""
        raise NotImplementedError

    @property
    def last_physical_offset(self) -> int:
        """Physical offset of the last unit, -1 if there is none (``getLastOffset``)."""
        raise NotImplementedError

    # writing

    def put(self, physical_offset: int, size_bytes: int, tags_code: int, queue_offset: int) -> bool:
        """
        Take a unit into the buffer; what is there already is passed over (False).

        :meth:`write` puts all that is buffered into the file in one system call. Reads see what is
        buffered.
        """
        raise NotImplementedError

    def write(self) -> None:
        """
        Put what is buffered into the file.

        Raises:
            WriteFailedError: the disk refused; the units stay in the buffer.

        """
        raise NotImplementedError

    # reading

    def units(self, queue_offset: int, count_max: int) -> memoryview:
        """
        Return up to `count_max` units from `queue_offset` on, of one file and the buffer.

        Empty where there is none; fewer where a file ends.
        """
        raise NotImplementedError

    def ext_unit(self, address: int) -> ConsumeQueueExtUnit | None:
        """Return what the consume queue extension says at `address` (a tags code), or None."""
        raise NotImplementedError

    def queue_files(self) -> Sequence[QueueFileSpan]:
        """Return the files that hold units, oldest first."""
        raise NotImplementedError

    def roll_next_file(self, queue_offset: int) -> int:
        """Return the first queue offset of the file after the one with `queue_offset`."""
        raise NotImplementedError

    # recovery

    def recover(self) -> None:
        """Find the end of the queue, from its third-last file on (``recover``)."""
        raise NotImplementedError

    def truncate_dirty(self, physical_offset: int) -> None:
        """Let go of the units at or above `physical_offset` (``truncateDirtyLogicFiles``)."""
        raise NotImplementedError

    def settle(self) -> None:
        """
        Zero, durably, what a recovery left behind the end.

        The store calls this for every queue before the first append after a recovery: units that
        lead beyond the log's end must not come back when the log has grown past them.
        """
        raise NotImplementedError

    def correct_min(self, min_physical_offset: int) -> None:
        """Move `min_queue_offset` to the first unit whose message is there."""
        raise NotImplementedError

    # lasting

    def flush(self, least_pages: int = 0) -> bool:
        """Write and sync if that many pages wait (0: anything); tell whether it was done."""
        raise NotImplementedError

    def delete_below(self, min_physical_offset: int) -> int:
        """Remove leading files of which every unit leads below; never the last one. Count them."""
        raise NotImplementedError

    def destroy(self) -> None:
        """Remove the queue with all its files."""
        raise NotImplementedError

    def close(self) -> None:
        """Write what is buffered and let go of the files."""
        raise NotImplementedError

"""
Many records of a commit log read at once: what dispatch wants to know of each, as arrays.

One scan takes the place of :func:`~logstore.segments.rocketmq.messages.dispatch_request.
read_dispatch_request` for every message in it. Where that would answer anything but a message, and
where a message is odd, the scan ends, so that the reader can look at that place alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np
from numpy.typing import NDArray

from logstore.java_hash import java_hash
from logstore.segments.compiled.reused_memory import ReusedMemory
from logstore.segments.rocketmq.columns import grouping, kernel, scan_loops
from logstore.segments.rocketmq.columns.kept_property import kept_property
from logstore.segments.rocketmq.messages.dispatch_request import SCHEDULE_TOPIC, DispatchRequest
from logstore.segments.rocketmq.messages.properties import tags_code
from logstore.segments.rocketmq.messages.system_flags import (
    INNER_BATCH,
    TRANSACTION_COMMIT,
    TRANSACTION_MASK,
    TRANSACTION_NONE,
)

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from logstore.segments.rocketmq.messages.dispatch_request import DeliverTime

UNIT_BYTES = 20


class ScanStop(Enum):
    """Why a scan ended before its data did."""

    #: all was read
    ALL_READ = kernel.ALL_READ
    #: a BLANK: the log goes on in the next file
    BLANK = kernel.BLANK
    #: a record is not there to its end
    CUT = kernel.CUT
    #: no message: the end of what was written, or damage
    FOREIGN = kernel.FOREIGN
    #: parts do not add up, or a message is such that only the slow way may judge
    ODD = kernel.ODD
    #: the body's CRC is wrong
    BAD_CRC = kernel.BAD_CRC


@attrs.frozen(eq=False)
class QueueRun:
    """
    The messages of one queue in one scan, in the order of the commit log.

    `units` are their consume queue units, 20 bytes each, `queue_offsets` and `rows` int64 of n:
    the latter are rows of the scan.
    """

    topic: str
    queue_id: int
    queue_offsets: NDArray[np.int64]
    rows: NDArray[np.int64]
    units: memoryview
    #: whether each queue offset is the one after its neighbour's
    is_dense: bool


@attrs.frozen(eq=False)
class IndexEntries:
    """
    What the index of messages has to note, in order: arrays of n.

    `hashes` int64: Java's hash of ``topic#key``, with a sign. `rows` int32: rows of the scan.
    """

    hashes: NDArray[np.int64]
    rows: NDArray[np.int32]
    physical_offsets: NDArray[np.int64]
    store_timestamps_ms: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.hashes)


@attrs.frozen(eq=False, slots=False)
class RecordScan:
    """
    The messages found one behind the other in `data`, a row each.

    `table` is int64 of (kernel.ROWS, n). `end_position` is where in `data` the scan ended, and
    `stop` why: read on there one by one, and scan again behind what was odd.
    """

    data: NDArray[np.uint8]
    table: NDArray[np.int64]
    end_position: int
    stop: ScanStop
    #: where columns are made
    memory: ReusedMemory = attrs.field(factory=ReusedMemory)

    def __len__(self) -> int:
        return int(self.table.shape[1])

    def column(self, number: int) -> NDArray[np.int64]:
        """Return one row of the table, copied: ``kernel.QUEUE_ID`` and the like."""
        found: NDArray[np.int64] = self.table[number].copy()
        return found

    @kept_property
    def topic_numbers(self) -> NDArray[np.int32]:
        """For each row which of `topics` is its topic."""
        return self._topics[0]

    @kept_property
    def topics(self) -> list[str]:
        """The different topics, in the order in which they come."""
        return self._topics[1]

    @kept_property
    def _topics(self) -> tuple[NDArray[np.int32], list[str]]:
        codes, found = self.intern(kernel.TOPIC)
        return codes, [topic.decode("utf-8", "replace") for topic in found]

    def intern(self, place: int) -> tuple[NDArray[np.int32], list[bytes]]:
        """Return (a number for each row, the byte string of each number) of strings in `data`."""
        count = len(self)
        slots = _slots(count)
        firsts, codes = np.empty(count, np.int32), np.empty(count, np.int32)
        found = int(grouping.intern(self.data, self.table, place, slots, firsts, codes))
        return codes, [self.text(int(row), place) or b"" for row in firsts[:found]]

    def text(self, row: int, place: int) -> bytes | None:
        """Return one byte string: ``kernel.TAGS`` and the like; None if the row has none."""
        start, size = int(self.table[place, row]), int(self.table[place + 1, row])
        return None if size < 0 else self.data[start : start + size].tobytes()

    @kept_property
    def is_queued(self) -> NDArray[np.bool_]:
        """Which rows get a consume queue unit: not what is prepared or rolled back."""
        kind = self.table[kernel.SYS_FLAG] & TRANSACTION_MASK
        queued: NDArray[np.bool_] = (kind == TRANSACTION_NONE) | (kind == TRANSACTION_COMMIT)
        return queued

    @kept_property
    def is_inner_batch(self) -> NDArray[np.bool_]:
        """Which rows hold several messages."""
        found: NDArray[np.bool_] = self.table[kernel.SYS_FLAG] & INNER_BATCH != 0
        return found

    @kept_property
    def is_multi_dispatch(self) -> NDArray[np.bool_]:
        """Which rows go to light queues besides their own."""
        found: NDArray[np.bool_] = self.table[kernel.MULTI_DISPATCH_BYTES] >= 0
        return found

    def request(self, row: int) -> DispatchRequest:
        """Return one row as a request, for those who want it so."""
        values = self.table[:, row].tolist()
        text = values[kernel.TEXT]
        return DispatchRequest(
            self.topics[int(self.topic_numbers[row])],
            values[kernel.QUEUE_ID],
            values[kernel.PHYSICAL_OFFSET],
            values[kernel.SIZE],
            values[kernel.TAGS_CODE],
            values[kernel.STORE_MS],
            values[kernel.QUEUE_OFFSET],
            values[kernel.SYS_FLAG],
            values[kernel.PREPARED_OFFSET],
            self.data[text : text + values[kernel.TEXT_BYTES]].tobytes(),
        )

    def queue_runs(self) -> Iterator[QueueRun]:
        """Yield the messages that get a unit, queue by queue."""
        count = len(self)
        slots = _slots(count)
        firsts, queues = np.empty(count, np.int32), np.empty(count, np.int32)
        topics = self.topic_numbers
        found = int(grouping.number_queues(topics, self.table, slots, firsts, queues))
        bounds = np.zeros(found + 1, np.int64)
        np.cumsum(np.bincount(queues[queues >= 0], minlength=found), out=bounds[1:])
        queued = int(bounds[-1])
        units = np.empty(UNIT_BYTES * queued, np.uint8)
        queue_offsets, rows = np.empty(queued, np.int64), np.empty(queued, np.int64)
        gaps = np.zeros(found, np.int64)
        nexts = bounds[:-1].copy()
        grouping.fill_units(self.table, firsts, queues, nexts, units, queue_offsets, rows, gaps)
        whole = units.data
        spans = zip(firsts.tolist(), pairwise(bounds.tolist()), gaps.tolist(), strict=False)
        for first, (start, end), gap_count in spans:
            yield QueueRun(
                self.topics[int(topics[first])],
                int(self.table[kernel.QUEUE_ID, first]),
                queue_offsets[start:end],
                rows[start:end],
                whole[UNIT_BYTES * start : UNIT_BYTES * end],
                not gap_count,
            )

    def index_entries(self, *, has_tag_keys: bool) -> IndexEntries:
        """
        Return what the index notes: unique key and keys of all that is not rolled back.

        With `has_tag_keys` the tags, too, as ``topic#T#tags`` (5.5).
        """
        room = int(grouping.key_room(self.table))
        plain = np.array([java_hash(topic + "#") for topic in self.topics], np.int64)
        tagged = np.array([java_hash(topic + "#T#") for topic in self.topics], np.int64)
        hashes, rows = np.empty(room, np.int64), np.empty(room, np.int32)
        physical_offsets, stored_ms = np.empty(room, np.int64), np.empty(room, np.int64)
        count, odd_count = grouping.index_keys(
            self.data,
            self.table,
            self.topic_numbers,
            plain,
            tagged,
            has_tag_keys,
            hashes,
            rows,
            physical_offsets,
            stored_ms,
        )
        end = int(count)
        if odd_count:
            self._hash_odd_keys(hashes[:end], rows[:end], has_tag_keys)
        return IndexEntries(hashes[:end], rows[:end], physical_offsets[:end], stored_ms[:end])

    def _hash_odd_keys(
        self, hashes: NDArray[np.int64], rows: NDArray[np.int32], has_tag_keys: bool
    ) -> None:
        """Let Python hash the keys of messages in which bytes are no UTF-8."""
        for row in np.unique(rows[hashes == kernel.NO_UTF8]).tolist():
            request = self.request(row)
            keys = [request.unique_key] if request.unique_key else []
            keys += [key for key in request.keys.split(" ") if key]
            keys += [f"T#{request.tags}"] if has_tag_keys and request.tags else []
            hashes[rows == row] = [java_hash(f"{request.topic}#{key}") for key in keys]


def _slots(count: int) -> NDArray[np.int32]:
    """Return an empty table of twice as many slots as there can be different things."""
    return np.zeros(1 << max(4, (2 * count).bit_length()), np.int32)


def scan_records(
    data: Buffer,
    position: int = 0,
    *,
    verify_crc: bool = False,
    deliver_time: DeliverTime | None = None,
    memory: ReusedMemory | None = None,
) -> RecordScan:
    """
    Read the messages that stand one behind the other in `data` from `position` on.

    The scan keeps a view of `data`. Steps of some MiB are fastest. `verify_crc` checks the bodies;
    `deliver_time` says when messages of the schedule topic are due. Whoever scans step by step
    gives all of them the same `memory`. Never raises for what stands
    in `data`: see :class:`ScanStop`.
    """
    # One type for compiled loops, whoever owns `data`: compiled once.
    source = np.frombuffer(memoryview(data).cast("B").toreadonly(), np.uint8)
    count, _, stop = kernel.count_records(source, position, len(source))
    memory = memory or ReusedMemory()
    table = memory.array(int(count) * kernel.ROWS, np.int64).reshape(kernel.ROWS, int(count))
    sound, end, fault = scan_loops.scan(source, position, table, verify_crc)
    if sound < count:
        table = np.ascontiguousarray(table[:, : int(sound)])
    scan = RecordScan(source, table, int(end), ScanStop(int(fault or stop)), memory)
    _mend_tags_codes(scan, deliver_time)
    return scan


def _mend_tags_codes(scan: RecordScan, deliver_time: DeliverTime | None) -> None:
    """Fill in what the compiled loop cannot know: odd tags, and when delayed messages are due."""
    codes: NDArray[Any] = scan.table[kernel.TAGS_CODE]
    has_odd = codes.max(initial=0) == kernel.NO_UTF8  # there is no higher one
    for row in np.flatnonzero(codes == kernel.NO_UTF8).tolist() if has_odd else ():
        codes[row] = tags_code(scan.text(row, kernel.TAGS) or b"")
    if deliver_time is None:
        return
    delayed = np.flatnonzero(scan.table[kernel.DELAY_BYTES] >= 0)
    for row in delayed.tolist():
        if scan.topics[int(scan.topic_numbers[row])] == SCHEDULE_TOPIC:
            try:
                level = int(scan.text(row, kernel.DELAY) or b"")
            except ValueError:
                continue
            if level > 0:
                codes[row] = deliver_time(level, int(scan.table[kernel.STORE_MS, row]))

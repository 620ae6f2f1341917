"""
Rows that become RocketMQ's messages while they are staged, without a look at each.

What the commit has to add is where each message stands and when it is stored. Rows whose key or
headers are no plain ASCII are looked at in Python, for their properties alone.
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs
import numpy as np
from numpy.typing import NDArray

from logstore.compat.spark import row_message_kernel as kernel
from logstore.compat.spark.convert.batch_packing import Pieces
from logstore.compat.spark.convert.message_packing import head_template, message_version
from logstore.compat.spark.row_columns import HeaderColumns, RowColumns
from logstore.compat.spark.row_places import Place, RowPlaces
from logstore.compat.spark.row_rules import RowRules
from logstore.errors import RejectedAppendError
from logstore.partition import Record
from logstore.segments.compiled.reused_memory import ReusedMemory
from logstore.segments.rocketmq.columns.kernel import NO_UTF8
from logstore.segments.rocketmq.columns.record_scan import IndexEntries, RecordScan, scan_records
from logstore.segments.rocketmq.messages.dispatch_request import SCHEDULE_TOPIC, DispatchRequest
from logstore.segments.rocketmq.messages.host_address import HostAddress
from logstore.segments.rocketmq.messages.message import decode_message
from logstore.segments.rocketmq.messages.message_batch import MessageBatchDraft, batch_model
from logstore.segments.rocketmq.messages.message_draft import MessageEntry
from logstore.segments.rocketmq.messages.message_layout import BLANK_BYTES
from logstore.segments.rocketmq.queue import RocketMQQueue, properties_text_of, record_of

#: so much goes into the commit log at once, if it is not one message
_MESSAGES_BYTES = 256 * 1024
#: properties by which a message may be more than one begin like this: those go one by one
_INNER = b"INNER_"
_NOBODY = HostAddress.of("127.0.0.1", 0)
_NO_HEADERS = Pieces(np.zeros(0, np.uint8), np.zeros(0, np.int64), np.zeros(0, np.int64))


@attrs.frozen(eq=False)
class StagedMessages:
    """Messages of one queue back to back: message i is ``data[bounds[i]:bounds[i + 1]]``."""

    data: bytearray
    bounds: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.bounds) - 1

    def behind(self, count: int) -> StagedMessages:
        """Return all but the first `count`."""
        bounds = self.bounds[count:]
        return StagedMessages(self.data[bounds[0] :], bounds - bounds[0])

    def records(self) -> list[Record]:
        """Return what they are made of, for a store that takes them one by one."""
        data = memoryview(self.data)
        spans = zip(self.bounds[:-1].tolist(), self.bounds[1:].tolist(), strict=True)
        return [record_of(decode_message(data[start:end])) for start, end in spans]


class StagedDraft(MessageBatchDraft):
    """Staged messages on their way into the commit log, each with the time that it was born."""

    __slots__ = ("_has_tag_keys", "_scan", "_staged")

    def __init__(self, place: Place, staged: StagedMessages, *, has_tag_keys: bool) -> None:
        topic, queue_id = place
        super().__init__(batch_model(topic, queue_id, _NOBODY))
        self.message_count = len(staged)
        self.size_bytes = len(staged.data)
        self._staged = staged
        self._has_tag_keys = has_tag_keys
        self._scan: RecordScan | None = None

    def stamped(self, base_offset: int) -> MessageEntry:
        """
        Return all messages as they stand in the commit log from `base_offset` on.

        Raises:
            RejectedAppendError: what was staged is damaged.

        """
        data, starts = self._staged.data, self._staged.bounds[:-1]
        target = np.frombuffer(data, np.uint8)
        kernel.place_messages(
            target, starts, base_offset, self.queue_offset, self.store_timestamp_ms
        )
        self._scan = scan_records(data)
        if len(self._scan) != self.message_count:
            raise RejectedAppendError(f"{self.topic}: staged messages are damaged")
        self.physical_offset = base_offset
        self.physical_offsets = (base_offset + starts).tolist()
        return MessageEntry(base_offset, self.size_bytes, memoryview(data))

    @property
    def _found(self) -> RecordScan:
        assert self._scan is not None, "asked before they were stamped"
        return self._scan

    def units(self) -> bytes:
        """Return the consume queue units of all messages, once they are stamped."""
        return b"".join(run.units for run in self._found.queue_runs())

    def index_entries(self) -> IndexEntries:
        """Return what the index is to have of these messages, once they are stamped."""
        return self._found.index_entries(has_tag_keys=self._has_tag_keys)

    def dispatch_requests(self) -> list[DispatchRequest]:
        """Return the requests for all messages, once they are stamped."""
        return [self._found.request(row) for row in range(self.message_count)]


def takes_together(queue: RocketMQQueue, messages: StagedMessages) -> bool:
    """Tell whether the store of a queue takes these as they are, and nothing is to be added."""
    rules, log = queue.store.putting.rules, queue.store.commit_log
    size_bytes = len(messages.data)
    return (
        size_bytes <= log.file_size_bytes - BLANK_BYTES
        and size_bytes <= rules.message_size_bytes_max
        and not rules.has_property_crc
        and not rules.multi_dispatch.is_enabled
        and queue.topic != SCHEDULE_TOPIC
    )


def draft_of(queue: RocketMQQueue, messages: StagedMessages) -> StagedDraft:
    """Return messages as what the store of a queue takes."""
    has_tag_keys = queue.store.index.release.has_tag_entries
    return StagedDraft((queue.topic, queue.index), messages, has_tag_keys=has_tag_keys)


def packed_messages(
    rows: RowColumns, places: RowPlaces, rules: RowRules, memory: ReusedMemory
) -> Iterator[tuple[Place, StagedMessages]] | None:
    """
    Return rows as messages, and where each goes; None where they must go one by one.

    Raises:
        OptionError: a row names no topic, or a partition that its topic does not have.
        RejectedAppendError: the layout cannot hold a row.

    """
    rules.check_body_bytes(int(rows.values.sizes.max(initial=0)))
    texts = _texts(rows, rules)
    if _INNER in texts.data.tobytes():
        return None
    return _packed(rows, texts, places, memory)


def _packed(
    rows: RowColumns, texts: Pieces, places: RowPlaces, memory: ReusedMemory
) -> Iterator[tuple[Place, StagedMessages]]:
    hashes = np.empty(len(rows), np.int64)
    kernel.hash_texts(rows.keys.arrays, hashes)
    assert not np.any(hashes == NO_UTF8), "such keys are no properties"
    for (topic, queue_id), at in rows.by_place(places, hashes):
        topic_bytes = topic.encode()
        length_bytes = message_version(topic).topic_length_bytes
        topic_field = np.frombuffer(len(topic_bytes).to_bytes(length_bytes) + topic_bytes, np.uint8)
        sizes = np.maximum(rows.values.sizes[at], 0) + texts.sizes[at]
        sizes += kernel.HEAD_BYTES + len(topic_field) + 2
        for first, last in _cuts(sizes):
            bounds = np.zeros(last - first + 1, np.int64)
            np.cumsum(sizes[first:last], out=bounds[1:])
            target = memory.array(int(bounds[-1]), np.uint8)
            kernel.pack_messages(
                at[first:last],
                head_template(topic, queue_id),
                topic_field,
                rows.values.arrays,
                texts.arrays,
                rows.timestamps_ms,
                bounds,
                target,
            )
            yield (topic, queue_id), StagedMessages(bytearray(target.data), bounds)


def _cuts(sizes: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Yield (first, behind the last) of messages that go into the log together."""
    ends = np.cumsum(sizes)
    first, before = 0, 0
    while first < len(sizes):
        last = max(int(np.searchsorted(ends, before + _MESSAGES_BYTES, "right")), first + 1)
        yield first, last
        first, before = last, int(ends[last - 1])


def _texts(rows: RowColumns, rules: RowRules) -> Pieces:
    """
    Return the properties of every row.

    Raises:
        RejectedAppendError: key or headers cannot be properties.

    """
    headers = rows.headers or _no_headers(len(rows))
    found = headers.names.arrays, headers.values.arrays
    sizes = np.empty(len(rows), np.int64)
    kernel.measure_texts(rows.keys.arrays, headers.bounds, *found, sizes)
    odd = sizes < 0
    oddities: dict[int, bytes] = {}
    for row in np.flatnonzero(odd).tolist():
        record = Record(rows.key(row), b"", 0, headers.of_row(row))
        oddities[row] = text = properties_text_of(record)
        sizes[row] = len(text)
    rules.check_properties_bytes(int(sizes.max(initial=0)))
    starts = np.cumsum(sizes) - sizes
    data = np.empty(int(sizes.sum()), np.uint8)
    kernel.fill_texts(rows.keys.arrays, headers.bounds, *found, odd, starts, data)
    for row, text in oddities.items():
        data[starts[row] : starts[row] + len(text)] = np.frombuffer(text, np.uint8)
    return Pieces(data, starts, sizes)


def _no_headers(count: int) -> HeaderColumns:
    nothing = np.zeros(count, np.int64)
    return HeaderColumns(nothing, nothing, _NO_HEADERS, _NO_HEADERS)

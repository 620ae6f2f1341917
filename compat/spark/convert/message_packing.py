"""
Records of one partition to messages of one queue, many at a time.

Plain records (ASCII key or none, a value, no headers) are packed by compiled loops. The mapping of
all others is :mod:`logstore.compat.record_mapping`'s, record by record; what no message can hold
of them is returned beside.
"""

from __future__ import annotations

from functools import cached_property

import attrs
import numpy as np
from numpy.typing import NDArray

from logstore.compat.record_mapping import message_parts
from logstore.compat.spark.convert import message_kernel
from logstore.errors import LogStoreError
from logstore.segments.kafka.columns import RecordColumns
from logstore.segments.kafka.record import Record
from logstore.segments.rocketmq.messages.host_address import HostAddress
from logstore.segments.rocketmq.messages.message_layout import (
    FIXED_FIELDS,
    TOPIC_LENGTH_V1_MAX,
    MessageVersion,
)
from logstore.segments.rocketmq.messages.properties import (
    PROPERTIES_SIZE_BYTES_MAX,
    encode_properties,
)

#: who converted messages are said to come from, and to be stored at
_NOBODY = HostAddress.of("127.0.0.1", 0)


class UnfitRecordError(LogStoreError):
    """A record cannot be a message of the target store."""


@attrs.frozen(eq=False)
class PackedTexts:
    """The properties of records: text i is ``data[bounds[i]:bounds[i + 1]]``; rests by row."""

    data: NDArray[np.uint8]
    bounds: NDArray[np.int64]
    rests: dict[int, bytes]


@attrs.frozen(eq=False, slots=False)
class RecordsOfPartition:
    """Records of one partition on their way to a queue."""

    topic: str
    queue_id: int
    columns: RecordColumns

    def __len__(self) -> int:
        return len(self.columns)

    @property
    def offsets(self) -> NDArray[np.int64]:
        """The offsets of the records."""
        return self.columns.offset

    @property
    def timestamps_ms(self) -> NDArray[np.int64]:
        """Their times."""
        return self.columns.timestamp_ms

    @property
    def positions(self) -> NDArray[np.int64]:
        """Where the batch of each stands in its file."""
        return batch_positions(self.columns)


@attrs.frozen(eq=False, slots=False)
class MessageBatch(RecordsOfPartition):
    """Records that were never messages, and what they are as messages."""

    @cached_property
    def texts(self) -> PackedTexts:
        """The properties of every record."""
        columns = self.columns
        assert columns.key is not None
        assert columns.value is not None
        assert columns.headers is not None
        count = len(columns)
        odd = np.zeros(count, dtype=np.bool_)
        message_kernel.find_odd(
            columns.key.data,
            columns.key.bounds,
            columns.key.is_null,
            columns.value.is_null,
            columns.headers.bounds,
            odd,
        )
        sizes = np.zeros(count, dtype=np.int64)
        message_kernel.size_texts(columns.key.bounds, columns.key.is_null, odd, sizes)
        rests: dict[int, bytes] = {}
        oddities = self._odd_texts(np.flatnonzero(odd).tolist(), rests)
        for row, text in oddities.items():
            sizes[row] = len(text)
        bounds = np.zeros(count + 1, dtype=np.int64)
        np.cumsum(sizes, out=bounds[1:])
        data = np.empty(int(bounds[-1]), dtype=np.uint8)
        message_kernel.fill_texts(columns.key.data, columns.key.bounds, odd, bounds, data)
        for row, text in oddities.items():
            data[bounds[row] : bounds[row + 1]] = np.frombuffer(text, dtype=np.uint8)
        return PackedTexts(data, bounds, rests)

    def _odd_texts(self, rows: list[int], rests: dict[int, bytes]) -> dict[int, bytes]:
        """Return the properties of records that need a look each; put what is left in `rests`."""
        if not rows:
            return {}
        records = self.columns.records()
        texts: dict[int, bytes] = {}
        for row in rows:
            texts[row] = self._odd_text(records[row], row, rests)
        return texts

    def _odd_text(self, record: Record, row: int, rests: dict[int, bytes]) -> bytes:
        parts, rest = message_parts(record)
        if rest is not None:
            rests[row] = rest
        text = encode_properties(parts.properties)
        if len(text) > PROPERTIES_SIZE_BYTES_MAX:
            raise UnfitRecordError(
                f"{self.topic}-{self.queue_id}: offset {record.offset}: key and headers take "
                f"{len(text)} bytes as properties, a message holds {PROPERTIES_SIZE_BYTES_MAX}; "
                "name the other topics (--topics), or convert to parquet or jsonl, which hold it"
            )
        return text

    @property
    def rests(self) -> dict[int, bytes]:
        """What no message holds of the records, by row."""
        return self.texts.rests

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """How many bytes each message has."""
        assert self.columns.value is not None
        bounds = self.columns.value.bounds.astype(np.int64)
        topic_length_bytes = message_version(self.topic).topic_length_bytes
        fixed = message_kernel.HEAD_BYTES + topic_length_bytes + len(self.topic) + 2
        sizes: NDArray[np.int64] = fixed + np.diff(bounds) + np.diff(self.texts.bounds)
        return sizes

    def pack(
        self,
        first: int,
        last: int,
        queue_offsets: NDArray[np.int64],
        store_timestamps_ms: NDArray[np.int64],
        physical_offset: int,
        physical_offsets: NDArray[np.int64],
    ) -> NDArray[np.uint8]:
        """
        Return the messages of rows ``[first, last)``, the first of which stands there.

        `physical_offsets` of these rows are set.
        """
        columns, texts = self.columns, self.texts
        assert columns.value is not None
        target = np.empty(int(self.sizes[first:last].sum()), dtype=np.uint8)
        message_kernel.pack_messages(
            first,
            last,
            head_template(self.topic, self.queue_id),
            np.frombuffer(self.topic.encode(), dtype=np.uint8),
            message_version(self.topic).topic_length_bytes,
            columns.value.data,
            columns.value.bounds,
            texts.data,
            texts.bounds,
            queue_offsets,
            columns.timestamp_ms,
            store_timestamps_ms,
            physical_offset,
            physical_offsets,
            target,
        )
        return target


def batch_positions(columns: RecordColumns) -> NDArray[np.int64]:
    """Return for each record where its batch stands in its file."""
    positions: NDArray[np.int64] = columns.batches.position[columns.batch]
    return positions


def message_version(topic: str) -> MessageVersion:
    """Return the kind of message that the topic's length asks for."""
    return MessageVersion.V2 if len(topic) > TOPIC_LENGTH_V1_MAX else MessageVersion.V1


def head_template(topic: str, queue_id: int) -> NDArray[np.uint8]:
    """Return the head of a message with all that is the same for every one of a queue."""
    head = FIXED_FIELDS[0].pack(
        0,
        message_version(topic).magic,
        0,
        queue_id,
        0,
        0,
        0,
        0,
        0,
        _NOBODY.packed,
        0,
        _NOBODY.packed,
        0,
        0,
        0,
    )
    return np.frombuffer(head, dtype=np.uint8)

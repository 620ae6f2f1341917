"""The compiled loops as the bridge calls them; importing this needs numpy."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from logstore.checksum import crc32c
from logstore.compat.bridge.compiled.batch_to_messages import (
    COLUMNS,
    KEY_BYTES,
    NOT_PLAIN,
    hash_keys,
    scan_batch,
    write_messages,
)
from logstore.compat.bridge.compiled.messages_to_batch import write_records
from logstore.compat.bridge.compiled.stored_messages import stored_messages
from logstore.java_hash import java_hash
from logstore.segments.compiled.loops import is_available
from logstore.segments.kafka.compression import Codec, CompressionError, decompress
from logstore.segments.kafka.record_batch import (
    CODEC_MASK,
    HEADER_BYTES,
    LOG_APPEND_TIME_BIT,
    MAGIC,
    PREFIX_BYTES,
    RecordBatch,
)
from logstore.segments.rocketmq.columns.record_scan import IndexEntries
from logstore.segments.rocketmq.messages.dispatch_request import DispatchRequest
from logstore.segments.rocketmq.messages.message_batch import MessageBatchDraft, batch_model
from logstore.segments.rocketmq.messages.message_draft import MessageEntry
from logstore.segments.rocketmq.messages.message_layout import FIXED_FIELDS
from logstore.segments.rocketmq.queues.consume_queue_unit import UNIT_BYTES

if TYPE_CHECKING:
    from logstore.segments.rocketmq.messages.host_address import HostAddress
    from logstore.segments.rocketmq.reading.get_message import ReadableCommitLog, ReadableUnits

__all__ = [
    "CompiledRunDraft",
    "draft_batch",
    "encode_messages",
    "is_available",
    "read_chunk",
    "stored_messages",
    "warm",
]

_BATCH_HEADER = struct.Struct(">qiibIhiqqqhii")
_CRC_POSITION, _CRC_START = 17, 21
#: what records take more than messages: never as much as messages take beside body and properties
_MARGIN_BYTES = 64
#: so much of a commit log is read at once for the messages of one queue that stand in it
WINDOW_BYTES = 1024 * 1024
_UNIT = np.dtype([("physical_offset", ">i8"), ("size_bytes", ">i4"), ("tags_code", ">i8")])

_NO_NUMBERS = np.empty(0, np.int64)
_NO_ENTRIES = IndexEntries(_NO_NUMBERS, np.empty(0, np.int32), _NO_NUMBERS, _NO_NUMBERS)


class CompiledRunDraft(MessageBatchDraft):
    """The messages of one batch of plain records, put together in one go when it is stamped."""

    __slots__ = ("_hashed", "_places", "_records", "_table", "_text_bytes", "_units", "has_rests")

    def __init__(
        self,
        topic: str,
        queue_id: int,
        host: HostAddress,
        records: NDArray[np.uint8],
        table: NDArray[np.int64],
        sizes: tuple[int, int, int],
    ) -> None:
        super().__init__(batch_model(topic, queue_id, host))
        count = len(table)
        self.has_rests = False
        self.message_count = count
        self._records, self._table = records, table
        text_bytes, body_bytes, key_bytes_max = sizes
        self._text_bytes = text_bytes
        self.properties_size_bytes = 6 + key_bytes_max
        self.size_bytes = self.model.size_bytes * count + body_bytes + text_bytes
        self._places: NDArray[np.int64] = np.empty(0, np.int64)
        self._units = b""

    @property
    def body_size_bytes(self) -> int:
        """How long the body of a client's batch of these messages were."""
        frames_bytes = self.model.size_bytes * self.message_count
        return self.size_bytes - frames_bytes + 22 * self.message_count

    def stamped(self, base_offset: int) -> MessageEntry:
        """Return all messages as they stand in the commit log from `base_offset` on."""
        model, count = self.model, self.message_count
        head = FIXED_FIELDS[model.sys_flag >> 4 & 3].pack(
            0, model.version.magic, 0, model.queue_id, 0, 0, 0, model.sys_flag,
            0, model.born_host.packed, self.store_timestamp_ms, model.store_host.packed, 0, 0, 0,
        )  # fmt: skip
        target = np.empty(self.size_bytes, np.uint8)
        units = np.empty(UNIT_BYTES * count, np.uint8)
        places = np.empty(count, np.int64)
        write_messages(
            self._records,
            self._table,
            np.frombuffer(head, np.uint8),
            np.frombuffer(model.topic_field, np.uint8),
            (base_offset, self.queue_offset),
            target,
            units,
            places,
        )
        self.physical_offset = base_offset
        self._units, self._places = units.tobytes(), places
        self.physical_offsets = places.tolist()
        return MessageEntry(base_offset, self.size_bytes, target.data)

    def units(self) -> bytes:
        """Return the consume queue units of all messages, once they are stamped."""
        return self._units

    def index_entries(self) -> IndexEntries:
        """Return what the index is to have of these messages, once they are stamped."""
        if not self._text_bytes:
            return _NO_ENTRIES
        hashes = np.empty(self.message_count, np.int64)
        topic_hash = java_hash(f"{self.topic}#")
        count = int(hash_keys(self._records, self._table, topic_hash, hashes))
        places = self._places
        if count < self.message_count:
            has_key = self._table[:, KEY_BYTES] > 0
            hashes, places = hashes[has_key], places[has_key]
        stored_ms = np.full(count, self.store_timestamp_ms, np.int64)
        return IndexEntries(hashes, np.empty(0, np.int32), places, stored_ms)

    def dispatch_requests(self) -> list[DispatchRequest]:
        """Return the requests for all messages, once they are stamped."""
        key_bytes, key_at = self._table[:, KEY_BYTES].tolist(), self._table[:, KEY_BYTES - 1]
        sizes = np.diff(np.append(self._places, self.physical_offset + self.size_bytes)).tolist()
        records = self._records.tobytes() if self._text_bytes else b""
        requests: list[DispatchRequest] = []
        for index, (place, size_bytes, key, start) in enumerate(
            zip(self.physical_offsets, sizes, key_bytes, key_at.tolist(), strict=True)
        ):
            text = b"KEYS\x01" + records[start : start + key] + b"\x02" if key > 0 else b""
            requests.append(
                DispatchRequest(
                    self.topic,
                    self.queue_id,
                    place,
                    size_bytes,
                    0,
                    self.store_timestamp_ms,
                    self.queue_offset + index,
                    self.sys_flag,
                    0,
                    text,
                )
            )
        return requests


def draft_batch(
    topic: str, queue_id: int, batch: RecordBatch, host: HostAddress
) -> CompiledRunDraft | None:
    """Return the messages that the records of a batch become; None if one is not plain."""
    codec = batch.attributes & CODEC_MASK
    if batch.magic != MAGIC or batch.attributes & LOG_APPEND_TIME_BIT:
        return None
    data = memoryview(batch.data)[HEADER_BYTES:]
    if codec:
        try:
            data = memoryview(decompress(Codec(codec), data))
        except (CompressionError, ValueError):
            return None  # who decodes them one by one says what is wrong
    if not 0 < batch.record_count <= len(data):
        return None
    records = np.frombuffer(data, np.uint8)
    records.flags.writeable = False
    table = np.empty((batch.record_count, COLUMNS), np.int64)
    text, values, longest_key = map(int, scan_batch(records, batch.base_timestamp_ms, table))
    if text == NOT_PLAIN:
        return None
    sizes = text, values, longest_key
    return CompiledRunDraft(topic, queue_id, host, records, table, sizes)


def read_chunk(
    queue: ReadableUnits, commit_log: ReadableCommitLog, queue_offset: int, count_max: int
) -> tuple[bytes, int] | None:
    """
    Return the messages from `queue_offset` on as a batch, and how many; None if one is not plain.

    They are read with one call, together with what stands between them: as many as that is worth.
    """
    if not queue.min_queue_offset <= queue_offset < queue.max_queue_offset:
        return None
    units = np.frombuffer(queue.units(queue_offset, count_max), _UNIT)
    places = units["physical_offset"].astype(np.int64)
    ends = places + units["size_bytes"]
    first = int(places[0]) if len(places) else -1
    if first < commit_log.min_physical_offset:
        return None
    file_end = (first // commit_log.file_size_bytes + 1) * commit_log.file_size_bytes
    # In a commit log they stand in order: so far in this file, and so far in the window.
    count = int(np.searchsorted(ends, min(file_end, first + WINDOW_BYTES), "right"))
    if not count or int(ends[count - 1]) > commit_log.max_physical_offset:
        return None
    data = commit_log.read(first, int(ends[count - 1]) - first)
    wanted_bytes = int(units["size_bytes"][:count].sum())
    batch = encode_messages(data, places[:count] - first, wanted_bytes, queue_offset)
    return None if batch is None else (batch, count)


def encode_messages(
    data: bytes, places: NDArray[np.int64], size_bytes: int, base_offset: int
) -> bytes | None:
    """Return the batch of the messages at `places`, of `size_bytes` in all; None if not plain."""
    target = np.empty(HEADER_BYTES + size_bytes + _MARGIN_BYTES, np.uint8)
    times = np.zeros(2, np.int64)
    source = np.frombuffer(data, np.uint8)
    written_bytes = int(write_records(source, places, target[HEADER_BYTES:], times))
    if written_bytes == NOT_PLAIN:
        return None
    count = len(places)
    batch = target[: HEADER_BYTES + written_bytes].data
    _BATCH_HEADER.pack_into(
        batch, 0,
        base_offset, len(batch) - PREFIX_BYTES, 0, MAGIC, 0, 0, count - 1,
        int(times[0]), int(times[1]), -1, -1, -1, count,
    )  # fmt: skip
    batch[_CRC_POSITION:_CRC_START] = crc32c(batch[_CRC_START:]).to_bytes(4, "big")
    return bytes(batch)


def warm() -> None:
    """Have all loops compiled, or loaded as they were compiled before."""
    from logstore.segments.kafka.record import Record, encode_batch
    from logstore.segments.rocketmq.messages.host_address import HostAddress

    batch = encode_batch([Record(0, 1, b"k", b"v", ()), Record(1, 2, None, b"v", ())])
    host = HostAddress.of("127.0.0.1", 0)
    found = RecordBatch(batch, len(batch))
    draft = draft_batch("t", 0, found, host)
    assert draft is not None, "plain records are plain"
    stored_messages([found], 0, ("t", 0, 0), host)
    draft.stamp(0, 0)
    data = bytes(draft.stamped(0).data)
    encode_messages(data, np.zeros(1, np.int64), len(data), 0)
    draft.index_entries()

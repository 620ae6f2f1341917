"""
The short way of batches that hold one plain record: most small produce requests are such.

What the messages of a queue have in common is kept as a *kind*, and the message goes into the
store as a run of its own: nothing about it is asked that a queue does not need. Whatever is not
told here at a glance takes the way of
:mod:`logstore.compat.bridge.kafka_over_rocketmq.record_drafts`, with the same result.
"""

from __future__ import annotations

import struct

from logstore.segments.kafka.record_batch import HEADER_BYTES
from logstore.segments.rocketmq.messages.host_address import HostAddress
from logstore.segments.rocketmq.messages.message_run import MessageKind, MessageRun

_unpack_base_timestamp = struct.Struct(">27xq").unpack_from
#: where a batch says how many records it has, and what it says if it is one
_COUNT, _ONE = slice(HEADER_BYTES - 4, HEADER_BYTES), b"\0\0\0\1"
#: attributes, and no difference of time and offset to the batch's
_NO_DELTAS = b"\0\0\0"
_NULL = 1
#: those whose length takes one byte
_KEY_BYTES_MAX = 63
#: what makes a key several keys, or ends a property
_SPECIAL = b"\x01\x02 "

#: born at, key and value of a record
Single = tuple[int, bytes | None, memoryview]


class SingleRecords:
    """Makes the messages of one queue."""

    def __init__(self, topic: str, queue_id: int) -> None:
        self._topic = topic
        self._queue_id = queue_id
        #: by the length of the key; 0 for messages without
        self._kinds: dict[int, MessageKind] = {}
        self._host: HostAddress | None = None

    def run_of(self, data: memoryview, host: HostAddress) -> MessageRun | None:
        """
        Return the one message that a usual batch of one becomes, born and stored at `host`.

        None if its record is not plain.
        """
        found = single_record(data)
        if found is None:
            return None
        if host is not self._host:
            self._kinds.clear()
            self._host = host
        born_ms, key, value = found
        key = key or b""
        kind = self._kinds.get(len(key)) or self._learn(len(key), host)
        run = MessageRun()
        run.add(kind, value, key, born_ms)
        return run

    def _learn(self, key_bytes: int, host: HostAddress) -> MessageKind:
        """Remember what messages with such keys have in common."""
        kind = MessageKind(
            topic=self._topic,
            queue_id=self._queue_id,
            flag=0,
            sys_flag=0,
            reconsume_times=0,
            text_before=b"KEYS\x01" if key_bytes else b"",
            example=bytes(key_bytes),
            text_behind=b"\x02" if key_bytes else b"",
            born_host=host,
            store_host=host,
        )
        kind.keys = None  # the index has one entry of the record's key: that of a unique key
        self._kinds[key_bytes] = kind
        return kind


def holds_one(data: memoryview) -> bool:
    """Tell whether a batch says that it has one record."""
    return bytes(data[_COUNT]) == _ONE


def single_record(data: memoryview) -> Single | None:
    """
    Return the one record of a usual batch; None if it is not plain.

    Plain is one with a value, without headers, and with a key (or none) that is one key to the
    index: ASCII without spaces.
    """
    try:
        start = HEADER_BYTES + (1 if data[HEADER_BYTES] < 128 else 2)
        if bytes(data[start : start + 3]) != _NO_DELTAS:
            return None
        key: bytes | None = None
        size, start = data[start + 3], start + 4
        if size != _NULL:
            end = start + (size >> 1)
            if size & 1 or not 0 < size >> 1 <= _KEY_BYTES_MAX:
                return None
            key, start = bytes(data[start:end]), end
            if not key.isascii() or key.translate(None, _SPECIAL) != key:
                return None
        size, start = data[start], start + 1
        if size >= 128:
            high, start = data[start], start + 1
            if high >= 128:
                return None
            size = size & 127 | high << 7
        end = start + (size >> 1)
        if size & 1 or not size or end != len(data) - 1 or data[end]:
            return None
    except IndexError:
        return None
    return _unpack_base_timestamp(data)[0], key, data[start:end]

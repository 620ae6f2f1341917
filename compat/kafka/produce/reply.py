"""The answer to a Produce, put together while the request is read."""

from __future__ import annotations

import logging
import struct
from typing import TYPE_CHECKING

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.framing import I16, I32, framed, uvarint
from logstore.compat.kafka.refusals import code_of
from logstore.segments.kafka.append_errors import (
    InvalidRecordError,
    NotOneBatchError,
    UnreadableBatchError,
)
from logstore.segments.kafka.record_batch import NO_TIMESTAMP

if TYPE_CHECKING:
    from logstore.errors import LogStoreError
    from logstore.segments.kafka.partition import KafkaPartition

_log = logging.getLogger(__name__)
#: why a batch is refused without a look at what its log says
_OF_THE_BATCH = (
    ErrorCode.MESSAGE_TOO_LARGE,
    ErrorCode.RECORD_LIST_TOO_LARGE,
    ErrorCode.CORRUPT_MESSAGE,
    ErrorCode.KAFKA_STORAGE_ERROR,
)
_RESULT = struct.Struct(">ihqqq")  # index, error, base offset, append time, log start offset
_SUCCESS_V9 = struct.Struct(">ihqqq3s").pack
_RESULT_V3 = struct.Struct(">ihqq")
#: of a result: no record errors, no message, and no tags
NO_ERRORS_V8 = struct.pack(">ih", 0, -1)
NO_ERRORS_V9 = b"\x01\x00\x00"
_THROTTLE = I32.pack(0)
_LEADERS_SINCE = 10
_LEADER = struct.Struct(">ii")  # node, epoch


class ProduceReply:
    """
    One response of `version`, in request order.

    `worst` is the first error code met, 0 as long as all went well.
    """

    def __init__(self, version: int, topic_count: int, software: str = "") -> None:
        self.version = version
        #: how the client calls itself
        self.software = software
        self.worst = 0
        #: something was written
        self.has_appended = False
        #: where those nodes are that lead what was refused (KIP-951)
        self.endpoints = b""
        self._is_flexible = version >= 9
        self._pieces = [self._count(topic_count)]
        #: by the place of its result among the pieces
        self._appended: dict[int, KafkaPartition] = {}

    @classmethod
    def continued(cls, version: int, head: bytes) -> ProduceReply:
        """Return a reply whose :meth:`head` is known: one topic, open, for one partition."""
        reply = cls(version, 1)
        reply._pieces = [head]
        return reply

    @property
    def result(self) -> bytes:
        """What was added last."""
        return self._pieces[-1]

    def open_topic(self, key: bytes, partition_count: int) -> None:
        """Begin the results of a topic: its UTF-8 name, or its id."""
        self._pieces += [
            key if self.version >= 13 else self._string(key),
            self._count(partition_count),
        ]

    def head(self) -> bytes:
        """Return what stands before the first result, once the first topic is open."""
        return b"".join(self._pieces[:3])

    def close_topic(self) -> None:
        """End the results of a topic."""
        if self._is_flexible:
            self._pieces.append(b"\x00")

    def succeed(self, partition: KafkaPartition, base_offset: int, time_ms: int) -> None:
        """Add the result of an append that went well."""
        self.has_appended = True
        self._appended[len(self._pieces)] = partition
        self._pieces.append(
            self._success(partition.index, base_offset, time_ms, partition.start_offset)
        )

    def succeed_at_once(self, index: int, base_offset: int, log_start: int) -> None:
        """Add the result of an append that waits for no flush, and keeps the producer's time."""
        self.has_appended = True
        self._pieces.append(
            _SUCCESS_V9(index, 0, base_offset, -1, log_start, NO_ERRORS_V9)
            if self._is_flexible
            else self._success(index, base_offset, NO_TIMESTAMP, log_start)
        )

    def _success(self, index: int, base_offset: int, time_ms: int, log_start: int) -> bytes:
        if self._is_flexible:
            return _SUCCESS_V9(index, 0, base_offset, time_ms, log_start, NO_ERRORS_V9)
        if self.version < 5:
            return _RESULT_V3.pack(index, 0, base_offset, time_ms)
        tail = b"" if self.version < 8 else NO_ERRORS_V8
        return _RESULT.pack(index, 0, base_offset, time_ms, log_start) + tail

    def fail(
        self, index: int, code: int, error: BaseException | None = None, log_start: int = -1
    ) -> None:
        """Add the result of a batch that was refused."""
        self.worst = self.worst or code
        self._pieces.append(self._failure(index, code, error, log_start))

    def fail_elsewhere(self, index: int, code: int, leader: int, epoch: int) -> None:
        """Add that another node leads a partition."""
        self.fail(index, code)
        if self.version >= _LEADERS_SINCE:
            tag = b"\x01\x00\x09" + _LEADER.pack(leader, epoch) + b"\x00"
            self._pieces[-1] = self._pieces[-1][:-1] + tag

    def refuse(self, partition: KafkaPartition, index: int, error: LogStoreError | OSError) -> None:
        """Add why a batch was not appended; what is no fault of the producer is logged too."""
        code = code_of(error)
        if code in (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.UNKNOWN_SERVER_ERROR):
            _log.error("%s-%s: %s", partition.topic, index, error)
        has_been_validated = code not in _OF_THE_BATCH and not isinstance(error, NotOneBatchError)
        log_start = partition.start_offset if has_been_validated else -1
        has_message = isinstance(error, UnreadableBatchError) or (
            isinstance(error, InvalidRecordError) and bool(error.record_errors)
        )
        self.fail(index, code, error if has_message else None, log_start)

    def retract(self, partition: KafkaPartition, code: int, error: BaseException) -> None:
        """Turn its successes into errors: what was appended may not be durable."""
        for piece, appended_to in self._appended.items():
            if appended_to is partition:
                self._pieces[piece] = self._failure(partition.index, code, error)

    def frame(self, correlation_id: int) -> bytes:
        """Return the whole frame."""
        end = _THROTTLE
        if self._is_flexible:
            told = self.endpoints
            end += b"\x01\x00" + uvarint(len(told)) + told if told else b"\x00"
        body = b"".join([*self._pieces, end])
        return framed(correlation_id, body, has_tags=self._is_flexible)

    def _failure(
        self, index: int, code: int, error: BaseException | None, log_start: int = -1
    ) -> bytes:
        if self.version < 5:
            return _RESULT_V3.pack(index, code, -1, -1)
        result = _RESULT.pack(index, code, -1, -1, log_start)
        if self.version < 8:
            return result
        end = b"\x00" if self._is_flexible else b""
        bad = error.record_errors if isinstance(error, InvalidRecordError) else ()
        pieces = [result, self._count(len(bad))]
        for record_error in bad:
            message = self._string(record_error.message.encode())
            pieces.append(I32.pack(record_error.batch_index) + message + end)
        pieces += [self._string(None if error is None else str(error).encode()), end]
        return b"".join(pieces)

    def _count(self, count: int) -> bytes:
        return uvarint(count + 1) if self._is_flexible else I32.pack(count)

    def _string(self, value: bytes | None) -> bytes:
        if self._is_flexible:
            return b"\x00" if value is None else uvarint(len(value) + 1) + value
        return b"\xff\xff" if value is None else I16.pack(len(value)) + value

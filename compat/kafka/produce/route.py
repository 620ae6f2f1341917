"""
The short way for produce requests that look like the one before.

A producer sends to one topic partition after another, so everything in front of the partition
number is the same from request to request. What was understood of those bytes once is kept here:
whose partitions they name, how many acknowledgements they want, and the answer around the offset.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import attrs

from logstore.compat.kafka.framing import I32, RESPONSE_PREFIX, read_uvarint
from logstore.compat.kafka.produce.reply import NO_ERRORS_V8, NO_ERRORS_V9, ProduceReply
from logstore.segments.kafka.record_batch import NO_TIMESTAMP

if TYPE_CHECKING:
    from logstore.segments.kafka.partition import KafkaPartition
    from logstore.segments.kafka.usual_batch import UsualBatch

#: of an answer: no tags of the topic's, no throttle time, no tags
_END_V9 = b"\x00" + b"\x00\x00\x00\x00" + b"\x00"
_END_V5 = b"\x00\x00\x00\x00"
#: how many routes are kept for others to share
_ROUTES_MAX = 1000
_unpack_i32 = I32.unpack_from
#: partition number and the two bytes of a usual compact length
_unpack_usual = struct.Struct(">iBB").unpack_from
_NO_TAGS = b"\x00\x00\x00"
_unpack_tags = struct.Struct("3s").unpack_from


@attrs.define(slots=True, eq=False)
class ProduceRoute:
    """
    Where the requests of one connection go that start with `prefix`.

    Only requests with one topic have a route, and acks other than 0; :meth:`succeeded` is for those
    with one partition. When the topic is deleted its `partitions` become empty, which ends the
    route. `head` is what an answer has before its first result, `start` the same with the header's
    tags, `end` what follows the last, `result_end` what ends each that went well, and `tail` both.
    """

    version: int
    prefix: bytes
    partition_count: int
    partitions: dict[int, KafkaPartition]
    head: bytes
    start: bytes
    result_end: bytes
    end: bytes
    tail: bytes
    pack_result: Callable[..., bytes]
    answer: struct.Struct
    answer_bytes: int

    @classmethod
    def learn(
        cls,
        version: int,
        prefix: bytes,
        partition_count: int,
        partitions: dict[int, KafkaPartition],
        head: bytes,
    ) -> ProduceRoute | None:
        """Return the route of requests that start with `prefix`; None for old versions."""
        if version < 5:
            return None
        is_flexible = version >= 9
        result_end = NO_ERRORS_V9 if is_flexible else NO_ERRORS_V8 if version == 8 else b""
        end = _END_V9 if is_flexible else _END_V5
        start, tail = b"\x00" * is_flexible + head, result_end + end
        pack_result = struct.Struct(f">ihqqq{len(result_end)}s").pack
        answer = struct.Struct(f">ii{len(start)}sihqqq{len(tail)}s")
        return cls(
            version, prefix, partition_count, partitions, head, start, result_end, end, tail,
            pack_result, answer, answer.size - 4,
        )  # fmt: skip

    def shared(self, routes: dict[tuple[int, bytes], ProduceRoute]) -> ProduceRoute:
        """Return the one among `routes` that is the same, or itself, which is then among them."""
        key = (self.version, self.prefix)
        known = routes.get(key)
        if known is None or known.partitions is not self.partitions or known.head != self.head:
            if len(routes) >= _ROUTES_MAX:
                routes.clear()
            routes[key] = known = self
        return known

    def start_of(self, data: memoryview, position: int) -> int:
        """Return where the first partition stands; -1 if the request does not go this way."""
        start = position + len(self.prefix)
        return start if bytes(data[position:start]) == self.prefix else -1

    def split(self, data: memoryview, start: int) -> tuple[KafkaPartition, int, memoryview] | None:
        """
        Return (partition, its number, record bytes) of a request whose first stands at `start`.

        None if there are more, or anything is not as it usually is.
        """
        if self.partition_count != 1:
            return None
        index: int
        low: int
        high: int
        index, low, high = _unpack_usual(data, start)
        partition = self.partitions.get(index)
        if partition is None:
            return None
        if self.version < 9:
            end = start + 8 + _unpack_i32(data, start + 4)[0]
            start += 8
            if end != len(data):
                return None
        else:
            if low >= 0x80 > high:  # most batches are between 127 bytes and 16 KiB
                start += 6
                end = start + (high << 7) + low - 0x81
            else:
                size_bytes, start = read_uvarint(data, start + 4)
                end = start + size_bytes - 1
            if end + 3 != len(data) or _unpack_tags(data, end)[0] != _NO_TAGS:
                return None
        return partition, index, data[start:end]

    def reply(self) -> ProduceReply:
        """Return a reply that stands before its first result."""
        return ProduceReply.continued(self.version, self.head)

    def succeeded(
        self, correlation_id: int, index: int, base_offset: int, time_ms: int, log_start: int
    ) -> bytes:
        """Return the whole response frame to an append that went well."""
        return self.answer.pack(
            self.answer_bytes, correlation_id, self.start, index, 0, base_offset, time_ms,
            log_start, self.tail,
        )  # fmt: skip

    def results(self, run: Iterable[UsualBatch], base_offset: int, log_start: int) -> list[bytes]:
        """Return what answers say of batches that one partition has got one behind the other."""
        pack, end = self.pack_result, self.result_end
        found: list[bytes] = []
        for index, _, last_delta, _, _ in run:
            found.append(pack(index, 0, base_offset, NO_TIMESTAMP, log_start, end))
            base_offset += last_delta + 1
        return found

    def answered(self, correlation_id: int, results: Iterable[bytes]) -> bytes:
        """Return the whole response frame that has these results."""
        body = b"".join((self.start, *results, self.end))
        return RESPONSE_PREFIX.pack(len(body) + 4, correlation_id) + body

"""
Plain produce requests of one read of a connection: what they bring a partition is written at once.

A producer has several requests in flight, and on a busy connection they arrive together. Those that
begin as the one before (:mod:`logstore.compat.kafka.produce.route`) and hold nothing but usual
batches are gathered here, and each partition gets all of its batches with one write. Whatever else
comes is the connection's to serve, after what was gathered before it.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING

import attrs

from logstore.compat.kafka.framing import REQUEST_HEADER, MalformedRequestError, Reader
from logstore.compat.kafka.produce.batches import PartitionBatch, read_batches
from logstore.errors import LogStoreError
from logstore.segments.kafka.record_batch import NO_TIMESTAMP

if TYPE_CHECKING:
    from logstore.compat.connection import Chunk
    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.connection import Client
    from logstore.compat.kafka.produce.route import ProduceRoute
    from logstore.segments.kafka.partition import KafkaPartition

_unpack_header = REQUEST_HEADER.unpack_from
#: key, version and correlation id, which stand before what all requests of a client begin with
LEAD_AT = 8
#: larger requests gain nothing from company: their bytes cost more than their number
_FRAME_BYTES_MAX = 32 * 1024
_FLEXIBLE_SINCE = 9
_NO_TAGS = b"\x00\x00"  # of the topic, of the request
_NOTHING = memoryview(b"")


@attrs.define(slots=True, eq=False)
class _Alike:
    """Requests behind each other that name the same partitions in the same order."""

    indexes: tuple[int, ...]
    correlation_ids: list[int] = attrs.field(factory=list[int])
    batches: list[list[PartitionBatch]] = attrs.field(factory=list[list[PartitionBatch]])


class ProduceRun:
    """
    Gathers the produce requests of one read at a time, for all connections of a broker.

    Use :meth:`take` for frames of a client that has a route, and :meth:`finish` before anything
    else is served and at the end of the read.
    """

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        #: requests wait for :meth:`finish`
        self.is_filled = False
        #: requests for one partition each: correlation id, batch
        self._single: list[tuple[int, PartitionBatch]] = []
        #: requests for several each, and the answers to those before them
        self._alike: _Alike | None = None
        self._answers: list[Chunk] = []
        # What holds for all of them: another request's route is learned only after `finish`.
        self._route: ProduceRoute | None = None
        self._now_ms = self._time_max_ms = 0
        self._reader = Reader(_NOTHING, 0, is_flexible=False)
        # a view is compared with it: that the two may be equal type checkers do not believe
        self._end: bytes | memoryview = b""

    def take(self, client: Client, route: ProduceRoute, frame: memoryview) -> bool:
        """Gather a request; False if it is not plain, and nothing was done."""
        lead = client.produce_lead
        start = LEAD_AT + len(lead)
        key, version, correlation_id = _unpack_header(frame)
        if (
            key
            or version != route.version
            or len(frame) > _FRAME_BYTES_MAX
            or bytes(frame[LEAD_AT:start]) != lead
            or not (self.is_filled or self._begin(route))
        ):
            return False
        batches = self._plain_batches(route, frame, start)
        if not batches:
            return False
        if route.partition_count == 1:
            index, _, _, timestamp_ms, _ = batches[0]
            if timestamp_ms > self._time_max_ms or index not in route.partitions:
                return False
            self._single.append((correlation_id, batches[0]))
        elif not self._join(route, correlation_id, batches):
            return False
        self.is_filled = True
        return True

    def _begin(self, route: ProduceRoute) -> bool:
        """Look up what the route's topic wants; tell whether it wants nothing special."""
        broker = self._broker
        if broker.flusher.due:
            return False
        for partition in route.partitions.values():
            rules = partition.config
            if not rules.has_usual_batches or rules.max_message_bytes < _FRAME_BYTES_MAX:
                return False
            self._now_ms = broker.host.clock.wall_ms()
            self._time_max_ms = self._now_ms + rules.message_timestamp_after_max_ms
            self._route = route
            is_flexible = route.version >= _FLEXIBLE_SINCE
            self._reader = Reader(_NOTHING, 0, is_flexible=is_flexible)
            self._end = _NO_TAGS if is_flexible else b""
            return True
        return False  # the topic is gone

    def _plain_batches(
        self, route: ProduceRoute, frame: memoryview, start: int
    ) -> list[PartitionBatch] | None:
        """Return the batches of a whole request if all are usual."""
        reader = self._reader
        reader.data, reader.position = frame, start
        try:
            # What arrives together is looked into once.
            batches, attributes = read_batches(
                reader, route.partition_count, is_known=self.is_filled
            )
        except (MalformedRequestError, struct.error, IndexError, ValueError):
            return None  # it is for others to say what is wrong
        return None if attributes or frame[reader.position :] != self._end else batches

    def _join(
        self, route: ProduceRoute, correlation_id: int, batches: list[PartitionBatch]
    ) -> bool:
        """Put a request to those before it, if alike; False if it is not plain after all."""
        indexes, _, _, timestamps_ms, _ = zip(*batches, strict=True)
        if max(timestamps_ms) > self._time_max_ms:
            return False
        alike = self._alike
        if alike is None or alike.indexes != indexes:
            named = set(indexes)
            if len(named) < len(indexes) or not route.partitions.keys() >= named:
                return False
            if alike is not None:  # at once: what is held for long leaves the processor's cache
                self._answers += self._append_alike(route, alike)
            self._alike = alike = _Alike(indexes)
        alike.correlation_ids.append(correlation_id)
        alike.batches.append(batches)
        return True

    def finish(self) -> list[Chunk]:
        """Append what was gathered; return the answers, in the order of the requests."""
        route, single, alike, answers = self._route, self._single, self._alike, self._answers
        assert route is not None, "finished without a request"
        self._single, self._alike, self._answers = [], None, []
        self._route, self.is_filled = None, False
        self._reader.data = _NOTHING  # nobody else holds the connection's memory any longer
        if single:
            answers.append(b"".join(self._append_single(route, single)))
        if alike is not None:
            answers += self._append_alike(route, alike)
        return answers

    def _append_single(
        self, route: ProduceRoute, requests: list[tuple[int, PartitionBatch]]
    ) -> list[bytes]:
        answers = [b""] * len(requests)
        by_partition: dict[int, list[int]] = {}
        for number, (_, batch) in enumerate(requests):
            by_partition.setdefault(batch[0], []).append(number)
        for index, numbers in by_partition.items():
            partition = route.partitions[index]
            start = self._append(partition, [requests[number][1] for number in numbers])
            log_start = partition.start_offset
            for number in numbers:
                correlation_id, batch = requests[number]
                if start >= 0:
                    answers[number] = route.succeeded(
                        correlation_id, index, start, NO_TIMESTAMP, log_start
                    )
                    start += batch[2] + 1
                else:
                    result = self._append_by_itself(route, partition, batch)
                    answers[number] = route.answered(correlation_id, (result,))
        return answers

    def _append_alike(self, route: ProduceRoute, alike: _Alike) -> list[Chunk]:
        """Append partition by partition, and answer request by request."""
        if len(alike.batches) == 1:
            results = self._append_each(route, alike.batches[0])
            return [route.answered(alike.correlation_ids[0], results)]
        columns = [self._append_column(route, run) for run in zip(*alike.batches, strict=True)]
        rows = zip(alike.correlation_ids, zip(*columns, strict=True), strict=True)
        return [route.answered(correlation_id, row) for correlation_id, row in rows]

    def _append_each(self, route: ProduceRoute, batches: list[PartitionBatch]) -> list[bytes]:
        """Append what one request brings; return what is told of each batch."""
        partitions, now_ms = route.partitions, self._now_ms
        pack, end = route.pack_result, route.result_end
        results: list[bytes] = []
        for batch in batches:
            index = batch[0]
            partition = partitions[index]
            try:
                start = partition.append_at_once(batch, now_ms)
            except (LogStoreError, OSError):
                start = -1
            if start >= 0:
                result = pack(index, 0, start, NO_TIMESTAMP, partition.start_offset, end)
            else:
                result = self._append_by_itself(route, partition, batch)
            results.append(result)
        return results

    def _append_column(self, route: ProduceRoute, run: tuple[PartitionBatch, ...]) -> list[bytes]:
        """Append what several requests bring to one partition; return what is told of each."""
        partition = route.partitions[run[0][0]]
        start = self._append(partition, run)
        if start < 0:
            return [self._append_by_itself(route, partition, batch) for batch in run]
        return route.results(run, start, partition.start_offset)

    def _append(self, partition: KafkaPartition, run: Sequence[PartitionBatch]) -> int:
        """Append to one partition; return the first base offset, -1 if each must go by itself."""
        try:
            if len(run) > 1:
                return partition.append_run_at_once(run)
            return partition.append_at_once(run[0], self._now_ms)
        except (LogStoreError, OSError):
            return -1  # the disk may have room for some of them, and says what is wrong once more

    def _append_by_itself(
        self, route: ProduceRoute, partition: KafkaPartition, batch: PartitionBatch
    ) -> bytes:
        index, records, *_ = batch
        reply = route.reply()
        try:
            done = partition.append_produced(records, self._now_ms)
        except (LogStoreError, OSError) as error:
            reply.refuse(partition, index, error)
        else:
            reply.succeed(partition, done.base_offset, done.log_append_time_ms)
        return reply.result

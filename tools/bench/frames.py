"""
Requests that are encoded once and sent many times, and the replies to them read by position.

The client shares two cores with the broker it measures, so that what the client does not do counts:
a Produce reply without an error has the same length and the same layout every time, and a look at
a few byte columns of the receive buffer replaces decoding.
"""

from __future__ import annotations

import random
import struct
import time
from collections.abc import Iterator, Sequence
from typing import Any

import attrs
from kafka.protocol.consumer import FetchRequest
from kafka.protocol.producer import ProduceRequest, ProduceResponse
from kafka.record.default_records import DefaultRecordBatchBuilder

from logstore.errors import LogStoreError

CLIENT_ID = "logstore-bench"
PRODUCE_VERSION = 9
FETCH_VERSION = 12
FETCH_BYTES_MAX = 64 * 1024 * 1024

_WORDS = """
    account amount balance batch broker cluster commit country currency customer device error
    event failed header index invoice latency level message metric offset order partition
    payment price producer region request response retry sensor service session shard status
    stock store stream success tenant timestamp topic total trace user value version warehouse
"""


class BenchError(LogStoreError):
    """A target did not do what the benchmark asked of it."""


def text_values(size_bytes: int, count: int) -> list[bytes]:
    """
    Return `count` different values that look like small JSON events and compress about as those do.

    The same values every time: results of two runs are comparable.
    """
    words = _WORDS.split()
    chance = random.Random(size_bytes)
    values: list[bytes] = []
    for _ in range(count):
        text = ""
        while len(text) < size_bytes:
            text += f'{{"{chance.choice(words)}":"{chance.choice(words)}",'
            text += f'"{chance.choice(words)}":{chance.randrange(1_000_000)}}}'
        values.append(text[:size_bytes].encode())
    return values


def record_batch(values: Sequence[bytes]) -> bytes:
    """Return an uncompressed record batch (magic 2) without producer id, stamped with now."""
    make: Any = DefaultRecordBatchBuilder  # untyped
    builder = make(
        magic=2,
        compression_type=0,
        is_transactional=False,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        batch_size=1 << 30,
    )
    now_ms = time.time_ns() // 1_000_000
    for delta, value in enumerate(values):
        builder.append(delta, now_ms, None, value, [])
    return bytes(builder.build())


def encoded(request: Any, correlation_id: int = 1) -> bytes:
    """Return a request message of the protocol library as a whole frame, its size in front."""
    request.with_header(correlation_id=correlation_id, client_id=CLIENT_ID)
    return bytes(request.encode(header=True, framed=True))


def decoded(message: Any, version: int, frame: bytes) -> Any:
    """Return a response of that message class; `frame` starts at its header."""
    return message.decode(frame, version=version, header=True)


def produce_frame(topic: str, partitions: Sequence[int], batch: bytes, acks: int = 1) -> bytes:
    """Return a whole Produce request, its size in front, with that batch for each partition."""
    topic_data = ProduceRequest.TopicProduceData
    request = ProduceRequest(
        transactional_id=None,
        acks=acks,
        timeout_ms=30_000,
        topic_data=[
            topic_data(
                name=topic,
                partition_data=[
                    topic_data.PartitionProduceData(index=index, records=batch)
                    for index in partitions
                ],
            )
        ],
        version=PRODUCE_VERSION,
    )
    return encoded(request)


def fetch_frame(
    topic: str, partition: int, offset: int, *, bytes_max: int, wait_ms: int = 500
) -> bytes:
    """Return a whole Fetch request, outside of any session, that asks for at least one byte."""
    fetch_topic = FetchRequest.FetchTopic
    request = FetchRequest(
        replica_id=-1,
        max_wait_ms=wait_ms,
        min_bytes=1,
        max_bytes=bytes_max,
        isolation_level=0,
        session_id=0,
        session_epoch=-1,
        topics=[
            fetch_topic(
                topic=topic,
                partitions=[
                    fetch_topic.FetchPartition(
                        partition=partition,
                        current_leader_epoch=-1,
                        fetch_offset=offset,
                        last_fetched_epoch=-1,
                        log_start_offset=-1,
                        partition_max_bytes=bytes_max,
                    )
                ],
            )
        ],
        forgotten_topics_data=[],
        rack_id="",
        version=FETCH_VERSION,
    )
    return encoded(request)


@attrs.frozen
class EqualReplies:
    """
    How long a whole reply without errors is, its size in front, and where its error codes stand.

    The client shares two cores with the broker it measures, so that what the client does not do
    counts: a few byte columns of the receive buffer are looked at, and nothing is decoded.
    """

    size_bytes: int
    error_positions: tuple[int, ...]

    def check(self, replies: bytes | bytearray, end: int) -> int:
        """
        Return how many whole replies stand before `end`, all of them without an error.

        Raises :class:`BenchError` with the code of the first error.
        """
        step = self.size_bytes
        count = end // step
        stop = count * step
        is_good = replies[3:stop:step].count((step - 4) & 0xFF) == count
        for position in self.error_positions:
            if not is_good:
                break
            is_good = not any(replies[position:stop:step]) and not any(
                replies[position + 1 : stop : step]
            )
        if not is_good:
            raise BenchError(self._first_failure(bytes(replies[:end])))
        return count

    def _first_failure(self, replies: bytes) -> str:
        """Say what the first reply that is not as it should be has to tell."""
        for frame in _frames(replies):
            failure = self.failure(frame)
            if failure:
                return failure
        return "a reply has a length that a reply without an error does not have"

    def failure(self, frame: bytes) -> str | None:
        """Return what a reply, without its size, tells of an error, None if there is none."""
        for position in self.error_positions:
            (code,) = struct.unpack_from(">h", frame, position - 4)
            if code:
                return f"a reply has error {code} at position {position}"
        return None


def _frames(replies: bytes) -> Iterator[bytes]:
    position = 0
    while position + 4 <= len(replies):
        (size_bytes,) = struct.unpack_from(">i", replies, position)
        yield replies[position + 4 : position + 4 + size_bytes]
        position += 4 + size_bytes


@attrs.frozen
class ProduceReplies(EqualReplies):
    """
    Where things are in a Produce v9 reply without errors about so many partitions of a topic.

    ::

        size 4 | correlation id 4 | tags 1 | topics 1 | name 1 + n | partitions 1
        then, per partition, 33 bytes:
          index 4 | error 2 | base offset 8 | append time 8 | log start 8 | record errors 1
          | error message 1 | tags 1
        topic's tags 1 | throttle time 4 | tags 1
    """

    @classmethod
    def about(cls, topic: str, partition_count: int) -> ProduceReplies:
        """Return the layout; names and counts must fit one length byte (up to 126)."""
        assert len(topic) < 127
        assert partition_count < 127
        first = 4 + 4 + 1 + 1 + 1 + len(topic) + 1
        errors = tuple(first + 33 * at + 4 for at in range(partition_count))
        return cls(first + 33 * partition_count + 6, errors)

    def failure(self, frame: bytes) -> str | None:
        """Return which partition was refused, and why."""
        for topic in decoded(ProduceResponse, PRODUCE_VERSION, frame).responses:
            for partition in topic.partition_responses:
                if partition.error_code:
                    return (
                        f"Produce to {topic.name}-{partition.index} was answered with error "
                        f"{partition.error_code} ({partition.error_message})"
                    )
        return None


@attrs.frozen
class FetchReply:
    """
    Where things are at the start of a Fetch v12 reply about one partition of a topic.

    ::

        size 4 | correlation id 4 | tags 1 | throttle 4 | error 2 | session 4 | topics 1
        | name 1 + n | partitions 1 | index 4 | error 2 | high watermark 8 | ...
    """

    prefix_bytes: int

    @classmethod
    def about(cls, topic: str) -> FetchReply:
        """Return the layout; the name must fit one length byte."""
        assert len(topic) < 127
        return cls(4 + 4 + 1 + 4 + 2 + 4 + 1 + 1 + len(topic) + 1 + 4 + 2)

    def check(self, prefix: bytes | bytearray) -> int:
        """
        Return how many bytes follow the prefix of this reply.

        Raises :class:`BenchError` where it tells of an error.
        """
        (size_bytes,) = struct.unpack_from(">i", prefix, 0)
        (error,) = struct.unpack_from(">h", prefix, 13)
        (partition_error,) = struct.unpack_from(">h", prefix, self.prefix_bytes - 2)
        if error or partition_error:
            raise BenchError(f"Fetch was answered with error {error or partition_error}")
        return int(size_bytes) + 4 - self.prefix_bytes

"""Frames made once, and replies read by position, against the protocol library's own reading."""

from __future__ import annotations

from typing import Any

import pytest
from kafka.protocol.consumer import FetchRequest
from kafka.protocol.producer import ProduceRequest
from kafka.record.memory_records import MemoryRecords

from logstore.tools.bench.frames import (
    FETCH_VERSION,
    PRODUCE_VERSION,
    BenchError,
    FetchReply,
    ProduceReplies,
    fetch_frame,
    produce_frame,
    record_batch,
    text_values,
)
from logstore.tools.bench.numbered_frames import numbered_frames
from tests.tools.bench_replies import fetch_reply, produce_reply


def decoded_request(message: Any, version: int, frame: bytes) -> Any:
    """Return the request that a server would read from this frame."""
    assert int.from_bytes(frame[:4], "big") == len(frame) - 4
    return message.decode(frame[4:], version=version, header=True)


def test_values_are_different_and_the_same_every_time() -> None:
    """Two runs produce the same bytes, and no two values of one are alike."""
    values = text_values(100, 500)
    assert values == text_values(100, 500)
    assert {len(value) for value in values} == {100}
    assert len(set(values)) == 500


def test_a_batch_holds_its_values_in_order_under_a_good_checksum() -> None:
    """What another library reads from the batch is what went in."""
    values = text_values(50, 20)
    make: Any = MemoryRecords
    (batch,) = list_of_batches(make(record_batch(values)))
    assert batch.validate_crc()
    assert [record.value for record in batch] == values


def list_of_batches(records: Any) -> list[Any]:
    """Return all batches of a record set."""
    batches: list[Any] = []
    while records.has_next():
        batches.append(records.next_batch())
    return batches


def test_numbered_frames_go_on_from_one_to_the_next() -> None:
    """Each is a whole request of that producer, under a good checksum, with the next number."""
    batch = record_batch([b"x" * 100])
    for offset, frame in enumerate(
        numbered_frames("t", batch, producer_id=2**40, first=7, count=3)
    ):
        request = decoded_request(ProduceRequest, PRODUCE_VERSION, frame)
        (topic,) = request.topic_data
        (partition,) = topic.partition_data
        make: Any = MemoryRecords
        (found,) = list_of_batches(make(partition.records))
        assert found.validate_crc()
        numbers = (found.producer_id, found.producer_epoch, found.base_sequence)
        assert numbers == (2**40, 0, 7 + offset)
        assert [record.value for record in found] == [b"x" * 100]


def test_a_produce_frame_says_what_it_was_made_of() -> None:
    """A server that decodes the frame finds topic, partitions, acks and the batch."""
    batch = record_batch([b"x"])
    request = decoded_request(
        ProduceRequest, PRODUCE_VERSION, produce_frame("bench", [3, 5], batch, acks=-1)
    )
    (topic,) = request.topic_data
    assert (request.acks, topic.name) == (-1, "bench")
    assert [(one.index, bytes(one.records)) for one in topic.partition_data] == [
        (3, batch),
        (5, batch),
    ]


def test_a_fetch_frame_says_what_it_was_made_of() -> None:
    """A server that decodes the frame finds position, limits and that no session is wanted."""
    frame = fetch_frame("bench", 2, 1 << 33, bytes_max=777, wait_ms=50)
    request = decoded_request(FetchRequest, FETCH_VERSION, frame)
    (topic,) = request.topics
    (partition,) = topic.partitions
    assert (topic.topic, partition.partition, partition.fetch_offset) == ("bench", 2, 1 << 33)
    assert (request.max_bytes, partition.partition_max_bytes) == (777, 777)
    assert (request.min_bytes, request.max_wait_ms, request.session_epoch) == (1, 50, -1)


@pytest.mark.parametrize("partition_count", [1, 2, 100])
def test_good_replies_are_counted_in_any_number(partition_count: int) -> None:
    """Whole replies are counted; the start of the next one is left for later."""
    replies = ProduceReplies.about("bench", partition_count)
    one = produce_reply("bench", [0] * partition_count, base_offset=0x0102030405060708)
    assert len(one) == replies.size_bytes
    for count in (0, 1, 3):
        for rest in (0, 1, 5, len(one) - 1):
            received = bytearray(one * count + one[:rest] + b"old bytes" * 100)
            assert replies.check(received, count * len(one) + rest) == count


@pytest.mark.parametrize("error", [3, 0x0100])
def test_an_error_in_any_partition_is_found(error: int) -> None:
    """Both bytes of the code count, in the first and in the last partition of the last reply."""
    good = produce_reply("bench", [0, 0, 0])
    for errors in ([error, 0, 0], [0, 0, error]):
        received = good + produce_reply("bench", errors)
        with pytest.raises(BenchError, match=f"error {error} "):
            ProduceReplies.about("bench", 3).check(received, len(received))


def test_a_reply_of_another_length_is_no_good_one() -> None:
    """A reply about fewer partitions than were asked for is not taken for a good one."""
    received = produce_reply("bench", [0]) * 5
    with pytest.raises(BenchError, match="length"):
        ProduceReplies.about("bench", 2).check(received, len(received))


def test_a_fetch_reply_is_skipped_by_its_length() -> None:
    """Behind the prefix come as many bytes as the size in front says."""
    reply = FetchReply.about("bench")
    frame = fetch_reply("bench", 0, 0, b"r" * 1000)
    assert reply.check(frame[: reply.prefix_bytes]) == len(frame) - reply.prefix_bytes


@pytest.mark.parametrize(("error", "partition_error"), [(70, 0), (0, 1)])
def test_a_fetch_error_is_found(error: int, partition_error: int) -> None:
    """An error of the request as of the partition ends the benchmark with its code."""
    frame = fetch_reply("bench", error, partition_error, b"")
    reply = FetchReply.about("bench")
    with pytest.raises(BenchError, match=f"error {error or partition_error}$"):
        reply.check(frame[: reply.prefix_bytes])

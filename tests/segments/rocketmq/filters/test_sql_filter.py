"""Filters of consumers: bit maps of the consume queue extension, messages, retry topics."""

from __future__ import annotations

import json
from typing import Any

import attrs
import pytest

from logstore.segments.rocketmq.filters.bloom_filter import BloomFilter, BloomFilterMismatchError
from logstore.segments.rocketmq.filters.record_properties import properties_of_record
from logstore.segments.rocketmq.filters.sql_filter import (
    FilterBitMaps,
    RetrySqlFilter,
    SqlFilter,
    group_of_retry_topic,
)
from logstore.segments.rocketmq.messages.corrupt_message import CorruptMessageError
from logstore.segments.rocketmq.messages.dispatch_request import (
    DispatchRequest,
    read_dispatch_request,
)
from logstore.segments.rocketmq.queues.consume_queue_ext import ConsumeQueueExtUnit
from logstore.segments.rocketmq.queues.consume_queue_unit import UNIT
from logstore.segments.rocketmq.reading.get_message import get_message
from logstore.segments.rocketmq.reading.message_filter import TagFilter, tags_of_expression
from logstore.segments.rocketmq.tables.consumer_filters import ConsumerFilter
from tests.segments.rocketmq.filters.test_sql_filters import ANSWERS
from tests.segments.rocketmq.golden_case import GoldenCase, golden_cases
from tests.segments.rocketmq.memory_store import MemoryCommitLog, MemoryQueue

BLOOM = BloomFilter.sized()


@attrs.frozen
class Filters:
    """Filters by topic and group."""

    filters: tuple[ConsumerFilter, ...]

    def get(self, topic: str, group: str) -> ConsumerFilter | None:
        """Return one."""
        found = [one for one in self.of_topic(topic) if one.consumer_group == group]
        return found[0] if found else None

    def of_topic(self, topic: str) -> list[ConsumerFilter]:
        """Return all of a topic."""
        return [one for one in self.filters if one.topic == topic]


def filter_of(
    expression: str, group: str = "g", topic: str = "t", born_ms: int = 0
) -> ConsumerFilter:
    """Return the filter of a group, with its bits."""
    return ConsumerFilter(
        topic=topic,
        consumer_group=group,
        expression=expression,
        expression_type="SQL92",
        born_time_ms=born_ms,
        client_version=1,
        bloom_bit_count=BLOOM.bit_count,
        bloom_positions=BLOOM.bit_positions(f"{group}#{topic}"),
    )


def golden_filters(case: GoldenCase) -> Filters:
    """Return the filters of a golden consumerFilter.json, by the order of their groups."""
    content: Any = json.loads((case.store / "config/consumerFilter.json").read_text())
    return Filters(
        tuple(
            ConsumerFilter(
                topic=one["topic"],
                consumer_group=one["consumerGroup"],
                expression=one["expression"],
                expression_type=one["expressionType"],
                born_time_ms=one["bornTime"],
                client_version=one["clientVersion"],
                dead_time_ms=one["deadTime"],
                bloom_bit_count=one["bloomFilterData"]["bitNum"],
                bloom_positions=tuple(one["bloomFilterData"]["bitPos"]),
            )
            for topic in content["filterDataByTopic"].values()
            for one in topic["groupFilterData"].values()
        )
    )


GOLDEN = pytest.mark.parametrize("case", golden_cases("filters"), ids=lambda one: one.id)


@GOLDEN
def test_bits_of_groups(case: GoldenCase) -> None:
    """The bits of a group are those that a real broker keeps for it."""
    filters = golden_filters(case).filters
    assert len(filters) == 3
    for one in filters:
        assert one.bloom_bit_count == BLOOM.bit_count
        assert one.bloom_positions == BLOOM.bit_positions(f"{one.consumer_group}#{one.topic}")


def topic_of(case: GoldenCase) -> str:
    """Return the only topic that the case has."""
    (topic,) = {one["topic"] for one in case.expected}
    assert isinstance(topic, str)
    return topic


@GOLDEN
def test_bit_maps(case: GoldenCase) -> None:
    """Every bit map in a real broker's consume queue extension is computed again, bit by bit."""
    bit_maps = FilterBitMaps(golden_filters(case), BLOOM)
    commit_log = MemoryCommitLog.of_store(case.store, 1 << 40)
    seen = 0
    for queue_id in (0, 1):
        queue = MemoryQueue.of_store(case.store, topic_of(case), queue_id)
        for physical_offset, size, address in UNIT.iter_unpack(queue.data):
            unit = queue.ext_unit(address)
            request = read_dispatch_request(commit_log.read(physical_offset, size))
            assert isinstance(request, DispatchRequest)
            assert unit is not None
            assert unit.filter_bit_map == bit_maps.bit_map_of(request)
            assert unit.store_timestamp_ms == request.store_timestamp_ms
            assert unit.tags_code == request.tags_code
            seen += 1
    assert seen == len(case.expected)


@GOLDEN
@pytest.mark.parametrize("number", [0, 1, 2])
def test_consumed(case: GoldenCase, number: int) -> None:
    """
    A group gets what it got from the real broker.

    The recorded consumers were stopped early: up to the last message that one got, it got exactly
    those that its filter lets through.
    """
    lines = (case.folder / f"consumed-{number}.jsonl").read_text().splitlines()
    consumed = [one for line in lines if line for one in json.loads(line)["answer"]]
    got = {(one["queueId"], one["queueOffset"]) for one in consumed}
    last = {
        queue_id: max((one[1] for one in got if one[0] == queue_id), default=-1)
        for queue_id in (0, 1)
    }
    consumer_filter = golden_filters(case).get(topic_of(case), f"golden_sql_{number}")
    commit_log = MemoryCommitLog.of_store(case.store, 1 << 40)
    for bloom in (None, BLOOM):
        message_filter = SqlFilter(consumer_filter, bloom)
        found: set[tuple[int, int]] = set()
        for queue_id in (0, 1):
            queue = MemoryQueue.of_store(case.store, topic_of(case), queue_id)
            for begin in range(queue.max_queue_offset):
                result = get_message(queue, commit_log, begin, 1, message_filter=message_filter)
                if result.count:
                    found.add((queue_id, int.from_bytes(result.read()[20:28], "big")))
        assert got <= found
        assert {one for one in found if one[1] <= last[one[0]]} == got
        expected = {"a > 5": 25, "a BETWEEN 2 AND 4 AND b = 'x'": 7}
        assert consumer_filter is not None
        assert len(found) == expected.get(consumer_filter.expression, len(found))
        assert found


def test_bit_map_saves_reading() -> None:
    """A message whose bit map lacks a bit of the group is passed over without reading it."""
    message_filter = SqlFilter(filter_of("a = 1", born_ms=100), BLOOM)
    set_bits = BLOOM.bit_map([BLOOM.bit_positions("g#t")])
    none = BLOOM.bit_map([])
    assert message_filter.matches_unit(0, ConsumeQueueExtUnit(0, 101, set_bits))
    assert not message_filter.matches_unit(0, ConsumeQueueExtUnit(0, 101, none))


def test_bit_map_that_says_nothing() -> None:
    """Without a bit map of this filter, or one from before the group came, messages are read."""
    message_filter = SqlFilter(filter_of("a = 1", born_ms=100), BLOOM)
    none = BLOOM.bit_map([])
    assert message_filter.matches_unit(0, None)
    assert message_filter.matches_unit(0, ConsumeQueueExtUnit(0, 100, none))
    assert message_filter.matches_unit(0, ConsumeQueueExtUnit(0, 101, None))
    assert message_filter.matches_unit(0, ConsumeQueueExtUnit(0, 101, none + b"\0"))
    assert SqlFilter(filter_of("a = 1")).matches_unit(0, ConsumeQueueExtUnit(0, 101, none))
    other = attrs.evolve(filter_of("a = 1"), bloom_bit_count=64)
    assert SqlFilter(other, BLOOM).matches_unit(0, ConsumeQueueExtUnit(0, 101, none))


def test_unknown_filter() -> None:
    """A group without a filter, or with one that is no expression, gets everything unread."""
    for one in (None, filter_of(""), filter_of("a >")):
        message_filter = SqlFilter(one, BLOOM)
        assert not message_filter.reads_messages
        assert message_filter.matches_unit(None, ConsumeQueueExtUnit(0, 1, bytes(14)))
        assert message_filter.matches_message(b"whatever")
        assert message_filter.matches_properties(b"a\x011\x02")


def stored(properties: bytes, topic: bytes = b"t", body: bytes = b"hello") -> bytes:
    """Return a stored message of version 1 with these properties."""
    head = bytes.fromhex("daa320a7") + bytes(36 - 8) + bytes(84 - 36)
    tail = len(body).to_bytes(4, "big") + body + bytes([len(topic)]) + topic
    rest = head + tail + len(properties).to_bytes(2, "big") + properties
    return (len(rest) + 4).to_bytes(4, "big") + rest


def test_retry_topic() -> None:
    """In a retry topic a message is held against the group's filter on its original topic."""
    filters = Filters((filter_of("a = 1", "g", "orders"),))
    message_filter = RetrySqlFilter("%RETRY%g", None, filters)
    assert message_filter.reads_messages
    assert message_filter.matches_message(stored(b"RETRY_TOPIC\x01orders\x02a\x011\x02"))
    assert not message_filter.matches_message(stored(b"RETRY_TOPIC\x01orders\x02a\x012\x02"))
    assert message_filter.matches_message(stored(b"RETRY_TOPIC\x01others\x02a\x012\x02"))
    assert message_filter.matches_message(stored(b"a\x012\x02"))
    assert message_filter.matches_properties(b"RETRY_TOPIC\x01orders\x02a\x011\x02")
    assert not message_filter.matches_properties(b"RETRY_TOPIC\x01orders\x02a\x012\x02")
    plain = RetrySqlFilter("orders", filters.filters[0], filters)
    assert not plain.matches_message(stored(b"a\x012\x02"))
    assert not plain.matches_properties(b"a\x012\x02")


@pytest.mark.parametrize(
    ("topic", "group"), [("%RETRY%g", "g"), ("%RETRY%g+orders", "g"), ("orders", None)]
)
def test_group_of_retry_topic(topic: str, group: str | None) -> None:
    """The group of a retry topic stands behind its prefix."""
    assert group_of_retry_topic(topic) == group


def test_properties_of_record() -> None:
    """Properties are found behind body and topic; what is cut short is refused, and no match."""
    record = stored(b"a\x01b\x02", topic=b"some-topic")
    assert properties_of_record(record) == {"a": "b"}
    message_filter = SqlFilter(filter_of("a = 'b'"))
    assert message_filter.matches_message(record)
    for end in range(len(record)):
        with pytest.raises(CorruptMessageError):
            properties_of_record(record[:end])
        assert not message_filter.matches_message(record[:end])


def test_bloom_as_java() -> None:
    """The bits of a text are those of Guava's murmur3_128, which Java printed."""
    rows = [json.loads(line) for line in ANSWERS.read_text(encoding="utf-8").split("\n") if line]
    texts = [row for row in rows if "text" in row]
    assert len(texts) == 30
    assert [list(BLOOM.bit_positions(row["text"])) for row in texts] == [
        row["bits"] for row in texts
    ]


@pytest.mark.parametrize(
    ("error_percent", "group_count", "hash_count", "bit_count"),
    [(20, 32, 3, 112), (20, 64, 3, 216), (10, 128, 4, 616), (1, 1, 7, 16), (99, 1, 1, 8)],
)
def test_bloom_size(error_percent: int, group_count: int, hash_count: int, bit_count: int) -> None:
    """A filter has as many bits and hashes as Java computes for its error and number of groups."""
    bloom = BloomFilter.sized(error_percent, group_count)
    assert (bloom.hash_count, bloom.bit_count) == (hash_count, bit_count)


def test_bloom_refusals() -> None:
    """Impossible sizes and bit maps of another filter are refused."""
    for error_percent, group_count in [(0, 1), (100, 1), (20, 0)]:
        with pytest.raises(ValueError, match=r"percent|groups"):
            BloomFilter.sized(error_percent, group_count)
    with pytest.raises(BloomFilterMismatchError, match="13 bytes"):
        BLOOM.is_hit((1, 2, 3), bytes(13))
    assert not BLOOM.is_valid(112, (1, 2))
    assert not BLOOM.is_valid(112, (1, 2, 112))
    assert not BLOOM.is_valid(112, None)


@pytest.mark.parametrize(
    ("expression", "tags"),
    [
        ("*", None),
        ("", None),
        (None, None),
        ("TagA || TagB", ["TagA", "TagB"]),
        ("a||", ["a"]),
        ("||a", ["a"]),
        (" || ", []),
    ],
)
def test_tags_of_expression(expression: str | None, tags: list[str] | None) -> None:
    """Tags stand between bars; a star or nothing takes all."""
    assert tags_of_expression(expression) == tags


def test_no_tags() -> None:
    """Nothing but bars is an error, as in Java."""
    with pytest.raises(ValueError, match="subString split error"):
        tags_of_expression("||||")


def test_tag_filter() -> None:
    """Tags are compared by Java's hash; what is not known passes."""
    message_filter = TagFilter.of_expression("TagA || TagB")
    assert message_filter.tags_codes == frozenset({2598919, 2598920})
    assert message_filter.matches_unit(2598919, None)
    assert not message_filter.matches_unit(0, None)
    assert message_filter.matches_unit(None, None)
    assert TagFilter.of_expression("*").matches_unit(5, None)
    assert message_filter.matches_message(b"")

"""
What a consumer's SQL expression lets through: first by bloom filter, then by the properties.

Source: ``ExpressionMessageFilter``, ``ExpressionForRetryMessageFilter``,
``CommitLogDispatcherCalcBitMap`` of the broker.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from logstore.segments.rocketmq.filters.record_properties import properties_of_record
from logstore.segments.rocketmq.filters.sql_matcher import SqlMatcher, matcher_of, matches_sql
from logstore.segments.rocketmq.filters.sql_tokens import SqlSyntaxError
from logstore.segments.rocketmq.messages.corrupt_message import CorruptMessageError
from logstore.segments.rocketmq.messages.properties import RETRY_TOPIC, parse_properties

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from logstore.segments.rocketmq.filters.bloom_filter import BloomFilter
    from logstore.segments.rocketmq.messages.dispatch_request import DispatchRequest
    from logstore.segments.rocketmq.reading.message_filter import ExtUnit
    from logstore.segments.rocketmq.tables.consumer_filters import ConsumerFilter

__all__ = ["FilterBitMaps", "RegisteredFilters", "RetrySqlFilter", "SqlFilter", "matches_sql"]

_RETRY_PREFIX = "%RETRY%"


class RegisteredFilters(Protocol):
    """The filters of all consumers (``ConsumerFilterManager``)."""

    def get(self, topic: str, group: str) -> ConsumerFilter | None:
        """Return the filter of a group on a topic."""
        ...

    def of_topic(self, topic: str) -> Iterable[ConsumerFilter]:
        """Return all filters on a topic."""
        ...


def _compiled(consumer_filter: ConsumerFilter | None) -> SqlMatcher | None:
    """Return what asks the expression of a filter, None where there is none to go by."""
    if consumer_filter is None or not consumer_filter.expression:
        return None
    try:
        return matcher_of(consumer_filter.expression)
    except SqlSyntaxError:
        return None  # an expression that an older table holds; Java lets all through then


class SqlFilter:
    """
    The filter of one group on one topic; one that is not known lets everything through.

    The bit map of a message counts only if the group had registered its filter before the message
    was stored, and if both were made with the broker's bloom filter of now.
    """

    __slots__ = ("_bit_positions", "_bloom", "_born_time_ms", "_matcher")

    tags_codes: frozenset[int] | None = None

    def __init__(
        self, consumer_filter: ConsumerFilter | None, bloom: BloomFilter | None = None
    ) -> None:
        self._matcher = _compiled(consumer_filter)
        self._bloom: BloomFilter | None = None
        self._bit_positions: tuple[int, ...] = ()
        self._born_time_ms = 0
        if self._matcher is None or consumer_filter is None or bloom is None:
            return
        self._born_time_ms = consumer_filter.born_time_ms
        if bloom.is_valid(consumer_filter.bloom_bit_count, consumer_filter.bloom_positions):
            self._bloom = bloom
            self._bit_positions = consumer_filter.bloom_positions

    @property
    def reads_messages(self) -> bool:
        """Messages are read unless there is nothing to compare them with."""
        return self._matcher is not None

    def matches_unit(self, tags_code: int | None, ext: ExtUnit | None) -> bool:  # noqa: ARG002
        """Tell False only where the message's bit map says that it was not matched."""
        bloom = self._bloom
        if bloom is None or ext is None or ext.store_timestamp_ms <= self._born_time_ms:
            return True
        bit_map = ext.filter_bit_map
        if not bit_map or len(bit_map) != bloom.size_bytes:
            return True
        return bloom.is_hit(self._bit_positions, bit_map)

    def matches_message(self, record: Buffer) -> bool:
        """Evaluate the expression over the message's properties; what fails does not match."""
        if self._matcher is None:
            return True
        data = bytes(record)
        return any(True for _ in self._matcher.matching_messages(data, (0,), (len(data),)))

    def matching_messages(
        self, data: bytes, starts: Sequence[int], ends: Sequence[int]
    ) -> Iterator[int]:
        """Evaluate the expression over the properties of many; what fails does not match."""
        if self._matcher is None:
            return iter(range(len(starts)))
        return self._matcher.matching_messages(data, starts, ends)

    def matches_properties(self, properties_text: bytes) -> bool:
        """Evaluate the expression over properties; what fails does not match."""
        return self._matcher is None or self._matcher.matches(properties_text)


class RetrySqlFilter(SqlFilter):
    """
    The filter of a retry topic: that of the topic which a message comes from.

    (``filterSupportRetry``)
    """

    __slots__ = ("_filters", "_group")

    def __init__(
        self,
        topic: str,
        consumer_filter: ConsumerFilter | None,
        filters: RegisteredFilters,
        bloom: BloomFilter | None = None,
    ) -> None:
        """`topic` is the subscription's; what is no retry topic is filtered as ever."""
        super().__init__(consumer_filter, bloom)
        self._filters = filters
        self._group = group_of_retry_topic(topic)

    @property
    def reads_messages(self) -> bool:
        """Messages of a retry topic must be read to know where they come from."""
        return self._group is not None or self._matcher is not None

    def matches_message(self, record: Buffer) -> bool:
        """Evaluate the expression of the group on the message's original topic."""
        if self._group is None:
            return super().matches_message(record)
        try:
            return self._matches_original(self._group, properties_of_record(record))
        except CorruptMessageError:
            return False

    def matching_messages(
        self, data: bytes, starts: Sequence[int], ends: Sequence[int]
    ) -> Iterator[int]:
        """Evaluate, for each message, the expression of the group on its original topic."""
        if self._group is None:
            return super().matching_messages(data, starts, ends)
        base = starts[0]
        return (
            index
            for index, (start, end) in enumerate(zip(starts, ends, strict=True))
            if self.matches_message(data[start - base : end - base])
        )

    def matches_properties(self, properties_text: bytes) -> bool:
        """Evaluate the expression of the group on the original topic over properties."""
        if self._group is None:
            return super().matches_properties(properties_text)
        return self._matches_original(self._group, parse_properties(properties_text))

    def _matches_original(self, group: str, properties: Mapping[str, str]) -> bool:
        original_topic = properties.get(RETRY_TOPIC, "")
        matcher = _compiled(self._filters.get(original_topic, group))
        return matcher is None or matches_sql(matcher.expression, properties)


def group_of_retry_topic(topic: str) -> str | None:
    """Return the group whose retry topic this is, None if it is none (``KeyBuilder``)."""
    if not topic.startswith(_RETRY_PREFIX):
        return None
    # Since 5.x pop consumers have a retry topic for each topic: ``%RETRY%group+topic``.
    return topic.removeprefix(_RETRY_PREFIX).partition("+")[0]


class FilterBitMaps:
    """
    Computes bit maps while messages are dispatched (``CommitLogDispatcherCalcBitMap``).

    Only where ``enableCalcFilterBitMap`` is on.
    """

    __slots__ = ("_bloom", "_filters")

    def __init__(self, filters: RegisteredFilters, bloom: BloomFilter) -> None:
        self._filters = filters
        self._bloom = bloom

    def bit_map_of(self, request: DispatchRequest) -> bytes | None:
        """Return the bits of all groups whose expression the message matches; None without any."""
        filters = list(self._filters.of_topic(request.topic))
        if not filters:
            return None
        properties = request.properties
        matching: list[tuple[int, ...]] = []
        for one in filters:
            matcher = _compiled(one)
            if matcher is None or not matches_sql(matcher.expression, properties):
                continue
            if not self._bloom.is_valid(one.bloom_bit_count, one.bloom_positions):
                return None  # Java gives up on the whole message
            matching.append(one.bloom_positions)
        return self._bloom.bit_map(matching)

"""What may be put into a store, and how a put that may not is ended."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

import attrs

from logstore.segments.rocketmq.messages.properties import encode_properties
from logstore.segments.rocketmq.putting.multi_dispatch import MultiDispatch
from logstore.segments.rocketmq.putting.put_result import PutMessageStatus


@attrs.frozen
class RefusedPutError(Exception):
    """Ends a put; the put path turns it into a result, so that no caller ever sees it."""

    status: PutMessageStatus
    reason: str


class TimerGate(Protocol):
    """The time wheel, as far as putting a message with a delivery time needs it."""

    @property
    def has_limit(self) -> bool:
        """Tell whether there are times for which it may take no more messages."""
        ...

    def is_full_at(self, deliver_ms: int) -> bool:
        """Tell whether the wheel takes no more messages for that time (``isReject``)."""
        ...


@attrs.frozen
class PutRules:
    """
    The settings that decide what may be put, by Java's defaults.

    `is_batch_topic` tells whether a topic's queues are batch consume queues (``queue.type``).
    """

    message_size_bytes_max: int = 4 * 1024 * 1024
    os_page_cache_busy_timeout_ms: int = 1000
    is_slave: bool = False
    has_property_crc: bool = False
    delay_level_max: int = 18
    #: 4.x takes messages with TIMER properties for plain ones
    knows_timers: bool = True
    has_timer_wheel: bool = True
    timer_max_delay_s: int = 3 * 24 * 3600
    timer_precision_ms: int = 1000
    multi_dispatch: MultiDispatch = attrs.field(factory=MultiDispatch)
    is_batch_topic: Callable[[str], bool | None] = attrs.field(default=lambda _: False)

    def encoded(self, properties: Mapping[str, str], capacity: int | None = None) -> bytes:
        """
        Return properties as the followed release writes them: the order of Java's map.

        `capacity` is that of the map, without it that of one that a client's text was read into.
        """
        return encode_properties(
            properties,
            capacity=capacity or self.multi_dispatch.hash_map_capacity,
            ends_with_separator=self.multi_dispatch.ends_with_separator,
        )

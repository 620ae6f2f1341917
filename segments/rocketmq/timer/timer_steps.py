"""What a timer store hands out: messages to be put, and files to be synced."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import attrs

from logstore.segments.rocketmq.messages.properties import REAL_QUEUE_ID, REAL_TOPIC
from logstore.segments.rocketmq.putting.put_redirection import TIMER_TOPIC
from logstore.segments.rocketmq.timer.timer_rules import properties_when_due

if TYPE_CHECKING:
    from typing import Self

    from logstore.host import Host
    from logstore.segmented_log import FlushTask
    from logstore.segments.rocketmq.messages.message import Message
    from logstore.segments.rocketmq.tables.json_table import TableWrite
    from logstore.segments.rocketmq.timer.timer_checkpoint import TimerCheckpoint
    from logstore.segments.rocketmq.timer.timer_wheel import TimerWheel

__all__ = ["EnqueueStep", "TimerDelivery", "TimerSync"]


@attrs.frozen
class TimerDelivery:
    """A message to be put now: into its real topic, or with `is_roll` into the timer topic."""

    message: Message
    topic: str
    queue_id: int
    properties: dict[str, str]
    is_roll: bool

    @classmethod
    def of(cls, message: Message, enqueue_ms: int, now_ms: int, *, is_roll: bool) -> Self:
        """Return what a message of the timer topic, in the wheel since `enqueue_ms`, becomes."""
        properties = message.properties
        topic, queue_id = message.topic, message.queue_id
        if not is_roll:
            topic = properties.get(REAL_TOPIC, TIMER_TOPIC)
            text = properties.get(REAL_QUEUE_ID, "0")
            queue_id = int(text) if text.isascii() and text.isdigit() else 0
        converted = properties_when_due(properties, enqueue_ms, now_ms, is_roll=is_roll)
        return cls(message, topic, queue_id, converted, is_roll)


@attrs.frozen
class EnqueueStep:
    """Messages up to `next_queue_offset` are in the wheel, but those that are late already."""

    next_queue_offset: int
    late: list[TimerDelivery]


@attrs.frozen
class TimerSync:
    """
    A flush of everything on its way to the disk: log, wheel, checkpoint, metrics, in this order.

    A wheel that is behind the log is made again from it, so the log goes first; the checkpoint
    says what to look at and goes behind both.
    """

    host: Host
    log: FlushTask | None
    wheel: TimerWheel
    slots: Mapping[int, bytes]
    checkpoint_path: str
    checkpoint: TimerCheckpoint
    metrics: TableWrite | None

    def run(self) -> None:
        """Write and sync, in any thread; raises OSError."""
        if self.log is not None:
            self.log.run()
        self.wheel.write(self.slots)
        self.checkpoint.store(self.host, self.checkpoint_path)
        if self.metrics is not None:
            self.metrics.run()

"""What a timer store hands out: messages to be put, and files to be synced."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from logstore.host import Host
    from logstore.segmented_log import FlushTask
    from logstore.segments.rocketmq.messages.message import Message
    from logstore.segments.rocketmq.tables.json_table import TableWrite
    from logstore.segments.rocketmq.timer.timer_checkpoint import TimerCheckpoint
    from logstore.segments.rocketmq.timer.timer_wheel import TimerWheel

__all__ = ["DequeueStep", "EnqueueStep", "TimerDelivery", "TimerSync"]


@attrs.frozen
class TimerDelivery:
    """A message to be put now: into its real topic, or with `is_roll` into the timer topic."""

    message: Message
    topic: str
    queue_id: int
    properties: dict[str, str]
    is_roll: bool


@attrs.frozen
class EnqueueStep:
    """Messages up to `next_queue_offset` are in the wheel, but those that are late already."""

    next_queue_offset: int
    late: list[TimerDelivery]


@attrs.frozen
class DequeueStep:
    """
    All that is due at one tick, which may be millions of messages.

    `timer_offsets` are those of the slot's units, newest first; the messages that `taken_back`
    names by their keys are not to be delivered. `changes` are what the metrics of a topic change
    by when the step is committed; they grow as the step's deliveries are gone through.
    """

    read_time_ms: int
    timer_offsets: array[int]
    taken_back: frozenset[str]
    changes: list[tuple[str, int]] = attrs.field(eq=False)


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

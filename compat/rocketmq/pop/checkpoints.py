"""
Checkpoints and acknowledgements as the revive topic has them (PopCheckPoint, AckMsg, BatchAckMsg).

A checkpoint says which messages of a queue were popped together and until when; it is read again a
second before that time. Whatever was acknowledged by then is not to come back.
"""

from __future__ import annotations

from typing import Any

import attrs
import orjson

from logstore.compat.rocketmq.wire.bodies import json_body
from logstore.segments.rocketmq.tables.json_fields import (
    JsonTypeError,
    as_bool,
    as_int,
    as_int32,
    as_list,
    as_object,
    as_text,
)

CHECKPOINT_TAG, ACK_TAG, BATCH_ACK_TAG = "ck", "ack", "bAck"


class CheckpointError(ValueError):
    """A message of the revive topic is not what its tag says."""


@attrs.define
class Checkpoint:
    """
    Messages of one queue that were popped together.

    `differences` are their queue offsets, counted from `start_offset`; `acked` is a bit for each.
    """

    topic: str
    group: str
    queue_id: int
    start_offset: int
    pop_time_ms: int
    invisible_ms: int
    broker_name: str
    differences: list[int]
    acked: int = 0
    #: it was put off without having failed: that is not counted
    is_suspended: bool = False
    #: where it stands in the revive topic, once it was read there
    revive_offset: int = 0

    @property
    def revive_time_ms(self) -> int:
        """When what is not acknowledged becomes visible."""
        return self.pop_time_ms + self.invisible_ms

    @property
    def key(self) -> tuple[str, str, int, int, int]:
        """What acknowledgements name it by."""
        return self.topic, self.group, self.queue_id, self.start_offset, self.pop_time_ms

    @property
    def unique_key(self) -> str:
        """The unique key of its message."""
        return (
            f"{self.topic}@{self.queue_id}@{self.start_offset}@{self.group}@{self.pop_time_ms}@"
            f"{self.broker_name}@{CHECKPOINT_TAG}"
        )

    def ack(self, queue_offset: int) -> None:
        """Take note that a message need not come back; others are passed over."""
        difference = queue_offset - self.start_offset
        if difference in self.differences:
            self.acked |= 1 << self.differences.index(difference)

    def open_offsets(self) -> list[int]:
        """Return the queue offsets of the messages that nobody acknowledged."""
        return [
            self.start_offset + difference
            for place, difference in enumerate(self.differences)
            if not self.acked >> place & 1
        ]

    def encoded(self) -> bytes:
        """Return the body of its message."""
        return json_body(
            {
                "bm": self.acked,
                "bn": self.broker_name,
                "c": self.group,
                "d": self.differences,
                "it": self.invisible_ms,
                "n": len(self.differences),
                "pt": self.pop_time_ms,
                "q": self.queue_id,
                "reviveTime": self.revive_time_ms,
                "ro": self.revive_offset,
                "so": self.start_offset,
                "sp": self.is_suspended,
                "t": self.topic,
            }
        )


@attrs.frozen
class Ack:
    """Messages of one checkpoint that were consumed."""

    topic: str
    group: str
    queue_id: int
    start_offset: int
    pop_time_ms: int
    broker_name: str
    queue_offsets: list[int]
    is_batch: bool = False

    @property
    def key(self) -> tuple[str, str, int, int, int]:
        """That of the checkpoint."""
        return self.topic, self.group, self.queue_id, self.start_offset, self.pop_time_ms

    @property
    def tag(self) -> str:
        """What kind of message it becomes."""
        return BATCH_ACK_TAG if self.is_batch else ACK_TAG

    @property
    def unique_key(self) -> str:
        """The unique key of its message; real brokers give batches that of a single one, too."""
        return (
            f"{self.topic}@{self.queue_id}@{self._one_offset}@{self.group}@{self.pop_time_ms}@"
            f"{self.broker_name}@{ACK_TAG}"
        )

    @property
    def _one_offset(self) -> int:
        return -1 if self.is_batch else self.queue_offsets[0]

    def encoded(self) -> bytes:
        """Return the body of its message."""
        fields: dict[str, Any] = {
            "ao": self._one_offset,
            "bn": self.broker_name,
            "c": self.group,
            "pt": self.pop_time_ms,
            "q": self.queue_id,
            "so": self.start_offset,
            "t": self.topic,
        }
        if self.is_batch:
            fields["aol"] = self.queue_offsets
        return json_body(fields)


def decode_checkpoint(body: bytes) -> Checkpoint:
    """
    Read the body of a checkpoint's message.

    Raises:
        CheckpointError: it is none.

    """
    fields = _fields(body)
    try:
        count = as_int32(_found(fields, "n", default=0))
        listed = [as_int32(one) for one in as_list(fields.get("d"))]
        return Checkpoint(
            topic=as_text(_found(fields, "t", "topic")),
            group=as_text(_found(fields, "c", "cId", "cid")),
            queue_id=as_int32(_found(fields, "q", "queueId", default=0)),
            start_offset=as_int(_found(fields, "so", "startOffset", default=0)),
            pop_time_ms=as_int(_found(fields, "pt", "popTime", default=0)),
            invisible_ms=as_int(_found(fields, "it", "invisibleTime", default=0)),
            broker_name=as_text(_found(fields, "bn", "brokerName", default="")),
            differences=listed[:count] or list(range(min(max(count, 0), 127))),
            acked=as_int32(_found(fields, "bm", default=0)) & 0xFFFFFFFF,
            is_suspended=as_bool(_found(fields, "sp", default=False)),
        )
    except JsonTypeError as error:
        raise CheckpointError(str(error)) from error


def decode_ack(body: bytes, *, is_batch: bool) -> Ack:
    """
    Read the body of an acknowledgement's message.

    Raises:
        CheckpointError: it is none.

    """
    fields = _fields(body)
    try:
        offsets = (
            [as_int(one) for one in as_list(_found(fields, "aol", "ackOffsetList"))]
            if is_batch
            else [as_int(_found(fields, "ao", "ackOffset"))]
        )
        return Ack(
            topic=as_text(_found(fields, "t", "topic")),
            group=as_text(_found(fields, "c", "consumerGroup")),
            queue_id=as_int32(_found(fields, "q", "queueId", default=0)),
            start_offset=as_int(_found(fields, "so", "startOffset", default=0)),
            pop_time_ms=as_int(_found(fields, "pt", "popTime", default=0)),
            broker_name=as_text(_found(fields, "bn", "brokerName", default="")),
            queue_offsets=offsets,
            is_batch=is_batch,
        )
    except JsonTypeError as error:
        raise CheckpointError(str(error)) from error


def _fields(body: bytes) -> dict[Any, Any]:
    try:
        return as_object(orjson.loads(body))
    except ValueError as error:  # JsonTypeError is one, too
        raise CheckpointError(str(error)) from error


def _found(fields: dict[Any, Any], *names: str, default: Any = None) -> Any:
    """Return the first of these fields that is there; releases call them differently."""
    for name in names:
        if fields.get(name) is not None:
            return fields[name]
    if default is None:
        raise CheckpointError(f"{names[0]} is missing")
    return default

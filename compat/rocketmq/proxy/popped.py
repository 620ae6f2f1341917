"""The answer to a pop: its messages, and the handle of each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import attrs

from logstore.compat.rocketmq.pop.handles import handle_text
from logstore.compat.rocketmq.pop.retry_topics import NORMAL
from logstore.segments.rocketmq.messages.message import Message, decode_message
from logstore.segments.rocketmq.messages.properties import POP_CHECK

if TYPE_CHECKING:
    from logstore.compat.rocketmq.wire.remoting import Command


@attrs.frozen
class Popped:
    """A message, what acknowledges it, and how often it was delivered before."""

    message: Message
    handle: str
    delivered_count: int
    #: of a message of a lite topic: that, and its place there
    lite_topic: str = ""
    lite_offset: int | None = None


def popped_messages(answer: Command, topic: str, broker_name: str) -> list[Popped]:
    """Return what a broker has found for a pop from `topic`."""
    fields = answer.ext_fields
    starts = _by_queue(fields.get("startOffsetInfo", ""))
    counts = _by_queue(fields.get("orderCountInfo", ""))
    found: list[Popped] = []
    for message in decoded(answer.body):
        handle = message.properties.get(POP_CHECK)
        queue_id, queue_offset = message.queue_id, message.queue_offset
        count = message.reconsume_times
        if handle is None:
            key = (NORMAL, str(queue_id))
            handle = handle_text(
                int(starts[key]), int(fields["popTime"]), int(fields["invisibleTime"]),
                int(fields["reviveQid"]), topic, broker_name, queue_id, queue_offset,
            )  # fmt: skip
            of_message = counts.get((NORMAL, f"qo{queue_id}%{queue_offset}"), "0")
            count = int(counts.get(key, "0")) or int(of_message) or count
        found.append(Popped(message, f"{handle} {message.physical_offset}", count))
    return found


def _by_queue(text: str) -> Mapping[tuple[str, str], str]:
    """Return what a field says of each kind of topic and queue."""
    items = [item.split(" ") for item in text.split(";") if item]
    return {(kind, queue): value for kind, queue, value in items}


def decoded(body: memoryview) -> Iterator[Message]:
    """Yield the messages of an answer."""
    position = 0
    while position < len(body):
        message = decode_message(body, position)
        position += message.size_bytes
        yield message

"""
Handles of popped messages: what a client shows to acknowledge one (ExtraInfoUtil, ``POP_CK``).

Eight words with a space between: start offset of the checkpoint, when it was popped, for how long
it is invisible, queue of the revive topic, kind of the topic, broker, queue, queue offset. A client
makes one of each message out of what the answer to a pop says of its queues.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs

from logstore.compat.rocketmq.pop.retry_topics import kind_of
from logstore.compat.rocketmq.wire.codes import ResponseCode
from logstore.compat.rocketmq.wire.fields import read_text
from logstore.compat.rocketmq.wire.refusals import RefusedError

#: in place of a queue of the revive topic: the message was popped in order
ORDER_REVIVE_QUEUE = 999
_SEPARATOR = " "
_INT_MAX = 0x7FFFFFFF
_LONG_MAX = 0x7FFFFFFFFFFFFFFF
#: how errors call the words
_NAMES = (
    "getCkQueueOffset",
    "getPopTime",
    "getInvisibleTime",
    "getReviveQid",
    "getRetry",
    "getBrokerName",
)


class HandleError(ValueError):
    """A handle is not of the form that brokers write."""


@attrs.frozen
class Handle:
    """What a client says about the pop that a message came with."""

    start_offset: int
    pop_time_ms: int
    invisible_ms: int
    revive_queue_id: int
    broker_name: str

    @property
    def is_ordered(self) -> bool:
        """Tell whether the message was popped in order."""
        return self.revive_queue_id == ORDER_REVIVE_QUEUE


def parse_handle(text: str) -> Handle:
    """
    Read a handle; words behind the sixth do not matter to a broker.

    Raises:
        HandleError: a word is missing, or no number.

    """
    words = text.rstrip(_SEPARATOR).split(_SEPARATOR)
    if len(words) < len(_NAMES):
        raise HandleError(f"{_NAMES[len(words)]} fail, extraInfoStrs length {len(words)}")
    return Handle(
        _whole(words[0], _LONG_MAX),
        _whole(words[1], _LONG_MAX),
        _whole(words[2], _LONG_MAX),
        _whole(words[3], _INT_MAX),
        words[5],
    )


def handle_in(fields: Mapping[str, str]) -> Handle:
    """
    Return the handle that a client shows.

    Raises:
        RefusedError: it cannot be read.

    """
    try:
        return parse_handle(read_text(fields, "extraInfo"))
    except HandleError as error:
        remark = f"java.lang.IllegalArgumentException: {error}"
        raise RefusedError(ResponseCode.SYSTEM_ERROR, remark) from error


def handle_text(
    start_offset: int,
    pop_time_ms: int,
    invisible_ms: int,
    revive_queue_id: int,
    topic: str,
    broker_name: str,
    queue_id: int,
    queue_offset: int,
) -> str:
    """Return the handle of one message."""
    return (
        f"{start_offset} {pop_time_ms} {invisible_ms} {revive_queue_id} {kind_of(topic)} "
        f"{broker_name} {queue_id} {queue_offset}"
    )


@attrs.define
class PoppedQueues:
    """What the answer to a pop says of the queues that messages came from."""

    starts: list[str] = attrs.field(factory=list[str])
    offsets: list[str] = attrs.field(factory=list[str])
    counts: list[str] = attrs.field(factory=list[str])

    def add(
        self, topic: str, queue_id: int, start_offset: int, queue_offsets: Iterable[int]
    ) -> None:
        """Say where a queue was read from, and which messages were found."""
        kind = kind_of(topic)
        self.starts.append(f"{kind} {queue_id} {start_offset}")
        self.offsets.append(f"{kind} {queue_id} {','.join(map(str, queue_offsets))}")

    def count_message(self, topic: str, queue_id: int, queue_offset: int, times: int) -> None:
        """Say how often a message was popped in order before."""
        self.counts.append(f"{kind_of(topic)} qo{queue_id}%{queue_offset} {times}")

    def count_queue(self, topic: str, queue_id: int, times: int) -> None:
        """Say how often all of a queue's messages were popped before, for older clients."""
        self.counts.append(f"{kind_of(topic)} {queue_id} {times}")

    def fields(self, *, is_ordered: bool) -> dict[str, str]:
        """Return the fields of the answer."""
        fields = {
            "startOffsetInfo": ";".join(self.starts),
            "msgOffsetInfo": ";".join(self.offsets),
        }
        if is_ordered:
            fields["orderCountInfo"] = ";".join(self.counts)
        return fields


def _whole(word: str, value_max: int) -> int:
    digits = word[1:] if word[:1] in ("-", "+") else word
    number = int(word) if digits.isascii() and digits.isdigit() and len(word) <= 20 else None
    if number is None or not -value_max - 1 <= number <= value_max:
        raise HandleError(f'For input string: "{word}"')
    return number

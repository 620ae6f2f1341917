"""
One message in many queues: the light message queues that a message names.

A message with ``INNER_MULTI_DISPATCH`` = ``queue,queue,...`` gets a unit in each of these queues
beside its own. The put path writes their queue offsets into the message
(``INNER_MULTI_QUEUE_OFFSET``), so that every dispatch, the ones after a crash included, says the
same.

Source: ``LmqDispatch`` and ``MultiDispatchUtils`` (5.x), ``MultiDispatch`` (4.9.8).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import attrs

from logstore.segments.rocketmq.messages.properties import (
    HASH_MAP_CAPACITY_5,
    INNER_MULTI_DISPATCH,
    INNER_MULTI_QUEUE_OFFSET,
    WAIT,
    encode_properties,
)
from logstore.segments.rocketmq.queues.queue_offsets import QueueOffsets, is_lmq

if TYPE_CHECKING:
    from logstore.segments.rocketmq.messages.message import Message

_SEPARATOR = ","
#: topics whose messages are never handed on to other queues (``MixAll.topicAllowsLMQ``)
_EXCLUDED_PREFIXES = ("%RETRY%", "%DLQ%", "rmq_sys_")
_SCHEDULE_TOPIC = "SCHEDULE_TOPIC_XXXX"


@attrs.frozen
class MultiDispatch:
    """
    What the settings ``enableMultiDispatch``, ``enableLmq`` and ``maxLmqConsumeQueueNum`` say.

    `ends_with_separator`, `hash_map_capacity`, `keeps_wait` (whether ``WAIT`` stays in the
    properties of such a message) and `is_for_lmq_alone` (other queues get no offset, and so no
    unit) are those of the release that is followed in writing them.
    """

    is_enabled: bool = False
    has_lmq: bool = False
    lmq_count_max: int = 20000
    has_lmq_quota: bool = False
    hash_map_capacity: int = HASH_MAP_CAPACITY_5
    ends_with_separator: bool = True
    keeps_wait: bool = True
    is_for_lmq_alone: bool = True

    def queue_names(self, topic: str, properties: Mapping[str, str]) -> list[str]:
        """Return the queues that a message names beside its own; none where that is off."""
        if not self.is_enabled:
            return []
        names = properties.get(INNER_MULTI_DISPATCH, "")
        if not names.strip() or topic == _SCHEDULE_TOPIC or topic.startswith(_EXCLUDED_PREFIXES):
            return []
        return _split(names)

    def queue_id_of(self, name: str, queue_id: int) -> int:
        """Return the queue id in the named queue of a message whose own is `queue_id`."""
        return 0 if self.has_lmq and is_lmq(name) else queue_id

    def _has_offset(self, name: str) -> bool:
        return not self.is_for_lmq_alone or (self.has_lmq and is_lmq(name))

    def exceeds_quota(self, names: list[str], offsets: QueueOffsets) -> bool:
        """Tell whether a name would make one light message queue too many."""
        if not (self.has_lmq_quota and self.has_lmq and self.is_enabled):
            return False
        if offsets.lmq_count < self.lmq_count_max:
            return False
        return any(is_lmq(name) and (name, 0) not in offsets for name in names)

    def text_with_queue_offsets(
        self,
        properties: dict[str, str],
        names: list[str],
        queue_id: int,
        offsets: QueueOffsets,
    ) -> bytes:
        """Return the text of properties with the queue offsets that the message gets."""
        properties[INNER_MULTI_QUEUE_OFFSET] = _SEPARATOR.join(
            str(offsets.next_of(name, self.queue_id_of(name, queue_id)))
            if self._has_offset(name)
            else ""
            for name in names
        )
        if not self.keeps_wait:
            properties.pop(WAIT, None)
        return encode_properties(
            properties,
            capacity=self.hash_map_capacity,
            ends_with_separator=self.ends_with_separator,
        )

    def advance(self, names: list[str], queue_id: int, offsets: QueueOffsets) -> None:
        """Take note that the message stands in the commit log."""
        for name in filter(self._has_offset, names):
            own = self.queue_id_of(name, queue_id)
            offsets.advance(name, own, offsets.next_of(name, own) + 1)

    def units(
        self, topic: str, queue_id: int, properties: Mapping[str, str]
    ) -> Iterator[tuple[str, int, int]]:
        """
        Yield (queue name, queue id, queue offset) of the units that a stored message makes.

        Names with a ``/`` are passed over, and so is a message whose lists do not match.
        """
        names = self.queue_names(topic, properties)
        offsets = _split(properties.get(INNER_MULTI_QUEUE_OFFSET, ""))
        if not names or len(names) != len(offsets):
            return
        for name, text in zip(names, offsets, strict=True):
            if "/" not in name and text.isascii() and text.isdigit():
                yield name, self.queue_id_of(name, queue_id), int(text)


def queue_offset_in(queue_name: str, message: Message) -> int:
    """Return where a message stands in a queue, which need not be that of its own topic."""
    if message.topic != queue_name:
        names = message.properties.get(INNER_MULTI_DISPATCH, "").split(_SEPARATOR)
        offsets = message.properties.get(INNER_MULTI_QUEUE_OFFSET, "").split(_SEPARATOR)
        for name, text in zip(names, offsets, strict=False):
            if name == queue_name and text.isascii() and text.isdigit():
                return int(text)
    return message.queue_offset


def _split(text: str) -> list[str]:
    """Split as Java does: what is empty at the end goes."""
    parts = text.split(_SEPARATOR)
    while parts and not parts[-1]:
        parts.pop()
    return parts

"""
How many bytes the messages of each queue take in the commit log, which all queues share.

A queue's units tell the size of each message. What was counted of a file of units is kept, so that
only what came since is looked at; what retention removes leaves with its file.
"""

from __future__ import annotations

import sys
from array import array
from typing import TYPE_CHECKING

import attrs

from logstore.segments.rocketmq.queues.consume_queue import ConsumeQueue

if TYPE_CHECKING:
    from logstore.segments.rocketmq.store import RocketMQStore

#: a unit in numbers of four bytes; the third one is the size
_UNIT_NUMBERS = 5
_SIZE_AT = 2


@attrs.define
class _Counted:
    """The units of one file from `start` to `end`."""

    start: int
    end: int
    size_bytes: int = 0


class QueueSizes:
    """The sizes of all queues of one store."""

    def __init__(self, store: RocketMQStore) -> None:
        self._store = store
        self._counted: dict[tuple[str, int], dict[int, _Counted]] = {}

    def size_bytes(self, topic: str, queue_id: int) -> int:
        """Return the bytes of all messages that a queue has."""
        queue = self._store.consume_queues.get(topic, queue_id)
        if not isinstance(queue, ConsumeQueue):
            return 0
        before = self._counted.get((topic, queue_id), {})
        counted: dict[int, _Counted] = {}
        position, end = queue.min_queue_offset, queue.max_queue_offset
        while position < end:
            number = position // queue.units_per_file
            following = min((number + 1) * queue.units_per_file, end)
            found = before.get(number)
            if found is None or found.start != position or found.end > following:
                found = _Counted(position, position)
            _count_on(queue, found, following)
            counted[number] = found
            position = following
        self._counted[topic, queue_id] = counted
        return sum(one.size_bytes for one in counted.values())

    def forget(self, topic: str) -> None:
        """Forget a topic that is gone."""
        for key in [key for key in self._counted if key[0] == topic]:
            del self._counted[key]


def _count_on(queue: ConsumeQueue, counted: _Counted, end: int) -> None:
    """Count the units up to `end`, all of one file."""
    while counted.end < end:
        numbers = array("I")
        numbers.frombytes(queue.units(counted.end, end - counted.end))
        if not numbers:
            return  # removed just now
        sizes = numbers[_SIZE_AT::_UNIT_NUMBERS]
        if sys.byteorder == "little":
            sizes.byteswap()
        counted.size_bytes += sum(sizes)
        counted.end += len(sizes)

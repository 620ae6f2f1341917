"""What a pull from a stretch of a logic queue is told: where to go on, and from where to where."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from logstore.compat.rocketmq.wire.codes import ResponseCode
from logstore.segments.rocketmq.tables.queue_mappings import find_item, item_after

if TYPE_CHECKING:
    from collections.abc import Mapping

    from logstore.segments.rocketmq.tables.queue_mappings import Items, LogicQueueMappingItem

_RETRY, _MOVED = ResponseCode.PULL_RETRY_IMMEDIATELY, ResponseCode.PULL_OFFSET_MOVED


@attrs.frozen
class PulledPlaces:
    """Places as a broker found them in a queue, and as they are told."""

    code: int
    next_begin_offset: int
    min_offset: int
    max_offset: int
    item: LogicQueueMappingItem

    def fields(self, known: Mapping[str, str]) -> dict[str, str]:
        """Return the fields of an answer with these places."""
        return {
            **known,
            "nextBeginOffset": str(self.next_begin_offset),
            "minOffset": str(self.min_offset),
            "maxOffset": str(self.max_offset),
            "offsetDelta": str(self.item.logic_offset - self.item.start_offset),
        }


def places_told(items: Items, asked_offset: int, found: PulledPlaces) -> PulledPlaces:
    """
    Return what was `found` for an offset of a queue as it is told of the logic queue.

    Source: ``PullMessageProcessor.rewriteResponseForStaticTopic``.
    """
    if found.code != ResponseCode.SUCCESS:
        found = _judged(items, asked_offset, found)
    item = found.item
    next_begin_offset = found.next_begin_offset
    if item.has_end:
        next_begin_offset = min(next_begin_offset, item.end_offset)
    return PulledPlaces(
        found.code,
        item.logic_of(next_begin_offset),
        item.logic_of(max(item.start_offset, found.min_offset)),
        max(item.logic_of(found.max_offset), items[-1].logic_offset_max),
        item,
    )


def _judged(items: Items, asked_offset: int, found: PulledPlaces) -> PulledPlaces:
    """Say what it means that nothing was found: by which stretch it is, in Java's order."""
    earliest = find_item(items, 0)
    is_leader = found.item.gen == items[-1].gen
    is_earliest = earliest is not None and found.item.gen == earliest.gen
    told = found
    if is_leader:
        if asked_offset > found.max_offset:
            if found.code == _MOVED:
                told = attrs.evolve(told, next_begin_offset=found.max_offset)
        elif asked_offset < found.min_offset:
            told = attrs.evolve(told, code=_RETRY, next_begin_offset=found.min_offset)
    if is_earliest:
        if asked_offset < found.min_offset:
            return attrs.evolve(told, code=_MOVED, next_begin_offset=found.min_offset)
        if asked_offset >= found.max_offset:
            return _passed_on(items, told)
        return attrs.evolve(told, code=found.code)
    if not is_leader:
        if asked_offset < found.min_offset:
            return attrs.evolve(told, code=_RETRY, next_begin_offset=found.min_offset)
        if asked_offset >= found.max_offset:
            return _passed_on(items, told)
    return told


def _passed_on(items: Items, found: PulledPlaces) -> PulledPlaces:
    """Send who is at the end of a stretch to the next one."""
    following = item_after(items, found.item)
    if following is None:
        return attrs.evolve(found, code=ResponseCode.PULL_NOT_FOUND)
    start = following.start_offset
    return PulledPlaces(_RETRY, start, start, start, following)

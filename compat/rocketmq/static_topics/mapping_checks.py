"""What a broker looks at before it takes in a new mapping (TopicQueueMappingUtils)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.rocketmq.wire.codes import ResponseCode
from logstore.compat.rocketmq.wire.refusals import RefusedError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from logstore.segments.rocketmq.tables.queue_mappings import (
        LogicQueueMappingItem,
        TopicQueueMappingDetail,
    )


class MappingRefusedError(RefusedError):
    """A mapping contradicts itself, or what the broker knows."""

    def __init__(self, remark: str) -> None:
        super().__init__(ResponseCode.SYSTEM_ERROR, remark)


def check_items(items: Sequence[LogicQueueMappingItem]) -> None:
    """
    Look at the stretches of one logic queue: each ends before the next one begins.

    Raises:
        MappingRefusedError: they do not, or a number is none that can be.

    """
    last_gen, last_offset = -1, -1
    for number, item in reversed(tuple(enumerate(items))):
        if item.start_offset < 0 or item.gen < 0 or item.queue_id < 0:
            raise MappingRefusedError("The field is illegal, should not be negative")
        if number < len(items) - 1 and item.logic_offset < 0:
            raise MappingRefusedError("The non-latest item has negative logic offset")
        if last_gen != -1 and item.gen >= last_gen:
            raise MappingRefusedError("The gen does not increase monotonically")
        if item.end_offset not in (-1, max(item.end_offset, item.start_offset)):
            raise MappingRefusedError("The endOffset is smaller than the start offset")
        if last_offset != -1 and item.logic_offset != -1:
            if item.logic_offset >= last_offset:
                raise MappingRefusedError("The base logic offset does not increase monotonically")
            if item.logic_offset_max >= last_offset:
                raise MappingRefusedError("The max logic offset does not increase monotonically")
        last_gen, last_offset = item.gen, item.logic_offset


def check_follows(old: TopicQueueMappingDetail, new: TopicQueueMappingDetail) -> None:
    """
    See to it that a mapping may take the place of another one.

    Raises:
        MappingRefusedError: it is older, or says something else of what is settled.

    """
    if new.epoch < old.epoch:
        raise MappingRefusedError(f"Can't accept data with small epoch {new.epoch} < {old.epoch}")
    if new.scope != old.scope:
        raise MappingRefusedError(
            f"Can't accept data with unmatched scope {new.scope} != {old.scope}"
        )
    is_same_epoch = new.epoch == old.epoch
    for queue_id, old_items in old.hosted_queues.items():
        new_items = new.hosted_queues.get(queue_id)
        if new_items is not None:
            _check_items_follow(old_items, new_items, is_same_epoch=is_same_epoch)
        elif is_same_epoch:
            raise MappingRefusedError("Cannot accept equal epoch with null data")


def _check_items_follow(
    old: Sequence[LogicQueueMappingItem],
    new: Sequence[LogicQueueMappingItem],
    *,
    is_same_epoch: bool,
) -> None:
    if not old:
        return
    if not new:
        raise MappingRefusedError("The new item list is null or empty")
    if is_same_epoch and _place_of(old[-1]) != _place_of(new[-1]):
        raise MappingRefusedError("The new leader is different but epoch equal")


def _place_of(item: LogicQueueMappingItem) -> tuple[int, str, int, int]:
    return item.gen, item.broker_name, item.queue_id, item.start_offset

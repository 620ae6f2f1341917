"""
Dispatch of a run of checked records without any extra: what neighbours share is done once.

Takes the place of one dispatch after the other where a log is caught up with; the same comes out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.segments.rocketmq.messages.dispatch_request import (
    Blank,
    DispatchRequest,
    dispatched_tags_code,
    read_dispatch_request,
)
from logstore.segments.rocketmq.messages.message_layout import (
    DISPATCHED_FIELDS,
    PREFIX,
    SYS_FLAG_POSITION,
    MessageVersion,
)
from logstore.segments.rocketmq.messages.system_flags import TRANSACTION_MASK

if TYPE_CHECKING:
    from logstore.segments.rocketmq.dispatch import Dispatch
    from logstore.segments.rocketmq.index.message_index import MessageIndex
    from logstore.segments.rocketmq.messages.dispatch_request import DeliverTime

_V1 = MessageVersion.V1.value
#: messages whose keys go into the index together
_TOGETHER_MAX = 256
_TOPICS_MAX = 4096
_unpack_prefix = PREFIX.unpack_from


class PlainDispatch:
    """
    Dispatches whole runs of checked records; only for those who want no single request.

    That is so where `dispatching` has neither listeners nor dispatchers of its own; ask
    :attr:`is_possible`.
    """

    def __init__(self, dispatching: Dispatch, index: MessageIndex | None) -> None:
        self.dispatching = dispatching
        self.index = index
        self._topics: dict[bytes, str] = {}
        #: neighbours of one topic and store time, whose keys are not in the index yet
        self._waiting: list[DispatchRequest] = []

    @property
    def is_possible(self) -> bool:
        """Tell whether nobody else wants to see every message."""
        return not (self.dispatching.arrival_listeners or self.dispatching.dispatchers)

    def take(self, records: memoryview) -> int:
        """Dispatch every record of a run; return how many there were."""
        position, size_bytes, count = 0, len(records), 0
        dispatch, waiting = self.dispatching.consume_queues.dispatch, self._waiting
        deliver_time = self.dispatching.deliver_time
        while position < size_bytes:
            found = self._read(records, position, deliver_time)
            if isinstance(found, Blank):
                break
            dispatch(found)
            if waiting and (
                found.store_timestamp_ms != waiting[0].store_timestamp_ms
                or found.topic != waiting[0].topic
                or len(waiting) >= _TOGETHER_MAX
            ):
                self._put_waiting()
            waiting.append(found)
            position += found.size_bytes
            count += 1
        self._put_waiting()
        return count

    def _read(
        self, records: memoryview, position: int, deliver_time: DeliverTime | None
    ) -> DispatchRequest | Blank:
        """Return a request of a record whose lengths were checked; what is odd is read slowly."""
        size_bytes, magic = _unpack_prefix(records, position)
        fields = DISPATCHED_FIELDS[records[position + SYS_FLAG_POSITION + 3] >> 4 & 3]
        if magic != _V1:
            return read_dispatch_request(records, position, deliver_time=deliver_time)
        _, queue_id, queue_offset, physical_offset, sys_flag, stored_ms, prepared, body_bytes = (
            fields.unpack_from(records, position)
        )
        body_end = position + fields.size + int(body_bytes)
        text_at = body_end + 3 + records[body_end]
        raw_topic = bytes(records[body_end + 1 : text_at - 2])
        topic = self._topics.get(raw_topic)
        if topic is None:
            found = read_dispatch_request(records, position, deliver_time=deliver_time)
            if isinstance(found, DispatchRequest) and len(self._topics) < _TOPICS_MAX:
                self._topics[raw_topic] = found.topic
            return found
        text = bytes(records[text_at : position + size_bytes])
        code = dispatched_tags_code(topic, text, stored_ms, deliver_time)
        where = topic, queue_id, physical_offset, size_bytes
        return DispatchRequest(*where, code, stored_ms, queue_offset, sys_flag, prepared, text)

    def _put_waiting(self) -> None:
        """Put the keys of what waits into the index."""
        waiting, index = self._waiting, self.index
        if not waiting:
            return
        self.dispatching.current_reput_timestamp_ms = waiting[0].store_timestamp_ms
        if index is not None:
            is_odd = any(one.sys_flag & TRANSACTION_MASK for one in waiting)
            if is_odd or not index.put_alike(
                waiting[0].topic,
                [b"\0\0" + one.properties_text for one in waiting],
                [one.physical_offset for one in waiting],
                waiting[0].store_timestamp_ms,
            ):
                for one in waiting:
                    index.put(one)
        waiting.clear()

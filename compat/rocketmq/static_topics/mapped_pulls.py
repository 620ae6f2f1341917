"""
Pulling from a logic queue: from the stretch in which the offset stands, wherever that is.

Who has reached the end of a stretch is sent to the next one. What Java commits in passing is the
logic queue's offset as one of the stretch; here it is the stretch's (PullMessageProcessor).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from logstore.compat.rocketmq.pulling.held_pulls import HeldPull
from logstore.compat.rocketmq.pulling.pulling import PullRefusedError, check_pull, refused_pull
from logstore.compat.rocketmq.static_topics.answer_frames import read_answer, with_fields
from logstore.compat.rocketmq.static_topics.broker_calls import CallError
from logstore.compat.rocketmq.static_topics.pulled_places import PulledPlaces, places_told
from logstore.compat.rocketmq.steps import begin
from logstore.compat.rocketmq.wire.codes import RequestCode, ResponseCode
from logstore.compat.rocketmq.wire.fields import read_int, read_long, read_text
from logstore.compat.rocketmq.wire.remoting import Response, encode_response
from logstore.compat.waiting import Later
from logstore.segments.rocketmq.tables.queue_mappings import find_item, item_after

if TYPE_CHECKING:
    from logstore.compat.connection import Chunk
    from logstore.compat.rocketmq.static_topics.mapped_request import MappedRequest
    from logstore.compat.rocketmq.wire.remoting import Command
    from logstore.segments.rocketmq.tables.queue_mappings import Items, LogicQueueMappingItem

_COMMIT_FLAG, _SUSPEND_FLAG = 1, 2
_PULLED = (
    ResponseCode.SUCCESS,
    ResponseCode.PULL_NOT_FOUND,
    ResponseCode.PULL_RETRY_IMMEDIATELY,
    ResponseCode.PULL_OFFSET_MOVED,
)


def answer_mapped_pull(request: MappedRequest) -> list[Chunk] | Later[list[Chunk]]:
    """
    Return what stands in a logic queue, or a promise of it.

    Raises:
        RefusedError: NOT_LEADER_FOR_QUEUE.

    """
    fields = request.command.ext_fields
    try:
        check_pull(request.broker, read_text(fields, "consumerGroup"), request.detail.topic)
    except PullRefusedError as refusal:
        return refused_pull(request.command, refusal)
    queue_id = read_int(fields, "queueId")
    items = request.items_of(queue_id, "cannot find mapping item")
    item = find_item(items, read_long(fields, "queueOffset"))
    if item is None:
        raise CallError("nobody knows yet where the queue begins")
    pull = _MappedPull(request, items, item)
    return pull.answer_here() if request.is_here(item) else begin(pull.ask_there())


@attrs.define(eq=False)
class _MappedPull:
    """One pull and the stretch that it reads from."""

    request: MappedRequest
    items: Items
    item: LogicQueueMappingItem
    queue_offset: int = attrs.field(init=False)
    sys_flag: int = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        fields, item = self.request.command.ext_fields, self.item
        self.queue_offset = item.queue_offset_of(read_long(fields, "queueOffset"))
        self.sys_flag = read_int(fields, "sysFlag")
        changes = {"queueOffset": str(self.queue_offset)}
        if item.has_end:
            count = min(item.end_offset - item.start_offset, read_int(fields, "maxMsgNums"))
            changes["maxMsgNums"] = str(count)
        committed = read_long(fields, "commitOffset", 0)
        if find_item(self.items, committed) is item:
            changes["commitOffset"] = str(item.queue_offset_of(committed))
        else:
            self.sys_flag &= ~_COMMIT_FLAG
        self.request.command.ext_fields = self.request.fields_for(item, **changes)

    async def ask_there(self) -> list[Chunk]:
        """Pull from the broker that has the stretch."""
        command, item = self.request.command, self.item
        self._set_flags(self.sys_flag & ~(_COMMIT_FLAG | _SUSPEND_FLAG))
        calls = self.request.broker.static_topics.calls
        code = RequestCode.PULL_MESSAGE
        answer = await calls.ask(item.broker_name, code, command.ext_fields, _PULLED)
        told = self._told(answer)
        is_found = answer.code == ResponseCode.SUCCESS
        remark, body = ("", bytes(answer.body)) if is_found else (None, b"")
        return encode_response(
            command, Response(told.code, remark, told.fields(answer.ext_fields), body)
        )

    def answer_here(self) -> list[Chunk] | Later[list[Chunk]]:
        """Pull from a queue of this broker."""
        may_wait = bool(self.sys_flag & _SUSPEND_FLAG)
        is_passed = item_after(self.items, self.item) is not None
        self._set_flags(self.sys_flag & ~_SUSPEND_FLAG if is_passed else self.sys_flag)
        answer = self._handle()
        if isinstance(answer, Later):
            return answer.changed(lambda frame: self._rewritten(frame)[0])
        frame, code = self._rewritten(answer)
        if code == ResponseCode.PULL_NOT_FOUND and may_wait:
            return self._hold()
        return frame

    def _hold(self) -> Later[list[Chunk]]:
        """Wait, where it is only the logic queue in which nothing was found."""
        later: Later[list[Chunk]] = Later()
        broker, fields = self.request.broker, self.request.command.ext_fields
        self._set_flags(self.sys_flag & ~(_COMMIT_FLAG | _SUSPEND_FLAG))

        def wake() -> None:
            answer = self._handle()
            assert isinstance(answer, list), "whoever may not wait is answered"
            later.answer(self._rewritten(answer)[0])

        timeout_ms = read_long(fields, "suspendTimeoutMillis", 0)
        if not broker.settings.has_long_polling:
            timeout_ms = broker.settings.short_polling_ms
        topic, queue_id = self.request.detail.topic, self.item.queue_id
        owner = self.request.channel
        held = HeldPull(topic, queue_id, self.queue_offset, None, wake, owner)
        broker.held_pulls.hold(held, timeout_ms)
        return later

    def _set_flags(self, sys_flag: int) -> None:
        self.request.command.ext_fields["sysFlag"] = str(sys_flag)

    def _handle(self) -> list[Chunk] | Later[list[Chunk]]:
        request = self.request
        answer: list[Chunk] | Later[list[Chunk]] = request.handle(
            request.broker, request.channel, request.command
        )
        return answer

    def _rewritten(self, frame: list[Chunk]) -> tuple[list[Chunk], int]:
        """Return an answer as one of the logic queue, and its code."""
        answer = read_answer(frame)
        if "nextBeginOffset" not in answer.ext_fields:
            return frame, answer.code  # it was refused
        told = self._told(answer)
        if answer.code != ResponseCode.SUCCESS:
            answer.code, answer.remark = told.code, None
        fields = told.fields(answer.ext_fields)
        return with_fields(self.request.command, frame, answer, fields), answer.code

    def _told(self, answer: Command) -> PulledPlaces:
        fields = answer.ext_fields
        found = PulledPlaces(
            answer.code,
            read_long(fields, "nextBeginOffset"),
            read_long(fields, "minOffset"),
            read_long(fields, "maxOffset"),
            self.item,
        )
        return places_told(self.items, self.queue_offset, found)

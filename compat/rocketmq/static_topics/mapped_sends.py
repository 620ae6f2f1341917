"""Sending to a logic queue: it goes to the queue that leads, and is told as of the logic queue."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.rocketmq.static_topics.answer_frames import read_answer, with_fields
from logstore.compat.rocketmq.wire.codes import RequestCode
from logstore.compat.rocketmq.wire.fields import read_int
from logstore.compat.waiting import Later

if TYPE_CHECKING:
    from logstore.compat.connection import Chunk
    from logstore.compat.rocketmq.static_topics.mapped_request import MappedRequest


def answer_mapped_send(
    request: MappedRequest,
) -> list[Chunk] | Later[list[Chunk]] | None:
    """
    Store what a client sends to a logic queue; any that leads from here where it does not care.

    Raises:
        RefusedError: NOT_LEADER_FOR_QUEUE.

    """
    command = request.command
    name = "queueId" if command.code == RequestCode.SEND_MESSAGE else "e"
    queue_id = read_int(command.ext_fields, name)
    if queue_id < 0:
        queue_id = next(iter(request.detail.hosted_queues), queue_id)
    item = request.items_of(queue_id)[-1]

    def told(frame: list[Chunk]) -> list[Chunk]:
        answer = read_answer(frame)
        if "queueOffset" not in answer.ext_fields:
            return frame  # it was refused
        offset = item.logic_within(int(answer.ext_fields["queueOffset"]))
        known = {"queueId": str(queue_id), "queueOffset": str(offset)}
        fields = {**answer.ext_fields, **known}
        return with_fields(command, frame, answer, fields, has_extra_fields=True)

    command.ext_fields = {**command.ext_fields, name: str(item.queue_id)}
    answer: list[Chunk] | Later[list[Chunk]] | None = request.handle(
        request.broker, request.channel, command
    )
    if answer is None:
        return None
    return answer.changed(told) if isinstance(answer, Later) else told(answer)

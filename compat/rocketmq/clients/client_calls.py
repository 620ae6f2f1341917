"""Questions for clients, asked for somebody else: their answers are handed on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from logstore.compat.rocketmq.clients.releases import CAN_ANSWER_SINCE, release_name
from logstore.compat.rocketmq.connection import AnswerTimeoutError
from logstore.compat.rocketmq.wire.codes import ResponseCode
from logstore.compat.rocketmq.wire.refusals import RefusedError
from logstore.compat.rocketmq.wire.remoting import Response
from logstore.compat.waiting import Later

if TYPE_CHECKING:
    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.rocketmq.wire.remoting import Command

_TIMEOUT_MS = 10_000


def call_consumer(
    broker: Broker,
    code: int,
    group: str,
    client_id: str | None,
    fields: Mapping[str, str],
    body: bytes,
) -> Later[Response]:
    """
    Ask one client of a consumer group; return its answer to come. None is nobody's name.

    Raises:
        RefusedError: SYSTEM_ERROR; it is not connected, or too old.

    """
    connected = broker.consumers.group(group)
    client = None
    if connected is not None and client_id is not None:
        client = connected.member(client_id)
    if client is None:
        name = "null" if client_id is None else client_id
        raise RefusedError(ResponseCode.SYSTEM_ERROR, f"The Consumer <{group}> <{name}> not online")
    if client.version < CAN_ANSWER_SINCE:
        raise RefusedError(
            ResponseCode.SYSTEM_ERROR,
            f"The Consumer <{client_id}> Version <{release_name(client.version)}> too low to "
            "finish, please upgrade it to V3_1_8_SNAPSHOT",
        )
    later: Later[Response] = Later()

    def answered(answer: Command) -> None:
        later.answer(
            Response(answer.code, answer.remark, answer.ext_fields or None, bytes(answer.body))
        )

    def failed(error: Exception) -> None:
        if isinstance(error, AnswerTimeoutError):
            code, text = ResponseCode.CONSUME_MSG_TIMEOUT, f"Timeout: {error}"
            remark = f"consumer <{group}> <{client_id}> {text}"
        else:
            code = ResponseCode.SYSTEM_ERROR
            remark = f"invoke consumer <{group}> <{client_id}> Exception: {error}"
        later.answer(Response(code, remark))

    client.channel.ask(code, fields, body, timeout_ms=_TIMEOUT_MS).then(answered, failed)
    return later

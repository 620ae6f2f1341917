"""
Answers of consumers to messages: pushed to the client that waits for them, and stored as well.

Source: ``ReplyMessageProcessor``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.rocketmq.sending.sending import check_message, check_start
from logstore.compat.rocketmq.wire.codes import RequestCode, ResponseCode
from logstore.compat.rocketmq.wire.fields import (
    as_fields,
    read_flag,
    read_int,
    read_long,
    read_text,
)
from logstore.compat.rocketmq.wire.refusals import RefusedError
from logstore.compat.waiting import Later
from logstore.segments.rocketmq.messages.message_draft import draft_message
from logstore.segments.rocketmq.messages.properties import (
    HASH_MAP_CAPACITY_5,
    MESSAGE_REGION,
    TRACE_ON,
    encode_properties,
    parse_properties,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from logstore.compat.connection import Chunk
    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.rocketmq.connection import Channel
    from logstore.compat.rocketmq.wire.remoting import Answer, Command
    from logstore.segments.rocketmq.putting.put_result import PutResult

_REPLY_TO_CLIENT = "REPLY_TO_CLIENT"
_PUSH_REPLY_TIME = "PUSH_REPLY_TIME"
_TIMEOUT_MS = 10_000


def answer_reply(
    broker: Broker, channel: Channel, request: Command, fields: Mapping[str, str]
) -> Answer | Later[Answer]:
    """Push a reply to whoever asked, and store it; say how the push went."""
    try:
        return _Reply(broker, channel, request, fields).push()
    except RefusedError as refusal:
        return broker.send_answers.refused(request, refusal)


class _Reply:
    """One reply on its way. What is needed of the request is copied: the answer comes later."""

    def __init__(
        self, broker: Broker, channel: Channel, request: Command, fields: Mapping[str, str]
    ) -> None:
        check_start(broker)
        if not len(request.body):  # as the replies that the Go client of 2.1.2 makes by itself
            raise RefusedError(ResponseCode.SYSTEM_ERROR, "the body of the message is null")
        self._broker = broker
        self._request = request
        self._fields = dict(fields)
        self._body = bytes(request.body)
        self._born_address = channel.address
        self._born_host = broker.born_hosts[channel]
        self._topic = read_text(fields, "b")
        queue_id = read_int(fields, "e")
        config = check_message(broker, channel, fields, self._topic, queue_id)
        if queue_id < 0:
            queue_id = broker.host.rng.randrange(max(config.write_queue_count, 1))
        self._queue_id = queue_id
        self._properties = parse_properties(
            (fields.get("i") or "").encode("utf-8", "surrogatepass")
        )
        self._properties[MESSAGE_REGION] = broker.settings.region
        self._properties[TRACE_ON] = "true" if broker.settings.is_trace_on else "false"

    def push(self) -> Answer | Later[Answer]:
        properties = self._properties
        client_id = properties.get(_REPLY_TO_CLIENT)
        if client_id is None:
            return self._finish(f"reply message properties[{_REPLY_TO_CLIENT}] is null")
        channel = self._broker.producers.channel_of(client_id)
        if channel is None:
            return self._finish(f"push reply message fail, channel of <{client_id}> not found.")
        properties = {**properties, _PUSH_REPLY_TIME: str(self._broker.host.clock.wall_ms())}
        later: Later[Answer] = Later()

        def answered(answer: Command) -> None:
            is_ok = answer.code == ResponseCode.SUCCESS
            failure = None if is_ok else f"push reply message to {client_id}fail."
            later.answer(self._finish(failure))

        def failed(error: Exception) -> None:
            del error  # the same text, whatever it was
            later.answer(self._finish(f"push reply message to {client_id}fail."))

        channel.ask(
            RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT,
            self._pushed_fields(properties),
            self._body,
            timeout_ms=_TIMEOUT_MS,
        ).then(answered, failed)
        return later

    def _pushed_fields(self, properties: Mapping[str, str]) -> dict[str, str]:
        fields = self._fields
        return as_fields(
            producerGroup=fields.get("a"),
            topic=self._topic,
            defaultTopic=fields.get("c"),
            defaultTopicQueueNums=read_int(fields, "d", 0),
            queueId=read_int(fields, "e"),
            sysFlag=read_int(fields, "f"),
            bornTimestamp=read_long(fields, "g"),
            flag=read_int(fields, "h"),
            properties=encode_properties(properties, capacity=HASH_MAP_CAPACITY_5).decode(),
            reconsumeTimes=read_int(fields, "j", 0),
            unitMode=read_flag(fields, "k", default=False),
            bornHost=self._born_address,
            storeHost=str(self._broker.store_host),
            storeTimestamp=self._broker.host.clock.wall_ms(),
        )

    def _finish(self, failure: str | None) -> list[Chunk]:
        """Store the reply, if replies are stored, and answer who sent it."""
        result = self._put() if self._broker.settings.stores_replies else None
        answers = self._broker.send_answers
        if failure is None:
            return answers.pushed(self._request, result, self._queue_id)
        stored = result if result is not None and result.is_ok else None
        refusal = RefusedError(ResponseCode.SYSTEM_ERROR, failure)
        return answers.refused(self._request, refusal, stored, self._queue_id)

    def _put(self) -> PutResult:
        """Store the reply, of whose system flags Java keeps none."""
        fields = self._fields
        result = self._broker.store.put_message(
            draft_message(
                topic=self._topic,
                body=self._body,
                queue_id=self._queue_id,
                properties_text=encode_properties(self._properties, capacity=HASH_MAP_CAPACITY_5),
                flag=read_int(fields, "h"),
                born_timestamp_ms=read_long(fields, "g"),
                born_host=self._born_host,
                store_host=self._broker.store_host,
                reconsume_times=read_int(fields, "j", 0),
            )
        )
        self._broker.requests_served()
        return result

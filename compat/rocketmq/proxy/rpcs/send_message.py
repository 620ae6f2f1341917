"""SendMessage: one message, or several for one queue of a topic."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from logstore.compat.rocketmq.lite.shards import bucket_of
from logstore.compat.rocketmq.proxy.checks import topic_of
from logstore.compat.rocketmq.proxy.clients import Transaction
from logstore.compat.rocketmq.proxy.codes import Code, MessageType
from logstore.compat.rocketmq.proxy.failures import ProxyError, status
from logstore.compat.rocketmq.proxy.schema import MESSAGES
from logstore.compat.rocketmq.proxy.sent_messages import (
    BORN_TIMESTAMP,
    check_body,
    properties_of,
    sys_flag_of,
    type_of,
)
from logstore.compat.rocketmq.steps import Step
from logstore.compat.rocketmq.topics.names import AUTO_CREATE_TOPIC, DLQ_PREFIX, RETRY_PREFIX
from logstore.compat.rocketmq.wire.codes import RequestCode, ResponseCode
from logstore.compat.rocketmq.wire.fields import as_fields
from logstore.segments.rocketmq.messages.java_strings import is_java_blank
from logstore.segments.rocketmq.messages.message_batch import BatchItem, encode_batch_body
from logstore.segments.rocketmq.messages.message_id import parse_offset_message_id
from logstore.segments.rocketmq.messages.properties import (
    DELAY,
    TIMER_DELIVER_MS,
    UNIQUE_KEY,
    encode_properties,
)

if TYPE_CHECKING:
    from logstore.compat.rocketmq.proxy.clients import Link, ProxyClient
    from logstore.compat.rocketmq.proxy.proxy import Caller, Proxy
    from logstore.compat.rocketmq.proxy.routes import TopicRoute
    from logstore.compat.rocketmq.wire.remoting import Command
    from logstore.compat.waiting import Later

_TIMEOUT_MS = 10_000
#: what is the same of all requests to a broker
_FIELDS = as_fields(
    defaultTopic=AUTO_CREATE_TOPIC,
    defaultTopicQueueNums=4,
    flag=0,
    reconsumeTimes=0,
    unitMode=False,
)
#: what the broker says of a message that is stored, and the code that clients are told
_STORED = {
    ResponseCode.SUCCESS: Code.OK,
    ResponseCode.FLUSH_DISK_TIMEOUT: Code.MASTER_PERSISTENCE_TIMEOUT,
    ResponseCode.FLUSH_SLAVE_TIMEOUT: Code.SLAVE_PERSISTENCE_TIMEOUT,
    ResponseCode.SLAVE_NOT_AVAILABLE: Code.HA_NOT_AVAILABLE,
}

_OK = status(Code.OK)
#: copied, as that costs a third of making it anew
_STORED_WELL = MESSAGES["SendMessageResponse"](status=_OK, entries=[{"status": _OK}])


async def handle(client: ProxyClient, request: Any, caller: Caller) -> Any:
    """Serve one request."""
    messages = list(request.messages)
    if not messages:
        raise ProxyError(Code.MESSAGE_CORRUPTED, "no message to send")
    topic = topic_of(messages[0].topic)
    now_ms, limits = client.proxy.now_ms(), client.proxy.settings
    properties: list[dict[str, str]] = []
    for message in messages:
        if message is not messages[0] and message.topic != messages[0].topic:
            raise ProxyError(Code.MESSAGE_CORRUPTED, "topic in message is not same")
        check_body(message.body, limits)
        properties.append(properties_of(message, f"{caller.host}:{caller.port}", now_ms, limits))
    if limits.checks_message_types and not topic.startswith((RETRY_PREFIX, DLQ_PREFIX)):
        await require_type(client, topic, type_of(properties[0]).name)
    route = await client.proxy.routes.of(topic)
    broker_name, queue_id = _queue(client.proxy, route, messages)
    if len(messages) > 1:
        _check_batch(topic, properties)
    link = await client.link_of(broker_name)
    answer = await Step(_send(link, topic, messages, properties, queue_id, now_ms))
    message_id = ",".join([one[UNIQUE_KEY] for one in properties])
    return _response(client.proxy, broker_name, messages[0], message_id, answer)


async def require_type(client: ProxyClient, topic: str, actual: str) -> None:
    """Raise ProxyError where a topic is not for messages of this type, or nowhere."""
    try:
        expected = await client.proxy.routes.type_name(client, topic)
    except ProxyError:
        expected = MessageType.UNSPECIFIED.name  # it is nowhere
    if expected not in (actual, "MIXED"):
        text = (
            "TopicMessageType validate failed, the expected type is "
            f"{expected}, but actual type is {actual}"
        )
        raise ProxyError(Code.MESSAGE_PROPERTY_CONFLICT_WITH_TYPE, text)


def _queue(proxy: Proxy, route: TopicRoute, messages: Sequence[Any]) -> tuple[str, int]:
    """Return where to, broker and queue: that of its group or lite topic, or the next one."""
    queues = route.writable_queues()
    if not queues:
        raise ProxyError(Code.FORBIDDEN, "no writable queue")
    about = messages[0].system_properties
    group: str = about.message_group
    one_of_many = about.lite_topic if is_java_blank(group) else group
    if one_of_many and len(messages) == 1:
        return queues[bucket_of(one_of_many, len(queues))]
    return queues[proxy.queue_turns.take(route.topic, len(queues))]


def _check_batch(topic: str, properties: Sequence[dict[str, str]]) -> None:
    """Raise ProxyError for messages that Java's client makes no batch of (``MessageBatch``)."""
    for one in properties:
        if int(one.get(TIMER_DELIVER_MS, 0)) > 0 or int(one.get(DELAY, 0)) > 0:
            text = "Delayed messages are not supported for batching"
            raise ProxyError(Code.INTERNAL_SERVER_ERROR, text)
    if topic.startswith(RETRY_PREFIX):
        text = "Retry Group is not supported for batching"
        raise ProxyError(Code.INTERNAL_SERVER_ERROR, text)


def _send(
    link: Link,
    topic: str,
    messages: Sequence[Any],
    properties: list[dict[str, str]],
    queue_id: int,
    now_ms: int,
) -> Later[Command]:
    first = messages[0]
    is_batch = len(messages) > 1
    texts = [encode_properties(one) for one in properties]
    body: bytes = first.body
    if is_batch:
        body = encode_batch_body(
            BatchItem(message.body, text) for message, text in zip(messages, texts, strict=True)
        )
    born_ms = properties[0].get(BORN_TIMESTAMP)
    fields = {
        **_FIELDS,
        "producerGroup": topic,
        "topic": topic,
        "queueId": str(queue_id),
        "sysFlag": str(sys_flag_of(first)),
        "bornTimestamp": str(now_ms) if born_ms is None else born_ms,
        "properties": texts[0].decode(),
        "batch": "true" if is_batch else "false",
    }
    return link.ask(RequestCode.SEND_MESSAGE, fields, body, timeout_ms=_TIMEOUT_MS)


def _response(
    proxy: Proxy, broker_name: str, message: Any, message_id: str, answer: Command
) -> Any:
    code = _STORED.get(ResponseCode(answer.code))
    if code is None:
        raise ProxyError(Code.INTERNAL_SERVER_ERROR, answer.remark or "")
    if code != Code.OK:
        entry = {"status": status(code, f"send message failed, sendStatus={_status_name(answer)}")}
        return MESSAGES["SendMessageResponse"](status=status(code), entries=[entry])
    fields = answer.ext_fields
    transaction_id = fields.get("transactionId") or ""
    queue_offset = int(fields["queueOffset"])
    if message.system_properties.message_type == MessageType.TRANSACTION and transaction_id:
        _, physical_offset = parse_offset_message_id(fields["msgId"])
        transaction = Transaction(broker_name, queue_offset, physical_offset)
        proxy.remember(message.topic.name, transaction_id, transaction)
    response = MESSAGES["SendMessageResponse"]()
    response.CopyFrom(_STORED_WELL)
    entry = response.entries[0]
    entry.offset = queue_offset
    entry.message_id = message_id
    entry.transaction_id = transaction_id
    entry.recall_handle = fields.get("recallHandle") or ""
    return response


def _status_name(answer: Command) -> str:
    return ResponseCode(answer.code).name

"""ReceiveMessage: messages that nobody else of the group gets for a time; waits for some."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from logstore.compat.rocketmq.clients.subscriptions import Subscription, SubscriptionError
from logstore.compat.rocketmq.proxy.checks import group_of, invisible_ms, topic_of
from logstore.compat.rocketmq.proxy.clients import Renewed, subscription_of
from logstore.compat.rocketmq.proxy.codes import Code
from logstore.compat.rocketmq.proxy.failures import ProxyError, status
from logstore.compat.rocketmq.proxy.lite_consumers import check_work, is_lite, popped_lite
from logstore.compat.rocketmq.proxy.popped import Popped, popped_messages
from logstore.compat.rocketmq.proxy.receipt_handles import ReceiptHandle
from logstore.compat.rocketmq.proxy.received_messages import message_for_client
from logstore.compat.rocketmq.proxy.rpcs.forward_message_to_dead_letter_queue import bury
from logstore.compat.rocketmq.proxy.schema import MESSAGES
from logstore.compat.rocketmq.proxy.times import milliseconds_of
from logstore.compat.rocketmq.steps import Step
from logstore.compat.rocketmq.wire.codes import RequestCode, ResponseCode
from logstore.compat.rocketmq.wire.fields import as_fields

if TYPE_CHECKING:
    from logstore.compat.rocketmq.proxy.clients import Link, ProxyClient
    from logstore.compat.rocketmq.proxy.proxy import Caller, Proxy
    from logstore.compat.rocketmq.proxy.proxy_settings import ProxySettings
    from logstore.compat.rocketmq.proxy.routes import TopicRoute
    from logstore.compat.rocketmq.wire.remoting import Command

_COUNT_MAX = 32
_ANY_QUEUE, _FROM_END = -1, 1
_ANSWER_GRACE_MS = 10_000
#: the first version of clients that know this code
_ILLEGAL_POLLING_TIME_SINCE = "5.0.3"


async def handle(client: ProxyClient, request: Any, caller: Caller) -> list[Any]:
    """Serve one request; return all messages of the answer."""
    settings = client.settings
    if settings is None:
        raise ProxyError(Code.UNRECOGNIZED_CLIENT_TYPE, "cannot find client settings")
    polling_ms = _polling_ms(request, settings, caller, client.proxy.settings)
    topic, group = topic_of(request.message_queue.topic), group_of(request.group)
    limits = client.proxy.settings
    is_renewed = limits.renews and request.auto_renew
    hidden_ms = (
        limits.renewed_ms
        if is_renewed
        else invisible_ms(
            request.invisible_duration, limits.invisible_ms_min, limits.invisible_ms_max
        )
    )
    try:
        wanted: Subscription = subscription_of(topic, request.filter_expression)
    except SubscriptionError as error:
        raise ProxyError(Code.ILLEGAL_FILTER_EXPRESSION, str(error)) from None
    if is_lite(settings):
        check_work(client, group)
    route = await client.proxy.routes.of(topic)
    broker_name = _broker(client.proxy, route, request.message_queue.broker.name)
    link = await client.link_of(broker_name)
    code, fields = _pop(client, request, wanted, hidden_ms, polling_ms)
    answer = await Step(link.ask(code, fields, timeout_ms=polling_ms + _ANSWER_GRACE_MS))
    if not _has_found(answer):
        return refused("", status(Code.MESSAGE_NOT_FOUND, "no new message"), client.proxy)
    read = popped_lite if is_lite(settings) else popped_messages
    found = read(answer, topic, broker_name)
    given = _for_client(link, found, wanted, topic, group, settings.backoff_policy.max_attempts)
    if is_renewed:
        _renew(client, given, topic, group)
    return _answer(client.proxy, [popped for popped, _ in given], topic)


def _pop(
    client: ProxyClient, request: Any, wanted: Subscription, hidden_ms: int, polling_ms: int
) -> tuple[RequestCode, dict[str, str]]:
    """Return what the broker is asked: of lite topics another request than of queues."""
    settings = client.settings
    fields = as_fields(
        consumerGroup=request.group.name,
        topic=request.message_queue.topic.name,
        invisibleTime=hidden_ms,
        pollTime=polling_ms,
        bornTime=client.proxy.now_ms(),
        attemptId=request.attempt_id if request.HasField("attempt_id") else None,
    )
    count = min(request.batch_size, _COUNT_MAX)
    if is_lite(settings):
        fields |= as_fields(clientId=client.client_id, maxMsgNum=count)
        return RequestCode.POP_LITE_MESSAGE, fields
    fields |= as_fields(
        queueId=_ANY_QUEUE,
        maxMsgNums=count,
        initMode=_FROM_END,
        expType=wanted.expression_type,
        exp=wanted.sub_string,
        order=settings.subscription.fifo,
    )
    return RequestCode.POP_MESSAGE, fields


def _broker(proxy: Proxy, route: TopicRoute, wanted: str) -> str:
    """Return the broker that is asked for, or the next one. Raises ProxyError: there is none."""
    names = route.readable_brokers()
    if not names:
        raise ProxyError(Code.FORBIDDEN, "no readable queue")
    if wanted in names:
        return wanted
    return names[proxy.broker_turns.take(route.topic, len(names))]


def give_back(client: ProxyClient, request: Any, answers: list[Any]) -> None:
    """Let others have soon what a client was to be told that hung up while it waited."""
    topic, group = request.message_queue.topic.name, request.group.name
    for answer in answers:
        if answer.HasField("message"):
            text = answer.message.system_properties.receipt_handle
            lite_topic = answer.message.system_properties.lite_topic
            client.proxy.renewals.give_back(client, text, topic, group, lite_topic)


def refused(name: str, why: Any, proxy: Proxy) -> list[Any]:
    """Return an answer without a message."""
    del name
    kind = MESSAGES["ReceiveMessageResponse"]
    end = kind()
    end.delivery_timestamp.FromMilliseconds(proxy.now_ms())
    return [kind(status=why), end]


def _polling_ms(request: Any, settings: Any, caller: Caller, limits: ProxySettings) -> int:
    """Return how long to wait for messages. Raises ProxyError: the client does not wait so long."""
    waits_ms = caller.remaining_ms
    remaining = limits.polling_ms_max * 2 if waits_ms is None else int(waits_ms)
    if request.HasField("long_polling_timeout"):
        wanted_ms = milliseconds_of(request.long_polling_timeout)
    else:
        wanted_ms = remaining - milliseconds_of(settings.request_timeout) // 2
    polling_ms = min(max(wanted_ms, limits.polling_ms_min), limits.polling_ms_max)
    if polling_ms <= remaining:
        return polling_ms
    if remaining >= limits.polling_ms_min:
        return remaining
    text = "The deadline time remaining is not enough for polling, please check network condition"
    is_known = caller.version >= _ILLEGAL_POLLING_TIME_SINCE
    raise ProxyError(Code.ILLEGAL_POLLING_TIME if is_known else Code.BAD_REQUEST, text)


def _has_found(answer: Command) -> bool:
    """Tell whether something was found. Raises ProxyError: the broker could not look."""
    code = ResponseCode(answer.code)
    if code == ResponseCode.SUCCESS:
        return True
    if code == ResponseCode.POLLING_FULL:
        raise ProxyError(Code.TOO_MANY_REQUESTS, "polling full")
    if code in (ResponseCode.POLLING_TIMEOUT, ResponseCode.PULL_NOT_FOUND):
        return False
    raise ProxyError(Code.INTERNAL_SERVER_ERROR, answer.remark or "")


def _for_client(
    link: Link, found: list[Popped], wanted: Subscription, topic: str, group: str,
    attempts_max: int,
) -> list[tuple[Popped, ReceiptHandle]]:  # fmt: skip
    """Return what the client gets; other tags are acknowledged, what came too often is buried."""
    given: list[tuple[Popped, ReceiptHandle]] = []
    for popped in found:
        handle = ReceiptHandle.parse(popped.handle)
        if wanted.tags and popped.message.tags not in wanted.tags:
            link.ask(RequestCode.ACK_MESSAGE, handle.fields(topic, group, popped.lite_topic))
        elif popped.delivered_count >= attempts_max:
            bury(link, handle, popped.message.unique_key or "", topic, group, popped.lite_topic)
        else:
            given.append((popped, handle))
    return given


def _renew(
    client: ProxyClient, given: list[tuple[Popped, ReceiptHandle]], topic: str, group: str
) -> None:
    now_ms = client.proxy.now_ms()
    for popped, handle in given:
        renewed = Renewed(handle, group, topic, now_ms, popped.lite_topic)
        client.proxy.renewals.add(client, renewed)


def _answer(proxy: Proxy, found: list[Popped], topic: str) -> list[Any]:
    if not found:
        return refused("", status(Code.MESSAGE_NOT_FOUND, "no match message"), proxy)
    kind, now_ms = MESSAGES["ReceiveMessageResponse"], proxy.now_ms()
    messages = [
        kind(
            message=message_for_client(
                one.message, topic, one.handle, one.delivered_count, now_ms, one.lite_offset
            )
        )
        for one in found
    ]
    end = kind()
    end.delivery_timestamp.FromMilliseconds(now_ms)
    return [kind(status=status(Code.OK)), *messages, end]

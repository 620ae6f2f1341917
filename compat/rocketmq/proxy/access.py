"""
Access control at the proxy: the header ``authorization``, and what each message asks for.

What is signed there is the header ``x-mq-date-time`` alone. Java's proxy has settings of its own
for this; here they are the broker's. Source: ``DefaultAuthenticationContextBuilder``,
``DefaultAuthorizationContextBuilder``.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from logstore.compat.rocketmq.auth import resources
from logstore.compat.rocketmq.auth.access_error import AccessError
from logstore.compat.rocketmq.auth.asked import Asked
from logstore.compat.rocketmq.auth.wants import PUB, SUB
from logstore.compat.rocketmq.proxy.codes import ClientType, Code
from logstore.compat.rocketmq.proxy.failures import ProxyError

if TYPE_CHECKING:
    from logstore.compat.rocketmq.auth.access import Access
    from logstore.compat.rocketmq.proxy.proxy import Caller

_CREDENTIAL, _SIGNATURE = "Credential", "Signature"
#: of whom nothing else is known here
_PULL_CONSUMER = 4
_CONSUMERS = (ClientType.PUSH_CONSUMER, ClientType.SIMPLE_CONSUMER, _PULL_CONSUMER)


def check(access: Access, caller: Caller, message: Any) -> None:
    """
    See to it that a message comes from whom it says, and that he may have what it asks for.

    Raises:
        ProxyError: he may not.

    """
    name = str(message.DESCRIPTOR.full_name)
    connection = f"{caller.host}:{caller.port}"
    username = caller.access_key
    try:
        if access.settings.authenticates:
            signer, signature = _signed(caller)
            access.authenticate(name, connection, signer, signature, caller.date_time.encode)
            # Java believes a client who names himself in that header, too, if he does: not here.
            username = signer or None
        if access.settings.authorizes:
            read = _READERS.get(name.rpartition(".")[2])
            asked = [] if read is None else read(message)
            access.authorize(name, connection, username, asked, caller.host)
    except AccessError as error:
        raise ProxyError(Code.UNAUTHORIZED, str(error)) from error


def _signed(caller: Caller) -> tuple[str, str | None]:
    """Return who says that he asks, and his signature in base 64. Raises AccessError."""
    if not caller.authorization:
        return "", None
    if not caller.date_time:
        raise AccessError("datetime is null.")
    _, blank, items = caller.authorization.partition(" ")
    if not blank:
        raise AccessError("authentication header is incorrect.")
    username, signature = "", None
    for item in items.rstrip(",").split(","):
        name, separator, value = item.strip().partition("=")
        if not separator:
            text = "authentication keyValues length is incorrect, actual length=1."
            raise AccessError(text)
        if name == _CREDENTIAL:
            if value and not value.strip("/"):
                text = "authentication credential length is incorrect, actual length=0."
                raise AccessError(text)
            username = value.partition("/")[0]
        elif name == _SIGNATURE:
            signature = _base64_of_hex(value)
    return username, signature


def _base64_of_hex(text: str) -> str:
    try:
        return base64.b64encode(bytes.fromhex(text)).decode()
    except ValueError:
        raise AccessError("create authentication context error.") from None


def _topic(resource: Any, *actions: str) -> Asked:
    if not resource.name.strip():
        raise AccessError("topic is null.")
    return Asked(resources.topic(resource.name), actions)


def _group(resource: Any) -> Asked:
    if not resource.name.strip():
        raise AccessError("group is null.")
    return Asked(resources.group(resource.name), (SUB,))


def _send(message: Any) -> list[Asked]:
    if not message.messages:
        raise AccessError("message is null.")
    return [_topic(message.messages[0].topic, PUB)]


def _published(message: Any) -> list[Asked]:
    return [_topic(message.topic, PUB)]


def _consumed(message: Any) -> list[Asked]:
    return [_group(message.group), _topic(message.topic, SUB)]


def _sync_lite(message: Any) -> list[Asked]:
    return _consumed(message) if message.lite_topic_set else []


def _receive(message: Any) -> list[Asked]:
    if not message.HasField("message_queue"):
        raise AccessError("messageQueue is null.")
    return [_group(message.group), _topic(message.message_queue.topic, SUB)]


def _heart_beat(message: Any) -> list[Asked]:
    return [_group(message.group)] if message.client_type in _CONSUMERS else []


def _termination(message: Any) -> list[Asked]:
    return [_group(message.group)] if message.group.name.strip() else []


def _change(message: Any) -> list[Asked]:
    return [_group(message.group)]


def _route(message: Any) -> list[Asked]:
    return [_topic(message.topic, PUB, SUB)]


def _telemetry(message: Any) -> list[Asked]:
    if message.WhichOneof("command") != "settings":
        return []
    kind = message.settings.WhichOneof("pub_sub")
    if kind is None:
        text = "settings command doesn't have publishing or subscription."
        raise ProxyError(Code.INTERNAL_SERVER_ERROR, text)
    if kind == "publishing":
        return [_topic(topic, PUB) for topic in message.settings.publishing.topics]
    subscription = message.settings.subscription
    entries = [_topic(entry.topic, SUB) for entry in subscription.subscriptions]
    return [_group(subscription.group), *entries]


_READERS: dict[str, Callable[[Any], list[Asked]]] = {
    "SendMessageRequest": _send,
    "RecallMessageRequest": _published,
    "EndTransactionRequest": _published,
    "HeartbeatRequest": _heart_beat,
    "ReceiveMessageRequest": _receive,
    "AckMessageRequest": _consumed,
    "SyncLiteSubscriptionRequest": _sync_lite,
    "ForwardMessageToDeadLetterQueueRequest": _consumed,
    "NotifyClientTerminationRequest": _termination,
    "ChangeInvisibleDurationRequest": _change,
    "QueryRouteRequest": _route,
    "QueryAssignmentRequest": _consumed,
    "TelemetryCommand": _telemetry,
}

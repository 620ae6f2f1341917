"""Telemetry: a client says what it is and is told what to do; later it is asked, and answers."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from logstore.compat.grpc.status import CallError, GrpcCode
from logstore.compat.rocketmq.proxy.clients import Transaction
from logstore.compat.rocketmq.proxy.codes import Code
from logstore.compat.rocketmq.proxy.failures import ProxyError, StreamEndedError, status
from logstore.compat.rocketmq.proxy.received_messages import message_for_client
from logstore.compat.rocketmq.proxy.schema import MESSAGES
from logstore.compat.rocketmq.wire.codes import RequestCode
from logstore.segments.rocketmq.messages.message import decode_message
from logstore.segments.rocketmq.messages.properties import PRODUCER_GROUP, REAL_TOPIC

if TYPE_CHECKING:
    from logstore.compat.rocketmq.proxy.clients import ProxyClient
    from logstore.compat.rocketmq.proxy.proxy import Caller, Proxy
    from logstore.compat.rocketmq.wire.remoting import Command

_log = logging.getLogger(__name__)


def take(proxy: Proxy, caller: Caller, tell: Callable[[Any], None], command: Any) -> None:
    """
    Serve one command of a client.

    Raises:
        CallError: its settings say neither what it sends nor what it reads.
        ProxyError: what it says of itself cannot be.
        StreamEndedError: it may not ask for that or has no name, and has been told so.

    """
    try:
        proxy.check(caller, command)
        client = proxy.client(caller)
    except ProxyError as error:
        tell(MESSAGES["TelemetryCommand"](status=status(error.code, str(error))))
        raise StreamEndedError(str(error)) from error
    if command.WhichOneof("command") != "settings":
        _log.info("%s: %s", client.client_id, command.WhichOneof("command"))
        return
    asked = command.settings
    if asked.WhichOneof("pub_sub") is None:
        text = "there is no publishing or subscription data in settings"
        raise CallError(GrpcCode.INVALID_ARGUMENT, text)
    client.take_settings(asked)
    client.tell = tell
    tell(MESSAGES["TelemetryCommand"](status=status(Code.OK), settings=client.settings))


def serve_broker(client: ProxyClient, broker_name: str, request: Command) -> None:
    """Hand on what a broker asks of a client; that its group has changed needs nobody to know."""
    if request.code == RequestCode.CHECK_TRANSACTION_STATE:
        _check_transaction(client, broker_name, request)
    elif request.code == RequestCode.NOTIFY_UNSUBSCRIBE_LITE and client.tell is not None:
        command = {"lite_topic": request.ext_fields.get("liteTopic", "")}
        client.tell(MESSAGES["TelemetryCommand"](notify_unsubscribe_lite_command=command))


def _check_transaction(client: ProxyClient, broker_name: str, request: Command) -> None:
    fields = request.ext_fields
    transaction_id = fields.get("transactionId") or ""
    if client.tell is None or not transaction_id:
        return
    places = int(fields["tranStateTableOffset"]), int(fields["commitLogOffset"])
    transaction = Transaction(broker_name, *places)
    half = decode_message(request.body)
    topic = half.properties.get(REAL_TOPIC, half.topic)
    group = half.properties.get(PRODUCER_GROUP, topic)
    client.proxy.remember(group, transaction_id, transaction)
    message = message_for_client(half, topic, None, half.reconsume_times, client.proxy.now_ms())
    recovery = {"message": message, "transaction_id": transaction_id}
    client.tell(MESSAGES["TelemetryCommand"](recover_orphaned_transaction_command=recovery))

"""
What a broker's role (``brokerRole``) means to its clients: to a slave nobody sends, nor pops.

As in 5.5.0 it lets consumers read only where ``slaveReadEnable`` is set on it, too.
(``BrokerStartup``, ``SendMessageProcessor.rejectRequest``, ``PullMessageProcessor.rejectRequest``)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import attrs

from logstore.compat.rocketmq.registry import HANDLERS, Handler, Handlers
from logstore.compat.rocketmq.wire.codes import RequestCode, ResponseCode
from logstore.compat.rocketmq.wire.refusals import RefusedError
from logstore.segments.rocketmq.settings.java_config import ConfigError

if TYPE_CHECKING:
    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.rocketmq.connection import Channel
    from logstore.compat.rocketmq.settings import Settings
    from logstore.compat.rocketmq.wire.remoting import Command, Response

__all__ = ["MASTER_ID", "checked_role", "handlers_of_role"]

MASTER_ID = 0
_WRITES = (
    RequestCode.SEND_MESSAGE,
    RequestCode.SEND_MESSAGE_V2,
    RequestCode.SEND_BATCH_MESSAGE,
    RequestCode.CONSUMER_SEND_MSG_BACK,
    RequestCode.POP_MESSAGE,
    RequestCode.ACK_MESSAGE,
    RequestCode.BATCH_ACK_MESSAGE,
    RequestCode.CHANGE_MESSAGE_INVISIBLETIME,
)
_PULLS = (RequestCode.PULL_MESSAGE, RequestCode.LITE_PULL_MESSAGE)
_REMARK = "[REJECTREQUEST]system busy, start flow control for a while"


def checked_role(settings: Settings) -> Settings:
    """
    Return the settings with the broker id that goes with the role: a master's is 0.

    Raises:
        ConfigError: a slave has no id of its own.

    """
    if not settings.is_slave:
        return attrs.evolve(settings, broker_id=MASTER_ID)
    if settings.broker_id <= MASTER_ID:
        raise ConfigError(
            "brokerId", str(settings.broker_id), "a number above 0, since brokerRole=SLAVE"
        )
    return settings


def handlers_of_role(settings: Settings) -> Handlers:
    """Return who serves which code: to a slave nobody sends, and not everybody reads from it."""
    if not settings.is_slave:
        return HANDLERS
    return {
        **HANDLERS,
        **{int(code): _handler(code, _reject) for code in _WRITES},
        **{int(code): _handler(code, _rejects_unless_readable(code)) for code in _PULLS},
    }


def _handler(code: RequestCode, handle: Callable[..., object]) -> Handler:
    handler = Handler(code, "")
    if code in _PULLS:
        handler.handle_raw = handle
    else:
        handler.handle = handle
    return handler


def _reject(broker: Broker, channel: Channel, request: Command) -> Response:
    del broker, channel, request
    raise RefusedError(ResponseCode.SYSTEM_BUSY, _REMARK)


def _rejects_unless_readable(code: RequestCode) -> Callable[..., object]:
    reader = HANDLERS[int(code)]

    def handle_raw(broker: Broker, channel: Channel, request: Command) -> object:
        if not broker.settings.reads_from_slave:
            raise RefusedError(ResponseCode.SYSTEM_BUSY, _REMARK)
        if reader.handle_raw is None:
            reader.load()
        assert reader.handle_raw is not None, "pulls have raw handlers"
        return reader.handle_raw(broker, channel, request)

    return handle_raw

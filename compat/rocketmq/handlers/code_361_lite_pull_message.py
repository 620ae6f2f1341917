"""LITE_PULL_MESSAGE: a pull of a lite pull consumer; nothing else is different."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.rocketmq.pulling.pulling import answer_pull
from logstore.compat.rocketmq.wire.codes import ResponseCode
from logstore.compat.rocketmq.wire.refusals import RefusedError

if TYPE_CHECKING:
    from logstore.compat.connection import Chunk
    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.rocketmq.connection import Channel
    from logstore.compat.rocketmq.wire.remoting import Command
    from logstore.compat.waiting import Later


def handle_raw(
    broker: Broker, channel: Channel, request: Command
) -> list[Chunk] | Later[list[Chunk]]:
    """Serve one request."""
    if not broker.settings.has_lite_pull:
        raise RefusedError(
            ResponseCode.NO_PERMISSION,
            f"the broker[{broker.settings.ip1}] for lite pull consumer is forbidden",
        )
    return answer_pull(broker, channel, request)

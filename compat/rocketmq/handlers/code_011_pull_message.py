"""
PULL_MESSAGE: messages of one queue from a queue offset on.

Where there are none the answer may wait until some arrive (bit 2 of `sysFlag`), for as long as
the client says. Bit 1 commits an offset in passing, bit 4 brings the subscription along.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.rocketmq.pulling.pulling import answer_pull

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
    return answer_pull(broker, channel, request)

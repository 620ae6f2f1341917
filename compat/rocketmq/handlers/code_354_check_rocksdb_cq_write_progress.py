"""
CHECK_ROCKSDB_CQ_WRITE_PROGRESS: whether queues in RocksDB hold the same as those in files.

A broker looks after it has answered, and writes what it finds to its log. Without queues in
RocksDB, as here, it finds that there is nothing to look at.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from logstore.compat.rocketmq.wire.bodies import json_body
from logstore.compat.rocketmq.wire.codes import ResponseCode
from logstore.compat.rocketmq.wire.remoting import Response

if TYPE_CHECKING:
    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.rocketmq.connection import Channel
    from logstore.compat.rocketmq.wire.remoting import Command

_log = logging.getLogger(__name__)
_IN_PROGRESS = 2


def handle(broker: Broker, channel: Channel, request: Command) -> Response:
    """Serve one request."""
    _log.info("queues stand in files alone: there is nothing in RocksDB to compare them with")
    body = json_body({"checkStatus": _IN_PROGRESS})
    return Response(ResponseCode.SUCCESS, "not set any response code", body=body)

"""
EXPORT_ROCKSDB_CONFIG_TO_JSON: write tables that are kept in RocksDB to the files in JSON.

Here those files are where the tables are kept, so that there is nothing to write.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.rocketmq.wire.codes import ResponseCode
from logstore.compat.rocketmq.wire.fields import read_text
from logstore.compat.rocketmq.wire.refusals import RefusedError
from logstore.compat.rocketmq.wire.remoting import Response

if TYPE_CHECKING:
    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.rocketmq.connection import Channel
    from logstore.compat.rocketmq.wire.remoting import Command

_TABLES = frozenset(("topics", "subscriptiongroups", "consumeroffsets"))


def handle(broker: Broker, channel: Channel, request: Command) -> Response:
    """Serve one request."""
    for name in filter(None, read_text(request.ext_fields, "configType").split(";")):
        if name.strip().lower() not in _TABLES:
            raise RefusedError(ResponseCode.SYSTEM_ERROR, f"Unknown config type: {name}")
    return Response(ResponseCode.SUCCESS, "export done.")

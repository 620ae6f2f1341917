"""
QUERY_MESSAGE: messages by key, unique key or tag, stored within a range of time.

The index knows hashes only: whoever asks compares the keys.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.rocketmq.wire.codes import ResponseCode
from logstore.compat.rocketmq.wire.fields import (
    as_fields,
    read_flag,
    read_int,
    read_long,
    read_text,
)
from logstore.compat.rocketmq.wire.remoting import Response
from logstore.segments.rocketmq.index.index_keys import TAG_PREFIX

if TYPE_CHECKING:
    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.rocketmq.connection import Channel
    from logstore.compat.rocketmq.wire.remoting import Command

#: what 5.x asks for as ``indexType``; keys ("K") and unique keys ("U") are looked up alike
_BY_TAGS = "T"


def handle(broker: Broker, channel: Channel, request: Command) -> Response:
    """Serve one request."""
    broker.catch_up()
    fields = request.ext_fields
    topic, key = read_text(fields, "topic"), read_text(fields, "key")
    count_max = read_int(fields, "maxNum")
    if read_flag(fields, "_UNIQUE_KEY_QUERY", default=False):
        count_max = broker.settings.query_count_max
    elif fields.get("indexType") == _BY_TAGS:
        key = f"{TAG_PREFIX}{key}"
    found = broker.store.query_message(
        topic,
        key,
        min(count_max, broker.settings.indexed_count_max),
        read_long(fields, "beginTimestamp"),
        read_long(fields, "endTimestamp"),
    )
    known = as_fields(
        indexLastUpdatePhyoffset=found.last_update_physical_offset,
        indexLastUpdateTimestamp=found.last_update_timestamp_ms,
    )
    if not found.pieces:
        remark = "can not find message, maybe time range not correct"
        return Response(ResponseCode.QUERY_NOT_FOUND, remark, known)
    return Response(ResponseCode.SUCCESS, None, known, list(found.pieces))

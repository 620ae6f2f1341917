"""
SET_COMMITLOG_READ_MODE: whether the commit log is to be read ahead.

The setting is changed (``dataReadAheadEnable``); how far to read ahead is the system's to say.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from logstore.compat.rocketmq.wire.codes import ResponseCode
from logstore.compat.rocketmq.wire.refusals import RefusedError
from logstore.compat.rocketmq.wire.remoting import Response

if TYPE_CHECKING:
    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.rocketmq.connection import Channel
    from logstore.compat.rocketmq.wire.remoting import Command

_MODE = "READ_AHEAD_MODE"
_NUMBER = re.compile(r"[+-]?[0-9]{1,9}")
#: madvise's
_NORMAL, _RANDOM = 0, 1


def handle(broker: Broker, channel: Channel, request: Command) -> Response:
    """Serve one request."""
    text = request.ext_fields.get(_MODE)
    if not request.ext_fields:
        raise RefusedError(ResponseCode.SYSTEM_ERROR, "set commitlog readahead mode param error")
    if text is None or not _NUMBER.fullmatch(text):
        raise RefusedError(ResponseCode.SYSTEM_ERROR, "set commitlog readahead mode failed")
    mode = int(text)
    if mode not in (_NORMAL, _RANDOM):
        remark = "set commitlog readahead mode param value error"
        raise RefusedError(ResponseCode.INVALID_PARAMETER, remark)
    broker.update_settings({"dataReadAheadEnable": "true" if mode == _NORMAL else "false"})
    return Response(ResponseCode.SUCCESS, f"set commitlog readahead mode success, mode: {mode}")

"""
RECALL_MESSAGE: a timed message that has not come yet is not to come at all (5.x).

Only where ``recallMessageEnable`` allows it. The handle that its sender was given names it. What is
put for it is a message that has the time wheel leave the other one out.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from logstore.compat.rocketmq.sending.put_answers import STORED_CODES
from logstore.compat.rocketmq.sending.recall_handles import HANDLE_PARTS, handle_parts
from logstore.compat.rocketmq.wire.codes import ResponseCode
from logstore.compat.rocketmq.wire.fields import read_text
from logstore.compat.rocketmq.wire.remoting import Response
from logstore.segments.rocketmq.messages.message_draft import draft_message
from logstore.segments.rocketmq.messages.own_properties import OwnProperties
from logstore.segments.rocketmq.messages.properties import (
    BORN_TIMESTAMP,
    PRODUCER_GROUP,
    TAGS,
    TIMER_DELETE_UNIQUE_KEY,
    TIMER_DELIVER_MS,
    TRACE_CONTEXT,
    UNIQUE_KEY,
)
from logstore.segments.rocketmq.tables.topics import PERM_WRITE

if TYPE_CHECKING:
    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.rocketmq.connection import Channel
    from logstore.compat.rocketmq.wire.remoting import Command
    from logstore.segments.rocketmq.messages.message_draft import MessageDraft

_RECALL_TAG = "_RECALL_TAG_"
_NUMBER = re.compile("[+-]?[0-9]{1,19}")
#: Java forgets to take it back
_DONE = "not set any response code"


def handle(broker: Broker, channel: Channel, request: Command) -> Response:
    """Serve one request."""
    fields = request.ext_fields
    topic = read_text(fields, "topic")
    if not broker.settings.recalls_messages:
        remark = "recall failed, operation is forbidden"
        return _refused(broker, ResponseCode.NO_PERMISSION, remark)
    if broker.settings.is_slave:
        code, remark = ResponseCode.SLAVE_NOT_AVAILABLE, "broker service not available"
        return _refused(broker, code, f"recall failed, {remark}")
    if not _is_open(broker):
        code, remark = ResponseCode.SERVICE_NOT_AVAILABLE, "broker service not available"
        return _refused(broker, code, f"recall failed, {remark}")
    if broker.topics.get(topic) is None:
        remark = f"recall failed, the topic[{topic}] not exist"
        return _refused(broker, ResponseCode.TOPIC_NOT_EXIST, remark)
    parts = handle_parts(read_text(fields, "recallHandle"))
    flaw = _flaw_of(broker, topic, parts)
    if flaw is not None:
        return _refused(broker, ResponseCode.ILLEGAL_OPERATION, flaw)
    _, _, _, due_ms, unique_key = parts[:HANDLE_PARTS]
    group = fields.get("producerGroup")
    draft = _draft(broker, channel, topic, unique_key, due_ms, group)
    result = broker.store.put_message(draft)
    if result.status not in STORED_CODES:
        return _refused(broker, ResponseCode.SYSTEM_ERROR, "recall failed, execute error")
    region = {"MSG_REGION": broker.settings.region}
    return Response(ResponseCode.SUCCESS, _DONE, {"msgId": unique_key}, extra_fields=region)


def _is_open(broker: Broker) -> bool:
    """Tell whether anything is recalled at this time, and by a broker that takes no messages."""
    settings = broker.settings
    if broker.host.clock.wall_ms() < settings.start_accepting_ms:
        return False
    return bool(settings.permission & PERM_WRITE) or settings.recalls_without_writing


def _draft(
    broker: Broker, channel: Channel, topic: str, unique_key: str, due_ms: str, group: str | None
) -> MessageDraft:
    """Return the message that takes the other one back."""
    now_ms = broker.host.clock.wall_ms()
    is_of_topic = broker.store.config.boolean("appendTopicForTimerDeleteKey")
    entries = {
        TAGS: _RECALL_TAG,
        TIMER_DELETE_UNIQUE_KEY: f"{topic}+{unique_key}" if is_of_topic else unique_key,
        UNIQUE_KEY: unique_key,
        TIMER_DELIVER_MS: due_ms,
        BORN_TIMESTAMP: str(now_ms),
        TRACE_CONTEXT: "",
    }
    if group is not None:
        entries[PRODUCER_GROUP] = group
    properties = OwnProperties(entries)
    draft = draft_message(
        topic=topic,
        body=b"0",
        queue_id=0,
        properties_text=properties.encoded(),
        born_timestamp_ms=now_ms,
        born_host=broker.born_hosts[channel],
        store_host=broker.store_host,
    )
    draft.own_properties = properties
    return draft


def _refused(broker: Broker, code: ResponseCode, remark: str) -> Response:
    return Response(code, remark, {}, extra_fields={"MSG_REGION": broker.settings.region})


def _flaw_of(broker: Broker, topic: str, parts: list[str]) -> str | None:
    """Return why a handle does not serve here and now; None if it does."""
    if not parts:
        return "recall handle is invalid"
    if parts[1] != topic:
        return "recall failed, topic not match"
    if parts[2] != broker.settings.broker_name:
        return "recall failed, broker service not available"
    due_ms = int(parts[3]) if _NUMBER.fullmatch(parts[3]) else -1
    left_ms = due_ms - broker.host.clock.wall_ms()
    if not 0 < left_ms < broker.settings.timer_delay_seconds_max * 1000:
        return "recall failed, timestamp invalid"
    return None

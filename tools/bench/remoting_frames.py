"""Requests of RocketMQ's remoting protocol, as a raw client sends them, and their replies."""

from __future__ import annotations

import itertools
import time
from collections.abc import Mapping, Sequence

from logstore.tools.bench.client import Connection
from logstore.tools.bench.frames import BenchError
from logstore.tools.dev.remoting_request import (
    Answer,
    read_answer,
    request_frame,
)

PULL_MESSAGE = 11
END_TRANSACTION = 37
SEND_MESSAGE_V2 = 310
UPDATE_GROUP = 200
POP_MESSAGE = 200050
ACK_MESSAGE = 200051
#: pull: nothing to commit, do not wait, here is what is subscribed to
_WITH_SUBSCRIPTION = 4
_COMMIT = 8
_TRANSACTION_PREPARED = 4
_VERSION = 501
#: longer than anything is measured
_INVISIBLE_MS = 3_600_000

_opaques = itertools.count(1)


def request(code: int, fields: Mapping[str, object], body: bytes = b"") -> bytes:
    """Return a whole frame with a number of its own."""
    return request_frame(code, fields, body, opaque=next(_opaques), version=_VERSION)


def checked_reply(frame: bytes) -> Answer:
    """Return the header of a frame; BenchError where it tells of no success."""
    reply = read_answer(frame)
    if reply.code:
        raise BenchError(f"a broker answered {reply.code}: {reply.remark}")
    return reply


def send_frame(
    topic: str, queue_id: int, body: bytes, properties: Mapping[str, str], sys_flag: int = 0
) -> bytes:
    """Return a SEND_MESSAGE_V2 of a message with a unique key and these properties."""
    own = {"UNIQ_KEY": f"{next(_opaques):032X}", "WAIT": "true", **properties}
    fields = {
        "a": "bench", "b": topic, "c": "TBW102", "d": 4, "e": queue_id, "f": sys_flag,
        "g": time.time_ns() // 1_000_000, "h": 0,
        "i": "".join(f"{name}\1{value}\2" for name, value in own.items()),
        "j": 0, "k": "false", "l": 0, "m": "false",
    }  # fmt: skip
    return request(SEND_MESSAGE_V2, fields, body)


def half_frame(topic: str, body: bytes) -> bytes:
    """Return the send of a half message."""
    properties = {"TRAN_MSG": "true", "PGROUP": "bench"}
    return send_frame(topic, 0, body, properties, _TRANSACTION_PREPARED)


def commit_frame(topic: str, half: Answer) -> bytes:
    """Return what commits a half message, of which its answer tells where it is."""
    message_id = half.fields["msgId"]
    fields = {
        "topic": topic, "producerGroup": "bench",
        "tranStateTableOffset": half.fields["queueOffset"],
        "commitLogOffset": int(message_id[-16:], 16), "commitOrRollback": _COMMIT,
        "fromTransactionCheck": "false", "msgId": message_id, "transactionId": message_id,
    }  # fmt: skip
    return request(END_TRANSACTION, fields)


def pull_frame(topic: str, queue_offset: int, kind: str, expression: str) -> bytes:
    """Return a pull of up to 32 messages of queue 0 that does not wait."""
    fields = {
        "consumerGroup": "bench", "topic": topic, "queueId": 0, "queueOffset": queue_offset,
        "maxMsgNums": 32, "sysFlag": _WITH_SUBSCRIPTION, "commitOffset": 0,
        "suspendTimeoutMillis": 0, "subscription": expression, "subVersion": 0,
        "expressionType": kind,
    }  # fmt: skip
    return request(PULL_MESSAGE, fields)


def pop_frame(topic: str, group: str) -> bytes:
    """Return a pop of up to 32 messages of any queue that does not wait."""
    fields = {
        "consumerGroup": group, "topic": topic, "queueId": -1, "maxMsgNums": 32,
        "invisibleTime": _INVISIBLE_MS, "pollTime": 0, "bornTime": time.time_ns() // 1_000_000,
        "initMode": 0, "expType": "TAG", "exp": "*", "order": "false",
    }  # fmt: skip
    return request(POP_MESSAGE, fields)


def ack_frames(topic: str, group: str, popped: Answer) -> list[bytes]:
    """Return an acknowledgement of each message that a pop has got, as its answer tells."""
    fields = popped.fields
    starts = dict(_by_queue(fields["startOffsetInfo"]))
    frames: list[bytes] = []
    for queue_id, queue_offsets in _by_queue(fields["msgOffsetInfo"]):
        start = f"{starts[queue_id]} {fields['popTime']} {fields['invisibleTime']}"
        for queue_offset in queue_offsets.split(","):
            about = {
                "consumerGroup": group, "topic": topic, "queueId": queue_id,
                "extraInfo": f"{start} {fields['reviveQid']} 0 broker-a {queue_id} {queue_offset}",
                "offset": queue_offset,
            }  # fmt: skip
            frames.append(request(ACK_MESSAGE, about))
    return frames


def _by_queue(text: str) -> list[tuple[str, str]]:
    """Return (queue, what is said of it) of a field of a pop's answer."""
    return [(item.split(" ")[1], item.split(" ")[2]) for item in text.split(";")]


def exchange_all(connection: Connection, frames: Sequence[bytes]) -> bytes:
    """Send frames at once and wait for as many replies; return the last one."""
    connection.socket.sendall(b"".join(frames))
    reply = b""
    for _ in frames:
        reply = connection.receive()
    return reply

"""Frames that are no requests, or odd ones; each on a connection of its own."""

from __future__ import annotations

import json
import struct
from typing import Any

from logstore.compat.rocketmq.wire.binary_header import write_binary_header
from logstore.compat.rocketmq.wire.codes import RequestCode as Code
from tests.compat.rocketmq.frames import BINARY, JSON, framed
from tests.interop.drawn_rocketmq.request import Request
from tests.interop.drawn_rocketmq.world import World

OPAQUE = 77
RESPONSE, ONEWAY = 1, 2


def header(world: World) -> dict[str, Any]:
    """Draw a header as JSON, of a question that both answer alike."""
    return {
        "code": world.pick(Code.GET_MAX_OFFSET, Code.GET_MAX_OFFSET, 999),
        "extFields": world.pick({"topic": world.topic(), "queueId": "0"}, None, {}),
        "flag": 0, "language": world.pick("JAVA", "JAVA", "GO", "NOBODYS", None),
        "opaque": OPAQUE, "serializeTypeCurrentRPC": world.pick("JSON", "ROCKETMQ", "x", None),
        "version": world.pick(513, 0, -1, 32767),
    }  # fmt: skip


def send(world: World, data: bytes, *, serializer: int = JSON) -> None:
    """Send bytes to both, and compare what becomes of it."""
    line = world.pick("odd-frame", "names-odd-frame")
    request = Request(Code.GET_MAX_OFFSET, serializer=serializer, is_changed=True)
    world.twin.send_bytes(data, line, OPAQUE, request)


def odd_header(world: World) -> None:
    """
    Send a header of which some members are missing, or strange ones there.

    Of members of another kind Java takes some for what they are not (``"code": ""`` for 0), and
    hangs up on others; ours does so with others. Neither is told of in words.
    """
    drawn = header(world)
    for _ in range(world.pick(0, 1, 1, 2)):
        drawn.pop(world.pick("code", "extFields", "flag", "language", "version", "remark",
                             "serializeTypeCurrentRPC"), None)  # fmt: skip
    if world.likely(0.3):
        drawn |= world.pick({"remark": "x"}, {"more": [1]}, {"more": {"a": None}}, {"extFields": {
            "topic": None}}, {"flag": 64}, {"version": 2**31 - 1})  # fmt: skip
    send(world, framed(json.dumps(drawn).encode(), b"", JSON))


def flagged(world: World) -> None:
    """Send what is an answer, or wants none, though it is not."""
    drawn = header(world) | {"flag": world.pick(RESPONSE, ONEWAY, RESPONSE | ONEWAY, 4, -1)}
    send(world, framed(json.dumps(drawn).encode(), b"", JSON))


def binary(world: World) -> None:
    """Send a binary header, of any language and version."""
    fields = world.pick({}, {"topic": world.topic(), "queueId": "0"}, {"": "x"}, {"x": ""})
    language, version = world.pick("JAVA", "CPP", "RUST", "OTHER"), world.pick(513, -1, 32767, 0)
    flag = world.pick(0, 0, RESPONSE, ONEWAY)
    code = world.pick(int(Code.GET_MAX_OFFSET), 999)
    head = bytearray(
        write_binary_header(code, OPAQUE, flag, language, version, world.pick(None, "x"), fields)
    )
    if world.likely(0.3):
        head[2] = world.pick(13, 100, 255)  # a language that nobody knows
    send(world, framed(bytes(head), b"", BINARY), serializer=BINARY)


def nonsense(world: World) -> None:
    """
    Send frames whose lengths do not fit, or whose headers are none.

    Java says nothing to a header of a few bytes or of another kind of JSON, and waits for more;
    ours hangs up.
    """
    good = framed(json.dumps(header(world)).encode(), b"", JSON)
    what = world.pick("cut", "type", "header", "length", "text", "negative", "large")
    data = {
        "cut": good[: world.chance.randrange(1, len(good))],
        "type": good[:4] + bytes((world.pick(2, 5, 255),)) + good[5:],
        "header": framed(world.pick(b"nonsense", b'{"code":{x}', b'{"code"', b"\xff" * 9)),
        "length": good[:5] + b"\xff\xff\xff" + good[8:],
        "text": b"GET / HTTP/1.1\r\n\r\n",
        "negative": struct.pack(">i", -5) + good[4:],
        "large": struct.pack(">i", 2**31 - 1) + good[4:],
    }[what]
    send(world, data)

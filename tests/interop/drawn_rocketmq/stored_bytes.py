"""Messages as they came over the wire, byte for byte but for what each broker makes up."""

from __future__ import annotations

import re
import struct

from tests.interop.drawn_rocketmq.twin import Difference, Told
from tests.interop.drawn_rocketmq.world import World

_SIZE = struct.Struct(">i")
#: length, place, host of the producer with its port, time and host of the broker, half's place
_OWN = ((0, 4), (28, 8), (48, 8), (56, 8), (64, 8), (76, 8))
#: ids and moments in properties, and the length of these, which ids of either length are in
_MADE_UP = re.compile(
    rb"(UNIQ_KEY|__transactionId__|ORIGIN_MESSAGE_ID)\x01(?:[0-9A-F]{56}|[0-9A-F]{32})(?=\x02|$)"
    rb"|1[0-9]{12}"
)


def common(body: bytes) -> list[bytes]:
    """Return the messages of a body without what each broker makes up."""
    found = []
    while len(body) >= _SIZE.size:
        (size,) = _SIZE.unpack_from(body)
        size = size if 0 < size <= len(body) else len(body)
        found.append(_masked(body[:size]))
        body = body[size:]
    return [*found, body] if body else found


def _masked(message: bytes) -> bytes:
    """Return a message with its own fields put away."""
    data = bytearray(message)
    for start, length in _OWN:
        data[start : start + length] = bytes(length)
    text = bytes(data)
    if len(data) > 88:
        (body_size,) = _SIZE.unpack_from(data, 84)
        at = 88 + max(body_size, 0)
        topic_size = data[at] if at < len(data) else 0
        at += 1 + topic_size
        text = bytes(data[:at]) + b"--" + _MADE_UP.sub(rb"\1*", bytes(data[at + 2 :]))
    return text


def compare(world: World, told: Told, asked: str) -> None:
    """Compare the bodies of two answers; what is different is noted."""
    ours, real = (common(getattr(one, "body", b"") or b"") for one in told)
    if ours != real:
        line = f"{ours!r:.1500} instead of {real!r:.1500}"
        world.twin.differences.append(
            Difference(len(world.twin.steps), f"bytes of {asked}", [line])
        )

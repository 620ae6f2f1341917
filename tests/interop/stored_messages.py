"""What stands in the commit logs of two brokers asked the same, but for what must differ."""

from __future__ import annotations

import mmap
import re
import struct
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from logstore.segments.rocketmq.messages.message import Message, decode_message

_PREFIX = struct.Struct(">iI")
_BLANK_MAGIC = 0xCBD43194
_REVIVE_TOPIC = "rmq_sys_REVIVE_LOG_"
#: ids that brokers and clients make up, times, and addresses
_MADE_UP = re.compile(
    rb"(ORIGIN_MESSAGE_ID|UNIQ_KEY|__transactionId__)\x01[^\x02]*|[0-9]{13}|127\.0\.0\.1[:@][0-9]+"
)
#: pops take turns at the revive topic's queues, and those that wait are counted each time they look
_REVIVE_QUEUE = re.compile("REAL_QID=[0-9]+ ")


def stored(directory: Path) -> Iterator[Message]:
    """Yield all messages of a store, in the order of its commit log."""
    for file in sorted((directory / "commitlog").iterdir()):
        # Mapped: nearly all of a gigabyte is empty, and is not to be read.
        with file.open("rb") as opened, mmap.mmap(opened.fileno(), 0, prot=mmap.PROT_READ) as data:
            position = 0
            while position + _PREFIX.size <= len(data):
                size_bytes, magic = _PREFIX.unpack_from(data, position)
                if size_bytes <= 0 or magic == _BLANK_MAGIC:
                    break
                yield decode_message(data[position : position + size_bytes])
                position += size_bytes


def shown(message: Message) -> str:
    """Return all that two brokers must have stored alike."""
    is_checkpoint = message.topic.startswith(_REVIVE_TOPIC)
    queue_id = -1 if is_checkpoint else message.queue_id
    numbers = (queue_id, message.flag, message.sys_flag, message.reconsume_times)
    is_ended = message.prepared_transaction_offset != 0
    properties, body = (
        _MADE_UP.sub(lambda found: (found[1] or b"") + b"*", bytes(part)).decode("latin-1")
        for part in (message.properties_text, message.body)
    )
    readable = properties.replace("\x01", "=").replace("\x02", " ")
    if f"REAL_TOPIC={_REVIVE_TOPIC}" in readable:
        readable = _REVIVE_QUEUE.sub("", readable)
    return f"{message.topic} {numbers} {is_ended} {readable}: {body[:300]!r}"


def differences(ours: Path, real: Path, but_for: frozenset[str] = frozenset()) -> list[str]:
    """Return what one of them has stored more often; topics in `but_for` are left out."""
    counts = [
        Counter(shown(message) for message in stored(one) if message.topic not in but_for)
        for one in (ours, real)
    ]
    assert counts[0].total() > 0
    return [
        f"{name}: {text}"
        for name, more in (("ours", counts[0] - counts[1]), ("real", counts[1] - counts[0]))
        for text in more.elements()
    ]

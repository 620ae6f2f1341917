"""The page about the format says what the code does."""

from __future__ import annotations

import re
import struct
import zlib
from pathlib import Path

from logstore.java_hash import java_hash
from logstore.segments.rocketmq.messages.dispatch_request import (
    DispatchRequest,
    read_dispatch_request,
)
from logstore.segments.rocketmq.messages.host_address import HostAddress
from logstore.segments.rocketmq.messages.message import decode_message, encode_message
from logstore.segments.rocketmq.messages.message_draft import draft_message

PAGE = Path(__file__).resolve().parents[3] / "segments" / "rocketmq" / "FORMAT.md"
LINE = re.compile(r" *(\d+)  ((?:[0-9a-f]{2} )*[0-9a-f]{2}) {2,}(.+)")


def dump_lines(number: int) -> list[tuple[int, bytes, str]]:
    """Return (position, bytes, meaning) of every line of a worked hexdump."""
    block = PAGE.read_text(encoding="utf-8").split("```hexdump\n")[number].split("```")[0]
    found: list[tuple[int, bytes, str]] = []
    for line in block.splitlines():
        match = LINE.fullmatch(line)
        assert match is not None, line
        found.append((int(match[1]), bytes.fromhex(match[2]), match[3]))
    return found


def dumped(number: int) -> bytes:
    """Return the bytes of a hexdump, whose positions must add up."""
    data = b""
    for position, piece, _ in dump_lines(number):
        assert position == len(data)
        data += piece
    return data


def test_the_worked_message_decodes_to_what_the_page_says() -> None:
    """It is the message described, its CRC is right, and the encoder writes the same bytes."""
    data = dumped(1)
    message = decode_message(data)
    assert (message.topic, message.body, message.queue_id) == ("TopicTest", b"hello", 3)
    assert (message.queue_offset, message.physical_offset) == (7, 1024)
    assert message.properties == {"TAGS": "TagA", "KEYS": "k1"}
    assert message.body_crc == zlib.crc32(data[88:93]) & 0x7FFF_FFFF
    assert message.offset_message_id in PAGE.read_text(encoding="utf-8")
    assert encode_message(message) == data
    draft = draft_message(
        topic="TopicTest",
        body=b"hello",
        queue_id=3,
        properties_text=b"TAGS\x01TagA\x02KEYS\x01k1\x02",
        born_timestamp_ms=1700000000000,
        born_host=HostAddress.of("10.0.0.5", 50000),
        store_host=HostAddress.of("10.0.0.1", 10911),
    )
    draft.stamp(7, 1700000000123)
    assert draft.stamped(1024).data == data


def test_the_worked_unit_and_entry_are_those_of_the_message() -> None:
    """Both follow from the message alone."""
    request = read_dispatch_request(dumped(1))
    assert isinstance(request, DispatchRequest)
    unit, entry = dumped(2)[:20], dumped(2)[20:]
    expected = request.physical_offset, request.size_bytes, request.tags_code
    assert struct.unpack(">qiq", unit) == expected
    key_hash = abs(java_hash(f"{request.topic}#{request.keys}"))
    assert struct.unpack(">iqii", entry) == (key_hash, 1024, 0, 0)


def test_numbers_in_the_comments_are_those_of_the_bytes() -> None:
    """Where a line of a dump names a number, the bytes have it."""
    checked = 0
    for number in (1, 2):
        for _, data, meaning in dump_lines(number):
            match = re.match(r"[a-z, ]*?(-?\d+)\b", meaning)
            is_sized = re.match(r"(body|topic|properties), (\d+) bytes", meaning)
            if is_sized is not None:
                assert int.from_bytes(data, "big") == int(is_sized[2]), meaning
            elif match is not None and not meaning.startswith("magic"):
                assert int.from_bytes(data, "big", signed=True) == int(match[1]), meaning
                checked += 1
    assert checked == 18


def test_every_module_named_exists() -> None:
    """The page names modules, and those are there."""
    text = PAGE.read_text(encoding="utf-8")
    named: set[str] = set()
    for line in re.findall(r"Modules?: (.*)\.", text):
        named |= set(re.findall(r"`(\w+)`", line))
    assert len(named) >= 30
    missing = [
        name
        for name in sorted(named)
        if not any(PAGE.parent.rglob(f"{name}.py")) and not (PAGE.parent / name).is_dir()
    ]
    assert missing == []

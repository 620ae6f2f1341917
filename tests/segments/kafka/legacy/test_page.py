"""What the page about the format says of messages is so."""

from __future__ import annotations

import re
import zlib
from pathlib import Path

from logstore.segments.kafka.compression import Codec
from logstore.segments.kafka.legacy.message import parse_message
from logstore.segments.kafka.legacy.message_set import encode_message_set
from logstore.segments.kafka.record import Record, decode_records

PAGE = Path(__file__).resolve().parents[4] / "segments" / "kafka" / "FORMAT.md"
LINE = re.compile(r" *(\d+)  ((?:[0-9a-f]{2} )*[0-9a-f]{2}) {2,}(.+)")


def test_the_worked_wrapper_decodes_to_what_the_page_says() -> None:
    """Positions add up, the CRC is right, and inside are the two records described."""
    section = PAGE.read_text(encoding="utf-8").split("### A wrapper, worked")[1]
    data = b""
    for line in section.split("```hexdump\n")[1].split("```")[0].splitlines():
        match = LINE.fullmatch(line)
        assert match is not None, line
        assert int(match[1]) == len(data)
        data += bytes.fromhex(match[2])
    message = parse_message(memoryview(data))
    assert (message.last_offset, message.size_bytes, message.codec) == (11, 94, Codec.LZ4)
    assert message.crc == zlib.crc32(data[16:])
    records = [Record(10, -1, b"k1", b"v1"), Record(11, -1, None, b"v2")]
    assert decode_records(data) == records
    assert encode_message_set(records, magic=0, codec=Codec.LZ4) == data


def test_every_module_of_the_package_is_named() -> None:
    """The page names the modules of the package, all of them."""
    named = set(re.findall(r"`legacy/(\w+)`", PAGE.read_text(encoding="utf-8")))
    folder = PAGE.parent / "legacy"
    assert named == {path.stem for path in folder.glob("*.py")} - {"__init__"}

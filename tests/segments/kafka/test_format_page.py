"""The page about the format says what the code does."""

from __future__ import annotations

import re
from pathlib import Path

from logstore.checksum import crc32c
from logstore.segments.kafka.record import Record, decode_records, encode_batch
from logstore.segments.kafka.record_batch import parse_batch

PAGE = Path(__file__).resolve().parents[3] / "segments" / "kafka" / "FORMAT.md"
LINE = re.compile(r" *(\d+)  ((?:[0-9a-f]{2} )*[0-9a-f]{2}) {2,}(.+)")


def dump_lines() -> list[tuple[int, bytes, str]]:
    """Return (position, bytes, meaning) of every line of the worked hexdump."""
    block = PAGE.read_text(encoding="utf-8").split("```hexdump\n")[1].split("```")[0]
    found: list[tuple[int, bytes, str]] = []
    for line in block.splitlines():
        match = LINE.fullmatch(line)
        assert match is not None, line
        found.append((int(match[1]), bytes.fromhex(match[2]), match[3]))
    return found


def test_the_worked_hexdump_decodes_to_what_the_page_says() -> None:
    """Its positions add up, its CRC is right, and both records are the ones described."""
    position = 0
    for stated, data, _ in dump_lines():
        assert stated == position
        position += len(data)
    batch = b"".join(data for _, data, _ in dump_lines())
    records = [
        Record(0, 1700000000000, b"k1", b"v1", (("h", b"x"),)),
        Record(1, 1700000000001, None, b"v2"),
    ]
    assert decode_records(batch) == records
    assert encode_batch(records) == batch
    assert parse_batch(memoryview(batch)).crc == crc32c(batch[21:])


def test_numbers_in_the_comments_are_those_of_the_bytes() -> None:
    """Where a line of the dump names a number of the header, the bytes have it."""
    header = {meaning: data for position, data, meaning in dump_lines() if position < 61}
    checked = 0
    for meaning, data in header.items():
        match = re.match(r"(?:[a-z ]*?)(-?\d+)\b", meaning)
        if match is not None and "CRC" not in meaning:
            assert int.from_bytes(data, "big", signed=True) == int(match[1]), meaning
            checked += 1
    assert checked == 8


def test_every_module_named_exists() -> None:
    """The page names modules, and those are there."""
    text = PAGE.read_text(encoding="utf-8")
    named: set[str] = set()
    for line in re.findall(r"Modules: (.*)\.", text):
        named |= set(re.findall(r"`(\w+)`", line))
    assert len(named) >= 14
    assert [name for name in sorted(named) if not (PAGE.parent / f"{name}.py").exists()] == []

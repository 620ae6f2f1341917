"""Indexes that brokers of before 2.0 wrote: other entries than today's, and right."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from logstore.segments.kafka.compression import Codec
from logstore.segments.kafka.legacy.message_set import encode_message_set
from logstore.segments.kafka.record import Record, encode_batch
from tests.tools.command_line import CommandLine

SENT_MS = 1_700_000_000_000
NAME = f"{0:020d}"


@pytest.fixture(params=[0, 1, 2])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A partition of 0.10 or 1.1: three compressed appends of three, all but one indexed."""
    magic: int = request.param
    log, offsets, times = b"", b"", b""
    for first in (0, 3, 6):
        records = [
            Record(offset, SENT_MS + offset if magic else -1, b"k", b"v" * 50)
            for offset in range(first, first + 3)
        ]
        if first:  # the first offset that was appended; of messages without a time that of sending
            offsets += struct.pack(">ii", first, len(log))
            times += struct.pack(">qi", SENT_MS + first + 2, first + 2)
        if magic == 2:
            log += encode_batch(records, base_offset=first, codec=Codec.GZIP)
        else:
            log += encode_message_set(records, magic=magic, codec=Codec.GZIP)
    folder = tmp_path / "old-0"
    folder.mkdir()
    for suffix, data in ((".log", log), (".index", offsets), (".timeindex", times)):
        (folder / f"{NAME}{suffix}").write_bytes(data)
    return folder


def test_entries_with_the_first_offset_of_an_append_are_right(
    folder: Path, logstore: CommandLine
) -> None:
    """They lead to the message that has it inside, and tells only its last offset."""
    outcome = logstore("verify", folder)
    assert (outcome.exit_code, outcome.err) == (0, ""), outcome.out
    for path in folder.iterdir():
        outcome = logstore("dump", path)
        assert (outcome.exit_code, outcome.err) == (0, ""), path


def test_they_stay_as_they_are(folder: Path, logstore: CommandLine) -> None:
    """A rebuild leaves what is right; what leads elsewhere is made anew."""
    index = folder / f"{NAME}.index"
    before = index.read_bytes()
    assert logstore("reindex", "--index-interval-bytes", 50, folder).exit_code == 0
    assert index.read_bytes() == before
    index.write_bytes(before[:7] + b"\x01" + before[8:])
    outcome = logstore("verify", folder)
    assert outcome.exit_code == 1
    assert f"{NAME}.index: position 0: offset 3 leads to position" in outcome.out
    assert logstore("reindex", "--index-interval-bytes", 50, folder).exit_code == 0
    assert logstore("verify", folder).exit_code == 0


def test_an_offset_of_another_message_is_wrong(folder: Path, logstore: CommandLine) -> None:
    """One of the message before, which a search would pass over, is found."""
    index = folder / f"{NAME}.index"
    data = index.read_bytes()
    index.write_bytes(struct.pack(">i", 2) + data[4:])
    outcome = logstore("verify", folder)
    assert outcome.exit_code == 1
    assert f"{NAME}.index: position 0: offset 2 leads to position" in outcome.out

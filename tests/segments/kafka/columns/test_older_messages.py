"""Logs of magic 0 and 1 come out as columns, too."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from logstore.errors import CorruptEntryError
from logstore.os_host import system_host
from logstore.segments.kafka.batch_walk import iterate_entries
from logstore.segments.kafka.columns import (
    RecordColumns,
    Selection,
    decode_columns,
    iterate_columns,
    to_arrow,
)
from logstore.segments.kafka.legacy.message_set import decode_message
from logstore.segments.kafka.record import Record, decode_records, encode_batch
from logstore.segments.kafka.record_batch import MAGIC
from tests.damage import damaged

GOLDEN = Path(__file__).resolve().parents[3] / "golden" / "legacy-3.9" / "data"
LOGS = [path for path in sorted(GOLDEN.glob("magic*/*.log")) if path.stat().st_size]


def entries_of(data: bytes) -> list[tuple[int, int, list[Record]]]:
    """Return position, size and records of every message and batch, read one by one."""
    found: list[tuple[int, int, list[Record]]] = []
    position = 0
    for entry in iterate_entries(memoryview(data)):
        decode = decode_records if entry.magic == MAGIC else decode_message
        found.append((position, entry.size_bytes, decode(entry.data)))
        position += entry.size_bytes
    return found


def places_of(columns: RecordColumns) -> list[tuple[int, int]]:
    """Return position and size of every batch."""
    batches = columns.batches
    return list(zip(batches.position.tolist(), batches.size_bytes.tolist(), strict=True))


@pytest.mark.parametrize("log", LOGS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_every_golden_log_of_older_formats_reads_equal(log: Path) -> None:
    """Each message as the decoder of messages reads it, at the place where it stands."""
    data = log.read_bytes()
    entries = entries_of(data)
    columns = decode_columns(data, str(log))
    assert columns.records() == [record for _, _, records in entries for record in records]
    assert places_of(columns) == [(position, size) for position, size, _ in entries]
    assert columns.next_position == len(data)
    assert to_arrow(columns).num_rows == len(columns)


@pytest.mark.parametrize("step_bytes", [1, 100, 1000])
def test_steps_through_a_mixed_file_add_up(step_bytes: int, tmp_path: Path) -> None:
    """Messages, then batches, as an upgrade left them: steps of any size yield all of them."""
    batch = bytes(encode_batch([Record(10_000, 5, b"k", b"v")], base_offset=10_000))
    data = LOGS[0].read_bytes() + batch + LOGS[1].read_bytes()
    path = tmp_path / "0.log"
    path.write_bytes(data)
    file = system_host().fs.open(str(path), writable=False)
    steps = list(iterate_columns(file, str(path), step_bytes=step_bytes))
    entries = entries_of(data)
    assert [r for step in steps for r in step.records()] == [r for _, _, rs in entries for r in rs]
    assert [place for step in steps for place in places_of(step)] == [
        (position, size) for position, size, _ in entries
    ]


def test_a_damaged_message_is_told_by_its_position() -> None:
    """Its CRC is checked, and it is the message's own place that is named."""
    data = LOGS[0].read_bytes()
    (_, first, _), (second, size, _) = entries_of(data)[:2]
    assert first == second
    bad = bytearray(data)
    bad[second + size - 1] ^= 1
    with pytest.raises(CorruptEntryError) as caught:
        decode_columns(bytes(bad), "old.log")
    assert (caught.value.path, caught.value.position) == ("old.log", second)
    with pytest.raises(CorruptEntryError) as caught:
        decode_columns(data[: second + size - 1], "old.log")
    assert caught.value.position == second


def test_any_damage_ends_in_our_own_error() -> None:
    """Cuts, flips, insertions, with and without CRCs: columns, or CorruptEntryError."""
    chance = random.Random(8)
    data = b"".join(log.read_bytes()[:2000] for log in LOGS[:4])
    refused = 0
    for _ in range(500):
        bad = damaged(data, chance)
        try:
            decode_columns(bad, selection=Selection(is_checked=chance.random() < 0.5))
        except CorruptEntryError as error:
            refused += 0 <= error.position <= len(bad)
    assert refused > 300

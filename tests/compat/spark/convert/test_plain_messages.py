"""Plain records packed from where they stand, against the same by way of columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from logstore.compat.spark.convert import message_reader, plain_messages
from logstore.compat.spark.convert.damage import Damage
from logstore.compat.spark.convert.message_packing import UnfitRecordError
from logstore.compat.spark.convert.message_reader import MessageReader, Messages
from logstore.compat.spark.convert.plain_messages import PlainMessages
from logstore.compat.spark.work_unit import AbortedSpan, WorkUnit
from logstore.errors import CorruptEntryError
from logstore.segments.kafka.compression import Codec
from logstore.segments.kafka.record import Record, TimestampType, encode_batch

#: offset, time, position of the batch, message
Row = tuple[int, int, int, bytes]


def plain(first: int, count: int = 10, **wishes: Any) -> bytes:
    """Return a batch of plain records, some of them without a key."""
    records = [
        Record(
            offset,
            1_000_000 - offset * 977,
            None if offset % 3 == 0 else b"key %d" % offset,
            b"value" * (offset % 50),
        )
        for offset in range(first, first + count)
    ]
    return bytes(encode_batch(records, base_offset=first, **wishes))


def one(offset: int, key: bytes | None, value: bytes | None, *headers: bytes) -> bytes:
    """Return a batch of one record."""
    pairs = tuple((name.decode(), b"x") for name in headers)
    return bytes(encode_batch([Record(offset, 5, key, value, pairs)], base_offset=offset))


def flipped(batch: bytes) -> bytes:
    """Return a batch of which one bit is another, in the last record."""
    return batch[:-3] + bytes([batch[-3] ^ 1]) + batch[-2:]


def unit_of(tmp_path: Path, batches: Sequence[bytes], start: int = 0, end: int = 10**9) -> WorkUnit:
    """Write batches to a file; return the unit of all of it."""
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(b"".join(batches))
    return WorkUnit(str(path), "topic", 3, 0, path.stat().st_size, start, end)


def packed(batch: Messages) -> list[bytes]:
    """Return the messages of a step."""
    count = len(batch)
    numbers, places = np.arange(count, dtype=np.int64), np.empty(count, np.int64)
    data = batch.pack(0, count, numbers, batch.timestamps_ms + 1, 7_000, places).tobytes()
    starts = (places - 7_000).tolist()
    sizes: list[int] = batch.sizes.tolist()
    return [data[start : start + size] for start, size in zip(starts, sizes, strict=True)]


def rows_of(unit: WorkUnit, damage: list[Damage] | None = None) -> tuple[list[Row], list[type]]:
    """Return all messages of a unit, and what kind each step is of."""
    rows: list[Row] = []
    kinds: list[type] = []
    on_damage = None if damage is None else damage.append
    for batch in MessageReader(str(Path(unit.path).parent)).messages(unit, on_damage=on_damage):
        kinds.append(type(batch))
        places = zip(batch.offsets, batch.timestamps_ms, batch.positions, strict=True)
        found = zip(places, packed(batch), strict=True)
        rows += [(int(o), int(t), int(p), message) for (o, t, p), message in found]
    # Numbers and places count from the step on: they are the packer's, not the record's.
    return [(o, t, p, m[:20] + m[36:]) for o, t, p, m in rows], kinds


def _nothing(*_: Any, **__: Any) -> Iterator[PlainMessages]:
    return iter(())


def by_columns(
    unit: WorkUnit, monkeypatch: pytest.MonkeyPatch, damage: list[Damage] | None = None
) -> list[Row]:
    """Return the same without the way of plain records."""
    with monkeypatch.context() as patch:
        patch.setattr(message_reader, "plain_messages", _nothing)
        rows, kinds = rows_of(unit, damage)
    assert PlainMessages not in kinds
    return rows


ODD = {
    "header": one(40, b"k", b"v", b"name"),
    "null value": one(40, b"k", None),
    "empty key": one(40, b"", b"v"),
    "key that is no text": one(40, b"\x01k", b"v"),
    "key beyond ASCII": one(40, "é".encode(), b"v"),
    "compressed": plain(40, codec=Codec.GZIP),
    "nothing": b"",
}


@pytest.mark.parametrize("odd", ODD.values(), ids=ODD.keys())
def test_all_messages_are_the_same_on_either_way(
    odd: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is not plain, and all behind it, goes by columns; nothing is twice or missing."""
    monkeypatch.setattr(plain_messages, "_STEP_BYTES", 6_000)
    batches = [plain(0), plain(10, 30), odd, plain(50), plain(60)]
    unit = unit_of(tmp_path, batches)
    rows, kinds = rows_of(unit)
    assert rows == by_columns(unit, monkeypatch)
    assert kinds[0] is PlainMessages
    assert (set(kinds) == {PlainMessages}) is (odd == b"")
    assert [row[0] for row in rows] == sorted({row[0] for row in rows})


def test_a_unit_of_a_part_and_what_its_batches_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Offsets of a part of batches, the broker's time, control batches, transactions."""
    batches = [
        plain(0, 20),
        plain(20, timestamp_type=TimestampType.LOG_APPEND_TIME),
        plain(30, 1, is_control=True, is_transactional=True, producer_id=5),
        plain(31, is_transactional=True, producer_id=5),
        plain(50, 20),
    ]
    unit = unit_of(tmp_path, batches, 7, 61)
    rows, kinds = rows_of(unit)
    assert rows == by_columns(unit, monkeypatch)
    assert set(kinds) == {PlainMessages}
    assert [row[0] for row in rows] == [*range(7, 30), *range(31, 41), *range(50, 61)]
    aborted = WorkUnit(unit.path, "topic", 3, 0, unit.size_bytes, 7, 61, (AbortedSpan(5, 31, 40),))
    rows, kinds = rows_of(aborted)
    assert rows == by_columns(aborted, monkeypatch)
    assert 31 not in [row[0] for row in rows]
    assert PlainMessages not in kinds


def test_sizes_are_measured_without_a_look_at_checksums(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the way of columns does it; whoever writes meets the damage."""
    unit = unit_of(tmp_path, [plain(0), flipped(plain(10)), plain(20)])
    reader = MessageReader(str(tmp_path))
    sizes = [size for batch in reader.messages(unit, is_measured=True) for size in batch.sizes]
    with monkeypatch.context() as patch:
        patch.setattr(message_reader, "plain_messages", _nothing)
        others = [one for batch in reader.messages(unit, is_measured=True) for one in batch.sizes]
    assert sizes == others
    assert len(sizes) == 30


DAMAGED = {
    "checksum": flipped(plain(40)),
    "offset of the one before": plain(30),
    "offset within the one before": plain(35),
    "offset beyond": plain(10**9),
    "cut short": plain(40)[:70],
    "magic": plain(40)[:16] + b"\x07" + plain(40)[17:],
}


@pytest.mark.parametrize("damaged", DAMAGED.values(), ids=DAMAGED.keys())
def test_damage_is_told_as_on_the_other_way(
    damaged: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With file and position, whether it stops the conversion or is passed over."""
    batches = [plain(0), plain(10, 30), damaged, plain(50)]
    unit = unit_of(tmp_path, batches)
    with pytest.raises(CorruptEntryError) as found:
        rows_of(unit)
    with pytest.raises(CorruptEntryError) as expected:
        by_columns(unit, monkeypatch)
    assert (found.value.position, found.value.reason) == (
        expected.value.position,
        expected.value.reason,
    )
    assert found.value.position == len(batches[0]) + len(batches[1])
    told, others = list[Damage](), list[Damage]()
    assert rows_of(unit, told)[0] == by_columns(unit, monkeypatch, others)
    assert [str(damage) for damage in told] == [str(damage) for damage in others]
    assert len(told) == 1


def test_a_key_that_no_message_holds_is_refused(tmp_path: Path) -> None:
    """A key of 32 KiB of text does not fit into properties, of which 16 bits tell the length."""
    rows, kinds = rows_of(unit_of(tmp_path, [one(0, b"k" * 32_000, b"v")]))
    assert (len(rows), kinds) == (1, [PlainMessages])
    for size_bytes in (32_750, 40_000, 70_000):
        unit = unit_of(tmp_path, [one(0, b"k" * size_bytes, b"v")])
        if size_bytes < 32_761:
            assert len(rows_of(unit)[0]) == 1
            continue
        with pytest.raises(UnfitRecordError, match=r"topic-3: offset 0: key and headers"):
            rows_of(unit)

"""Damage in logs that were closed cleanly: nothing is missing from an answer without a word."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest

from logstore.compat.spark.columns import arrow_schema
from logstore.compat.spark.header_count import count_unit
from logstore.compat.spark.kafka_plan import plan_units
from logstore.compat.spark.kafka_rows import RowReader
from logstore.compat.spark.options import TIMESTAMP_SLACK_MS, parse_options
from logstore.compat.spark.predicates import Where
from logstore.compat.spark.rocketmq_plan import plan_messages
from logstore.compat.spark.rocketmq_rows import MessageReader
from logstore.compat.spark.stores import open_for_reading
from logstore.compat.spark.work_unit import Unit, WorkUnit
from logstore.errors import CorruptEntryError
from logstore.os_host import system_host
from logstore.segments.kafka.record_batch import iterate_batches
from logstore.segments.kafka.store import KafkaStore
from logstore.segments.rocketmq.store import RocketMQStore
from tests.segments.kafka.golden_case import GoldenCase, copy_of_data
from tests.segments.rocketmq.golden_case import GoldenCase as RocketMQCase

TOPIC = "shapes"
NAMES = ("topic", "partition", "offset", "value", "physicalOffset", "sizeBytes", "file", "position")
KAFKA_NAMES = tuple(name for name in NAMES if name not in ("physicalOffset", "sizeBytes"))
EVERYWHERE = Where()
Change = Callable[[bytearray, int, int], None]


def overwritten(at: int, data: bytes) -> Change:
    """Return what puts these bytes at that place of a batch or record."""

    def change(log: bytearray, position: int, size_bytes: int) -> None:
        log[position + at : position + at + len(data)] = data

    return change


def flipped(at: int) -> Change:
    """Return what flips a bit at that place, which counts from the end if it is negative."""

    def change(log: bytearray, position: int, size_bytes: int) -> None:
        log[position + (at if at >= 0 else size_bytes + at)] ^= 1

    return change


def zeroed(log: bytearray, position: int, size_bytes: int) -> None:
    """Leave nothing but zeros."""
    log[position : position + size_bytes] = bytes(size_bytes)


def lengthened(at: int, more: int) -> Change:
    """Return what makes a length wrong that has 32 bits at that place."""

    def change(log: bytearray, position: int, size_bytes: int) -> None:
        (length,) = struct.unpack_from(">i", log, position + at)
        struct.pack_into(">i", log, position + at, length + more)

    return change


KAFKA_DAMAGE = {
    "crc": flipped(17),
    "last-byte": flipped(-1),
    "endless": overwritten(8, b"\x7f\xff\xff\xf0"),
    "no-length": overwritten(8, bytes(4)),
    "too-long": lengthened(8, 40),
    "too-short": lengthened(8, -5),
    "magic": overwritten(16, b"\x63"),
    "zeros": zeroed,
}
MISPLACED = "physical-offset"
ROCKETMQ_DAMAGE = {
    "body": flipped(90),
    "endless": overwritten(0, b"\x7f\xff\xff\xf0"),
    "no-size": overwritten(0, bytes(4)),
    "too-long": lengthened(0, 40),
    "magic": flipped(5),
    MISPLACED: flipped(35),
    "zeros": zeroed,
}


@attrs.frozen
class Found:
    """What a query gave: places of rows, and places of damage that it tells of."""

    rows: list[tuple[str, int, int]]
    damage: list[tuple[str, int]]


def units_of(directory: Path, mode: str, where: Where, options: dict[str, str]) -> list[Unit]:
    """Return the units of a query."""
    parsed = parse_options({"path": str(directory), "mode": mode, **options})
    with open_for_reading(str(directory)) as store:
        if isinstance(store, KafkaStore):
            return list(plan_units(store, parsed, where))
        assert isinstance(store, RocketMQStore)
        return list(plan_messages(store, parsed, where))


def query(directory: Path, mode: str, where: Where = EVERYWHERE, **options: str) -> Found:
    """Read as a query does, without Spark."""
    names = KAFKA_NAMES if options.keys() & {"subscribe", "assign"} else NAMES
    schema, fs = arrow_schema((*names, "_corrupt")), system_host().fs
    rows = RowReader(fs, schema, where, mode, TIMESTAMP_SLACK_MS)
    messages = MessageReader(fs, schema, mode)
    found: list[dict[str, Any]] = []
    for unit in units_of(directory, mode, where, options):
        batches = rows.read(unit) if isinstance(unit, WorkUnit) else messages.read(unit)
        found += [row for batch in batches for row in batch.to_pylist()]
    return Found(
        sorted((r["topic"], r["partition"], r["offset"]) for r in found if not r["_corrupt"]),
        [(Path(r["file"]).name, r["position"]) for r in found if r["_corrupt"]],
    )


@attrs.frozen
class Victim:
    """A batch or record that is damaged, and the places of its rows."""

    path: Path
    position: int
    size_bytes: int
    rows: list[tuple[str, int, int]]

    def suffer(self, change: Change) -> None:
        """Damage it."""
        data = bytearray(self.path.read_bytes())
        change(data, self.position, self.size_bytes)
        self.path.write_bytes(data)


def kafka_victim(directory: Path, segment: int, batch: int) -> Victim:
    """Return a batch of one of the topic's segments."""
    path = sorted(directory.glob(f"{TOPIC}-0/*.log"))[segment]
    batches = list(iterate_batches(memoryview(path.read_bytes())))
    chosen = batches[batch]
    position = sum(one.size_bytes for one in batches[: batches.index(chosen)])
    offsets = range(chosen.base_offset, chosen.last_offset + 1)
    return Victim(path, position, chosen.size_bytes, [(TOPIC, 0, offset) for offset in offsets])


@pytest.mark.parametrize("name", KAFKA_DAMAGE)
@pytest.mark.parametrize(("segment", "batch"), [(0, 3), (-1, 0), (-1, -1)])
def test_damage_of_a_batch_is_told(name: str, segment: int, batch: int, tmp_path: Path) -> None:
    """Wherever it is, at the very end too: by an error or a row with its place, or left out."""
    directory = copy_of_data("kafka-4.3", tmp_path)
    sound = query(directory, "failfast", subscribe=TOPIC)
    victim = kafka_victim(directory, segment, batch)
    victim.suffer(KAFKA_DAMAGE[name])
    with pytest.raises(CorruptEntryError) as caught:
        query(directory, "failfast", subscribe=TOPIC)
    assert (caught.value.path, caught.value.position) == (str(victim.path), victim.position)
    left = [row for row in sound.rows if row not in victim.rows]
    assert query(directory, "dropmalformed", subscribe=TOPIC) == Found(left, [])
    told = query(directory, "permissive", subscribe=TOPIC)
    assert (told.rows, told.damage[0]) == (left, (victim.path.name, victim.position))
    rest = range(victim.position + 1, victim.position + victim.size_bytes)
    assert {position for _, position in told.damage[1:]} <= set(rest)
    assert len(left) < len(sound.rows)


def test_damage_elsewhere_is_nobodys_business(tmp_path: Path) -> None:
    """Offsets in front of a damaged end are answered, those behind it are not known."""
    directory = copy_of_data("kafka-4.3", tmp_path)
    victim = kafka_victim(directory, -1, -1)
    victim.suffer(KAFKA_DAMAGE["zeros"])
    first = victim.rows[0][2]
    before = query(directory, "failfast", Where(offset_max=first - 1), subscribe=TOPIC)
    assert before.rows[-1] == (TOPIC, 0, first - 1)
    ending = f'{{"{TOPIC}": {{"0": {first}}}}}'
    assert query(directory, "failfast", subscribe=TOPIC, endingOffsets=ending) == before
    for where in (Where(offset_min=first), Where(timestamp_ms_min=2**40)):
        with pytest.raises(CorruptEntryError, match=f"position {victim.position}"):
            query(directory, "failfast", where, subscribe=TOPIC)
    *_, last = units_of(directory, "failfast", EVERYWHERE, {"subscribe": TOPIC})
    assert isinstance(last, WorkUnit)
    with pytest.raises(CorruptEntryError, match=f"position {victim.position}"):
        count_unit(system_host().fs, last)


def test_what_a_broker_is_writing_is_no_damage(tmp_path: Path) -> None:
    """Without the marker of a clean stop half a batch at the end is not there yet."""
    directory = copy_of_data("kafka-4.3", tmp_path)
    sound = query(directory, "failfast", subscribe=TOPIC)
    (directory / ".kafka_cleanshutdown").unlink()
    path = sorted(directory.glob(f"{TOPIC}-0/*.log"))[-1]
    path.write_bytes(path.read_bytes() + path.read_bytes()[:70])
    assert query(directory, "failfast", subscribe=TOPIC) == sound
    assert len(sound.rows) == len(GoldenCase("kafka-4.3", TOPIC).expected)


def test_a_length_does_not_lead_past_the_window(tmp_path: Path) -> None:
    """Who looks for a time in headers alone does not jump over sound batches behind a bad one."""
    directory = copy_of_data("kafka-4.3", tmp_path)
    victim = kafka_victim(directory, 0, 0)
    victim.suffer(KAFKA_DAMAGE["endless"])
    with pytest.raises(CorruptEntryError, match="position 0"):
        query(directory, "failfast", Where(timestamp_ms_min=2**40 + 2**39), subscribe=TOPIC)


def rocketmq_victim(store: Path, file: int, record: int) -> Victim:
    """Return a record of one of the commit log's files."""
    path = sorted((store / "commitlog").iterdir())[file]
    fs, schema = system_host().fs, arrow_schema(NAMES)
    reader = MessageReader(fs, schema, "failfast")
    rows = [
        row
        for unit in units_of(store, "failfast", EVERYWHERE, {})
        if not isinstance(unit, WorkUnit)
        for batch in reader.read(unit)
        for row in batch.to_pylist()
        if row["file"] == str(path)
    ]
    row = rows[record]
    place = (row["topic"], row["partition"], row["offset"])
    return Victim(path, row["position"], row["sizeBytes"], [place])


@pytest.mark.parametrize("name", ROCKETMQ_DAMAGE)
@pytest.mark.parametrize(
    ("record", "split_bytes"), [(0, "134217728"), (50, "134217728"), (50, "20000"), (-1, "20000")]
)
def test_damage_of_a_message_is_told(
    record: int, split_bytes: str, name: str, tmp_path: Path
) -> None:
    """In a file that others follow: once, with its place, and all other messages are there."""
    store = RocketMQCase("plain", "5.5.0").copy_store(tmp_path / "store")
    sound = query(store, "failfast", splitBytes=split_bytes)
    victim = rocketmq_victim(store, 0, record)
    victim.suffer(ROCKETMQ_DAMAGE[name])
    with pytest.raises(CorruptEntryError) as caught:
        query(store, "failfast", splitBytes=split_bytes)
    assert (caught.value.path, caught.value.position) == (str(victim.path), victim.position)
    left = [row for row in sound.rows if row not in victim.rows]
    assert query(store, "dropmalformed", splitBytes=split_bytes) == Found(left, [])
    told = [(victim.path.name, victim.position)]
    assert query(store, "permissive", splitBytes=split_bytes) == Found(left, told)


@pytest.mark.parametrize("name", [name for name in ROCKETMQ_DAMAGE if name != MISPLACED])
@pytest.mark.parametrize("record", [0, 20])
def test_damage_that_ends_a_commit_log_is_told(name: str, record: int, tmp_path: Path) -> None:
    """In the last file a broker would end its log there: an error, a row, or what is before it."""
    store = RocketMQCase("plain", "5.5.0").copy_store(tmp_path / "store")
    victim = rocketmq_victim(store, -1, record)
    before = len(query(store, "failfast").rows)
    victim.suffer(ROCKETMQ_DAMAGE[name])
    with pytest.raises(CorruptEntryError, match="logstore salvage") as caught:
        query(store, "failfast", Where(offset_min=10**6))
    assert (caught.value.path, caught.value.position) == (str(victim.path), victim.position)
    dropped, told = query(store, "dropmalformed"), query(store, "permissive")
    assert told == Found(dropped.rows, [(victim.path.name, victim.position)])
    assert victim.rows[0] not in dropped.rows
    assert before - 46 < len(dropped.rows) < before


@pytest.mark.parametrize("record", [0, 20])
def test_a_message_that_is_wrong_in_its_place_alone_ends_no_log(
    record: int, tmp_path: Path
) -> None:
    """A broker goes on behind it, after a clean stop: so it alone is told, and all others found."""
    store = RocketMQCase("plain", "5.5.0").copy_store(tmp_path / "store")
    sound = query(store, "failfast")
    victim = rocketmq_victim(store, -1, record)
    victim.suffer(ROCKETMQ_DAMAGE[MISPLACED])
    with pytest.raises(CorruptEntryError) as caught:
        query(store, "failfast")
    assert (caught.value.path, caught.value.position) == (str(victim.path), victim.position)
    left = [row for row in sound.rows if row not in victim.rows]
    told = [(victim.path.name, victim.position)]
    assert query(store, "permissive") == Found(left, told)

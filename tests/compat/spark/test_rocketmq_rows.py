"""Units of RocketMQ stores, planned and read: every row as the real consumer saw the message."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from logstore.compat.spark.option_values import OptionError
from logstore.compat.spark.options import parse_options
from logstore.compat.spark.predicates import Where
from logstore.compat.spark.rocketmq_plan import plan_messages
from logstore.compat.spark.rocketmq_rows import MessageReader
from logstore.compat.spark.rocketmq_unit import RocketMQUnit
from logstore.compat.spark.stores import open_for_reading
from logstore.errors import CorruptEntryError
from logstore.os_host import system_host
from logstore.segments.rocketmq.store import RocketMQStore
from tests.segments.rocketmq.golden_case import GoldenCase

#: it carries no types
pa: Any = importlib.import_module("pyarrow")
HEADER = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])
SCHEMA = pa.schema(
    [
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("offset", pa.int64()),
        pa.field("timestamp", pa.timestamp("us", tz="UTC")),
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("headers", pa.list_(HEADER)),
        pa.field("properties", pa.map_(pa.string(), pa.string())),
        pa.field("tags", pa.string()),
        pa.field("physicalOffset", pa.int64()),
        pa.field("position", pa.int64()),
    ]
)
CASES = (
    ("plain", "4.9.8"),
    ("plain", "5.5.0"),
    ("properties", "4.9.8"),
    ("properties", "5.5.0"),
    ("ipv6", "5.5.0"),
    ("delay", "4.9.8"),
    ("transactions", "5.5.0"),
    ("flush-async", "4.9.8"),
    ("flush-sync", "5.5.0"),
    ("groups", "5.5.0"),
    ("batch-queue", "5.5.0"),
    ("version-2", "5.5.0"),
)
EVERYWHERE = Where()


def units_of(
    directory: Path, options: Mapping[str, str] | None = None, where: Where = EVERYWHERE
) -> list[RocketMQUnit]:
    """Return the units of a query."""
    with open_for_reading(str(directory)) as store:
        assert isinstance(store, RocketMQStore)
        parsed = parse_options({"path": str(directory), **(options or {})})
        return plan_messages(store, parsed, where)


def rows_of(
    units: list[RocketMQUnit], mode: str = "failfast", schema: Any = SCHEMA
) -> list[dict[str, Any]]:
    """Read units one after the other."""
    reader = MessageReader(system_host().fs, schema, mode)
    return [row for unit in units for batch in reader.read(unit) for row in batch.to_pylist()]


def places_of(rows: list[dict[str, Any]]) -> list[tuple[str, int, int]]:
    """Return where the rows come from, in order."""
    return sorted((row["topic"], row["partition"], row["offset"]) for row in rows)


@pytest.mark.parametrize("split_bytes", ["134217728", "7001"])
@pytest.mark.parametrize(("name", "version"), CASES)
def test_every_row_is_as_the_real_consumer_read_it(
    name: str, version: str, split_bytes: str
) -> None:
    """Topic, queue, queue offset, body, properties and born time; wherever the log is split."""
    case = GoldenCase(name, version)
    topics = sorted({message["topic"] for message in case.expected})
    options = {"subscribe": ",".join(topics), "splitBytes": split_bytes}
    rows = {
        (row["topic"], row["partition"], row["offset"]): row
        for row in rows_of(units_of(case.store, options))
    }
    for message in case.expected:
        row = rows[message["topic"], message["queueId"], message["queueOffset"]]
        assert row["value"] == message["body"]
        assert round(row["timestamp"].timestamp() * 1000) == message["bornTimestamp"]
        assert dict(row["properties"]) == message["properties"]
        keys = message["properties"].get("KEYS")
        assert row["key"] == (None if keys is None else keys.encode())
        assert row["tags"] == message["properties"].get("TAGS")
    assert len(case.expected) > 0


def test_what_brokers_keep_for_themselves_is_read_only_when_named() -> None:
    """Half messages, their decisions and pending delays are no records of anybody."""
    store = GoldenCase("transactions", "5.5.0").store
    topics = {row["topic"] for row in rows_of(units_of(store))}
    assert topics
    assert not any(topic.startswith(("RMQ_SYS", "SCHEDULE", "rmq_sys")) for topic in topics)
    half = rows_of(units_of(store, {"subscribe": "RMQ_SYS_TRANS_HALF_TOPIC"}))
    assert {row["topic"] for row in half} == {"RMQ_SYS_TRANS_HALF_TOPIC"}


def test_offsets_partitions_and_topics_narrow_the_rows() -> None:
    """By filters and by the options of a read."""
    store = GoldenCase("plain", "5.5.0").store
    everything = places_of(rows_of(units_of(store)))
    topic = everything[0][0]
    where = Where(frozenset({topic}), frozenset({0}), 2, 4)
    wanted = [one for one in everything if one[0] == topic and one[1] == 0 and 2 <= one[2] <= 4]
    assert places_of(rows_of(units_of(store, where=where))) == wanted
    assert len(wanted) == 3
    options = {
        "subscribe": topic,
        "startingOffsets": f'{{"{topic}": {{"0": 3}}}}',
        "endingOffsets": f'{{"{topic}": {{"0": 5, "1": -1}}}}',
    }
    found = [one for one in places_of(rows_of(units_of(store, options))) if one[1] == 0]
    assert found == [(topic, 0, 3), (topic, 0, 4)]
    with pytest.raises(OptionError, match="nosuch"):
        units_of(store, {"subscribe": "nosuch"})


def test_damage_is_told_or_passed_over(tmp_path: Path) -> None:
    """By file and position; behind it the rows go on."""
    case = GoldenCase("plain", "5.5.0")
    store = case.copy_store(tmp_path / "store")
    units = units_of(store)
    rows = rows_of(units)
    victim = rows[len(rows) // 2]
    path = Path(max(u.path for u in units if u.base_physical_offset <= victim["physicalOffset"]))
    data = bytearray(path.read_bytes())
    data[victim["position"] + 90] ^= 0xFF
    path.write_bytes(data)
    with pytest.raises(CorruptEntryError, match=path.name) as caught:
        rows_of(units)
    assert caught.value.position == victim["position"]
    dropped = places_of(rows_of(units, "dropmalformed"))
    lost = (victim["topic"], victim["partition"], victim["offset"])
    assert dropped == [place for place in places_of(rows) if place != lost]
    schema = pa.schema([*SCHEMA, pa.field("_corrupt", pa.string())])
    told = [row for row in rows_of(units, "permissive", schema) if row["_corrupt"]]
    assert [(row["position"], row["topic"]) for row in told] == [(victim["position"], None)]

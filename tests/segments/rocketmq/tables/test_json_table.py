"""A table's file and its backup: which is read, what is never lost."""

from __future__ import annotations

import errno

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logstore.errors import CorruptFileError
from logstore.host import read_file
from logstore.segments.rocketmq.tables.consumer_filters import ConsumerFilterTable
from logstore.segments.rocketmq.tables.consumer_offsets import (
    ConsumerOffsetTable,
    LightConsumerOffsetTable,
)
from logstore.segments.rocketmq.tables.delay_offsets import DelayOffsetTable
from logstore.segments.rocketmq.tables.java_json import JsonError
from logstore.segments.rocketmq.tables.json_fields import JsonTypeError
from logstore.segments.rocketmq.tables.json_table import JsonTable
from logstore.segments.rocketmq.tables.subscription_groups import SubscriptionGroupTable
from logstore.segments.rocketmq.tables.topics import TopicConfig, TopicTable
from logstore.testing.crash_points import every_power_loss
from logstore.testing.simulated_host import SimulatedHost

CONFIG = "/store/config"
PATH = f"{CONFIG}/delayOffset.json"


def world() -> SimulatedHost:
    """Return a world with an empty store directory."""
    host = SimulatedHost()
    host.fs.make_directory("/store")
    host.fs.sync_directory("/")
    return host


def table_of(host: SimulatedHost, *puts: int) -> DelayOffsetTable:
    """Return a table that was persisted after each put of level 1."""
    table = DelayOffsetTable(host, CONFIG)
    for queue_offset in puts:
        table.put(1, queue_offset)
        table.persist()
    return table


def loaded(host: SimulatedHost) -> int | None:
    """Return what a new table reads for level 1."""
    table = DelayOffsetTable(host, CONFIG)
    table.load()
    return table.get(1)


def overwrite(host: SimulatedHost, path: str, data: bytes) -> None:
    """Let a file hold these bytes."""
    file = host.fs.open(path, create=True)
    file.truncate(0)
    file.write(0, data)
    file.sync()
    file.close()


def test_a_missing_file_is_an_empty_table() -> None:
    """Without file and backup the table is empty, and that is no error."""
    table = DelayOffsetTable(world(), CONFIG)
    assert table.load() is False
    assert table.offsets == {}
    assert not table.is_dirty


def test_the_file_before_is_the_backup() -> None:
    """Each persist keeps the content before it as .bak and leaves nothing else behind."""
    host = world()
    table_of(host, 5, 6, 7)
    assert loaded(host) == 7
    host.fs.remove(PATH)
    assert loaded(host) == 6
    assert [entry.name for entry in host.fs.list_directory(CONFIG)] == ["delayOffset.json.bak"]


@pytest.mark.parametrize("data", [b"", b"{", b'{"offsetTable":{1:"x"}}', b"\xff", b"[]", b"7"])
def test_a_damaged_file_gives_way_to_its_backup_and_is_kept(data: bytes) -> None:
    """The backup is read in place of a damaged file, which the next persist keeps aside."""
    host = world()
    table_of(host, 5, 6)
    overwrite(host, PATH, data)
    table = DelayOffsetTable(host, CONFIG)
    assert table.load() is True
    assert table.get(1) == 5
    assert read_file(host.fs, PATH) == data
    table.put(1, 9)
    table.persist()
    assert loaded(host) == 9
    assert read_file(host.fs, f"{PATH}.damaged") == data
    host.fs.remove(PATH)
    assert loaded(host) == 5
    table.persist()
    table.persist()
    host.fs.remove(PATH)
    assert loaded(host) == 9


def test_zeros_are_no_file() -> None:
    """A power loss leaves them of what was not synced; with a backup that counts."""
    host = world()
    table_of(host, 1, 2)
    overwrite(host, PATH, bytes(50))
    assert loaded(host) == 1
    overwrite(host, f"{PATH}.bak", bytes(50))
    assert loaded(host) is None


def test_bytes_that_are_no_text_spoil_one_name_only() -> None:
    """As in Java; all others are there."""
    host = world()
    table = TopicTable(host, CONFIG)
    for name in ("one", "two"):
        table.put(TopicConfig(name))
    table.persist()
    path = f"{CONFIG}/topics.json"
    overwrite(host, path, read_file(host.fs, path).replace(b"one", b"o\xffe"))
    again = TopicTable(host, CONFIG)
    assert again.load()
    assert set(again.topics) == {"o\ufffde", "two"}


def test_two_damaged_files_are_an_error_that_names_them() -> None:
    """Where neither can be read the error names the file, both reasons and what to do."""
    host = world()
    table_of(host, 5, 6)
    overwrite(host, PATH, b"{oops")
    overwrite(host, f"{PATH}.bak", b"{1:}")
    with pytest.raises(CorruptFileError) as caught:
        loaded(host)
    for part in (PATH, "character 5", "delayOffset.json.bak: character 3", "move it away"):
        assert part in str(caught.value)


def test_power_loss_at_any_moment_leaves_the_old_or_the_new() -> None:
    """Whenever the power goes, a load gives the last table persisted, or the one on its way."""

    def workload(host: SimulatedHost) -> None:
        host.fs.make_directory("/store")
        host.fs.sync_directory("/")
        table = DelayOffsetTable(host, CONFIG)
        for queue_offset in (5, 6, 7):
            table.put(1, queue_offset)
            host.fs.journal.note("begun", queue_offset)
            table.persist()
            host.fs.journal.note("persisted", queue_offset)

    points = 0
    for point in every_power_loss(workload):
        persisted = max(point.host.fs.journal.notes("persisted", int), default=None)
        begun = max(point.host.fs.journal.notes("begun", int), default=None)
        assert loaded(point.host) in (persisted, begun), point
        points += 1
    assert points > 100


def test_a_refused_write_leaves_the_table_dirty() -> None:
    """Where the disk refuses, the old file stays, the table stays dirty and can be persisted."""
    host = world()
    table = table_of(host, 5)
    table.put(1, 6)
    host.fs.faults.fail_next("write", errno.ENOSPC, partial_bytes=3)
    with pytest.raises(OSError, match="ENOSPC"):
        table.persist_if_dirty()
    assert table.is_dirty
    assert loaded(host) == 5
    assert table.persist_if_dirty()
    assert not table.persist_if_dirty()
    assert loaded(host) == 6


def test_changes_during_a_write_make_the_table_dirty_again() -> None:
    """What changes between the begin and the end of a write is not in it and waits for the next."""
    host = world()
    table = table_of(host, 5)
    table.put(1, 6)
    write = table.begin_persist()
    table.put(1, 7)
    write.run()
    table.end_persist()
    assert loaded(host) == 6
    assert table.persist_if_dirty()
    assert loaded(host) == 7


def test_fields_of_other_releases_are_kept() -> None:
    """What no field here is made for stands in the file again after a change."""
    host = world()
    table = TopicTable(host, CONFIG)
    table.decode(b'{"topicConfigTable":{"t":{"perm":4,"colour":"red"}},"future":[1]}')
    topic = table.get("t")
    assert topic is not None
    assert (topic.topic_name, topic.perm) == ("t", 4)
    table.put(TopicConfig("u"))
    content = table.to_json()
    assert content["topicConfigTable"]["t"]["colour"] == "red"
    assert content["future"] == [1]


TABLES: list[type[JsonTable]] = [
    TopicTable,
    SubscriptionGroupTable,
    ConsumerOffsetTable,
    LightConsumerOffsetTable,
    DelayOffsetTable,
    ConsumerFilterTable,
]
NAMES = [
    "dataVersion", "topicConfigTable", "subscriptionGroupTable", "forbiddenTable", "offsetTable",
    "pullOffsetTable", "lmqOffsetTable", "filterDataByTopic", "groupFilterData", "counter",
    "perm", "attributes", "t@g", "bloomFilterData", "bitPos", "bornTime",
]  # fmt: skip
contents = st.recursive(
    st.sampled_from(["", "1", "-7", "true", "null", '"x"', '"12"', "[]", "{}", "1.5", "9" * 25]),
    lambda inner: st.one_of(
        st.lists(inner, max_size=2).map(lambda items: f"[{','.join(items)}]"),
        st.dictionaries(st.sampled_from(NAMES), inner, max_size=3).map(
            lambda fields: "{" + ",".join(f'"{name}":{one}' for name, one in fields.items()) + "}"
        ),
    ),
    max_leaves=10,
)


@given(st.sampled_from(TABLES), contents)
def test_any_text_is_a_table_or_refused_without_a_change(kind: type[JsonTable], text: str) -> None:
    """Whatever a file says, a table takes it and can be written, or refuses it and is unchanged."""
    table = kind(world(), CONFIG)
    before = table.encoded(is_pretty=True)
    try:
        table.decode(text.encode())
    except (JsonError, JsonTypeError):
        assert table.encoded(is_pretty=True) == before
        return
    again = kind(world(), CONFIG)
    again.decode(table.encoded(is_pretty=True))
    assert again.encoded(is_pretty=True) == table.encoded(is_pretty=True)

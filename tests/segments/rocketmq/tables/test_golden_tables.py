"""Real brokers' tables read and written again, byte for byte."""

from __future__ import annotations

from pathlib import Path

import pytest

from logstore.segments.rocketmq.settings.release import Release
from logstore.segments.rocketmq.tables.consumer_filters import ConsumerFilterTable
from logstore.segments.rocketmq.tables.consumer_offsets import (
    ConsumerOffsetTable,
    LightConsumerOffsetTable,
)
from logstore.segments.rocketmq.tables.delay_offsets import DelayOffsetTable
from logstore.segments.rocketmq.tables.java_json import format_json, parse_json
from logstore.segments.rocketmq.tables.json_table import JsonTable
from logstore.segments.rocketmq.tables.message_request_modes import MessageRequestModeTable
from logstore.segments.rocketmq.tables.subscription_groups import SubscriptionGroupTable
from logstore.segments.rocketmq.tables.topics import TopicConfig, TopicTable
from logstore.testing.manual_clock import ManualClock
from logstore.testing.simulated_host import SimulatedHost
from tests.segments.rocketmq.golden_case import GoldenCase, golden_cases

#: when the golden data were made
GOLDEN_MS = 1_795_233_000_000
TABLES: dict[str, type[JsonTable]] = {
    kind.file_name: kind
    for kind in (
        TopicTable,
        SubscriptionGroupTable,
        ConsumerOffsetTable,
        LightConsumerOffsetTable,
        DelayOffsetTable,
        ConsumerFilterTable,
        MessageRequestModeTable,
    )
}


def config_files(case: GoldenCase) -> list[Path]:
    """Return every JSON file and backup below a ``config`` folder of the case."""
    return sorted(
        path
        for path in case.folder.rglob("config/*")
        if path.name.removesuffix(".bak").endswith(".json") and path.stat().st_size
    )


def new_table(kind: type[JsonTable], version: str) -> JsonTable:
    """Return an empty table in a simulated world at the time of the golden data."""
    host = SimulatedHost(clock=ManualClock(GOLDEN_MS))
    return kind(host, "/store/config", Release(version))


@pytest.mark.parametrize("case", golden_cases(), ids=lambda case: case.id)
def test_every_table_is_written_as_it_was_read(case: GoldenCase) -> None:
    """Each file below config/ goes through its table and comes out byte for byte the same."""
    files = config_files(case)
    assert len(files) >= 6
    for path in files:
        data = path.read_bytes()
        kind = TABLES.get(path.name.removesuffix(".bak"))
        if kind is None:  # tables that only a running broker of 5.x makes something of
            assert format_json(parse_json(data.decode()), Release.V5, is_pretty=True) == data
            continue
        table = new_table(kind, case.version)
        table.decode(data)
        # A slave's delayOffset.json is the master's answer as it came.
        assert table.encoded(is_pretty=data.startswith(b"{\n")) == data, path


@pytest.mark.parametrize("case", golden_cases("groups", "plain"), ids=lambda case: case.id)
def test_the_order_of_entries_follows_from_their_names(case: GoldenCase) -> None:
    """Entries put in any order stand in the file as in that of the real broker."""
    for path in config_files(case):
        if path.name not in ("topics.json", "consumerOffset.json"):
            continue
        content = parse_json(path.read_bytes().decode())
        name = "topicConfigTable" if path.name == "topics.json" else "offsetTable"
        turned = {**content, name: dict(sorted(content[name].items()))}
        table = new_table(TABLES[path.name], case.version)
        table.take_json(turned)
        assert table.encoded(is_pretty=True) == path.read_bytes()


@pytest.mark.parametrize("case", golden_cases("groups"), ids=lambda case: case.id)
def test_values_are_those_that_clients_set(case: GoldenCase) -> None:
    """The groups case's topics, groups and offsets read as the client made them."""
    host = SimulatedHost(clock=ManualClock(GOLDEN_MS))
    config = case.store / "config"
    topics = TopicTable(host, "/store/config", Release(case.version))
    topics.decode((config / "topics.json").read_bytes())
    made = topics.get("stock_mail_98")
    assert made is not None
    assert (made.read_queue_count, made.write_queue_count) == (3, 2)
    assert made.topic_filter_type == "MULTI_TAG"
    assert topics.data_version.counter == 8
    offsets = ConsumerOffsetTable(host, "/store/config", Release(case.version))
    offsets.decode((config / "consumerOffset.json").read_bytes())
    assert offsets.of_group("group_made", "pay_metric_53") == {0: 3, 1: 4, 2: 5, 3: 6}
    assert "group_red" in offsets.groups_of("invoice_invoice_70")
    groups = SubscriptionGroupTable(host, "/store/config", Release(case.version))
    groups.decode((config / "subscriptionGroup.json").read_bytes())
    assert groups.get("group_red") is not None
    assert groups.get("nobody") is None


def test_a_table_of_one_release_is_read_by_the_other() -> None:
    """What 4.x wrote 5.x reads and writes on as 5.x, and the other way round, without loss."""
    for version, other in (("4.9.8", "5.5.0"), ("5.5.0", "4.9.8")):
        (case,) = golden_cases("groups", version=version)
        for name in ("topics.json", "consumerOffset.json", "subscriptionGroup.json"):
            table = new_table(TABLES[name], other)
            table.decode((case.store / "config" / name).read_bytes())
            again = new_table(TABLES[name], version)
            again.decode(table.encoded(is_pretty=True))
            old = new_table(TABLES[name], version)
            old.decode((case.store / "config" / name).read_bytes())
            assert again.to_json().keys() == old.to_json().keys()
            for attribute in ("topics", "groups", "offsets", "pull_offsets"):
                assert getattr(again, attribute, None) == getattr(old, attribute, None)


def test_defaults_are_those_of_java() -> None:
    """A topic or group that only has a name has Java's values."""
    assert TopicConfig("t").to_json() == {
        "attributes": {},
        "order": False,
        "perm": 6,
        "readQueueNums": 16,
        "topicFilterType": "SINGLE_TAG",
        "topicName": "t",
        "topicSysFlag": 0,
        "writeQueueNums": 16,
    }

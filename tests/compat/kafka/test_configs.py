"""DescribeConfigs, AlterConfigs, IncrementalAlterConfigs: settings, shown and changed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from logstore.segments.kafka.broker_config import BROKER_CONFIG_KEYS
from logstore.segments.kafka.listed_config_keys import LISTED_CONFIG_KEYS
from logstore.segments.kafka.topic_config_keys import TOPIC_CONFIG_KEYS
from tests.compat.kafka.config_requests import (
    APPEND,
    BROKER,
    DELETE,
    GROUP,
    GROUP_SESSION,
    LOGGER,
    METRICS,
    SET,
    SUBTRACT,
    TOPIC,
    alter,
    describe,
    replace,
    shown,
)
from tests.compat.kafka.conversation import DIRECTORY, HOST, PORT, Conversation, message_class

# describing


@pytest.mark.parametrize("version", range(1, 5))
def test_every_version_shows_every_topic_setting(version: int) -> None:
    """Every version shows all topic settings but the internal one; v3 adds types and words."""
    conversation = Conversation()
    conversation.create("a")
    result = describe(conversation, TOPIC, "a", version=version)
    assert result["error_code"] == 0
    assert set(result["configs"]) == set(TOPIC_CONFIG_KEYS) - {"internal.segment.bytes"}
    for name, entry in result["configs"].items():
        assert not entry["read_only"]
        assert not entry["is_sensitive"]
        if version >= 3:
            assert entry["config_type"] == TOPIC_CONFIG_KEYS[name].type
            assert entry["documentation"] == TOPIC_CONFIG_KEYS[name].doc


def test_a_topic_is_shown_as_the_real_broker_shows_it(golden: Path) -> None:
    """With the recorded broker's settings every topic setting comes out as it was recorded."""
    lines = (golden / "wire" / "librdkafka.jsonl").read_text().splitlines()
    recorded = next(
        frame for frame in map(json.loads, lines)
        if frame["from"] == "broker" and frame["api"] == "DescribeConfigs"
    )  # fmt: skip
    decoded = message_class("DescribeConfigsResponse").decode(
        bytes.fromhex(recorded["hex"]), version=recorded["version"], header=True
    )
    (theirs,) = decoded.to_dict(json=False)["results"]
    conversation = Conversation(
        {
            "log.retention.ms": "-1",
            "log.segment.delete.delay.ms": "100",
            "log.index.size.max.bytes": "65536",
        }
    )
    conversation.create("wire-librdkafka", settings={"retention.ms": "-1"})
    ours = describe(conversation, TOPIC, "wire-librdkafka", version=recorded["version"])
    assert ours.pop("configs") == {entry["name"]: entry for entry in theirs.pop("configs")}
    assert ours == theirs


def test_names_restrict_what_is_shown() -> None:
    """A list of names restricts the answer, unknown ones are left out, an empty list does not."""
    conversation = Conversation()
    conversation.create("a")
    some = describe(conversation, TOPIC, "a", ["segment.ms", "no.such"])
    assert list(some["configs"]) == ["segment.ms"]
    assert len(describe(conversation, TOPIC, "a", [])["configs"]) > 30


def test_the_broker_shows_its_settings() -> None:
    """The broker shows every setting, the given ones as given, and which cannot be changed."""
    conversation = Conversation({"log.retention.minutes": "5", "num.partitions": "3"})
    result = describe(conversation, BROKER, "1")
    assert result["error_code"] == 0
    settings = result["configs"]
    internal = {
        "group.consumer.regex.refresh.interval.ms",
        "group.share.initialize.retry.interval.ms",
        "log.initial.task.delay.ms",
        "share.coordinator.cold.partition.snapshot.interval.ms",
        "share.coordinator.state.topic.prune.interval.ms",
    }
    older = {"group.share.max.groups", "leader.imbalance.per.broker.percentage"}
    hidden = internal | older | {"producer.id.expiration.check.interval.ms"}
    assert set(settings) == {*BROKER_CONFIG_KEYS, *LISTED_CONFIG_KEYS} - hidden
    assert len(settings) == 340, "as many as Kafka 4.3 tells"
    assert (settings["num.partitions"]["value"], settings["num.partitions"]["config_source"]) == (
        "3", 4,
    )  # fmt: skip
    assert settings["num.partitions"]["read_only"]
    assert not settings["log.retention.ms"]["read_only"]
    assert settings["log.retention.ms"]["value"] is None
    assert settings["log.retention.minutes"]["synonyms"] == [
        {"name": "log.retention.minutes", "value": "5", "source": 4},
        {"name": "log.retention.hours", "value": "168", "source": 5},
    ]


def test_an_internal_setting_is_shown_where_it_was_given() -> None:
    """What Kafka keeps to itself it shows all the same to who has set it."""
    conversation = Conversation({"log.initial.task.delay.ms": "300"})
    assert shown(conversation, BROKER, "1", "log.initial.task.delay.ms") == ("300", 4)


def test_the_broker_shows_where_it_really_is() -> None:
    """Address, data directory and number are shown as they are, not as the settings have them."""
    conversation = Conversation({"listeners": "PLAINTEXT://elsewhere:1", "node.id": "3"})
    address = f"PLAINTEXT://{HOST}:{PORT}"
    assert shown(conversation, BROKER, "3", "listeners") == (address, 4)
    assert shown(conversation, BROKER, "3", "advertised.listeners") == (address, 4)
    assert shown(conversation, BROKER, "3", "log.dirs") == (DIRECTORY, 4)
    assert shown(conversation, BROKER, "3", "broker.id") == ("3", 4)


def test_the_cluster_shows_only_what_was_changed() -> None:
    """Without a name: what was changed for every broker, first of all by the controller itself."""
    conversation = Conversation({"log.retention.ms": "1000"})
    assert list(describe(conversation, BROKER, "")["configs"]) == ["min.insync.replicas"]
    alter(conversation, BROKER, "", ("log.retention.ms", SET, "2000"))
    alter(conversation, BROKER, "1", ("log.segment.bytes", SET, "2000000"))
    entry, _ = describe(conversation, BROKER, "")["configs"].values()
    assert (entry["name"], entry["value"], entry["config_source"]) == (
        "log.retention.ms",
        "2000",
        3,
    )


@pytest.mark.parametrize(
    ("kind", "name", "code"),
    [
        (TOPIC, "no-such", 3),
        (TOPIC, "no such", 17),
        (TOPIC, "", 17),
        (BROKER, "2", 42),
        (BROKER, "one", 42),
        (LOGGER, "2", 42),
        (LOGGER, "", 42),
        (GROUP, "", 42),
        (METRICS, "", 42),
        (99, "x", 42),
    ],
)
def test_what_has_no_settings_is_refused(kind: int, name: str, code: int) -> None:
    """An unknown resource gets its code and no settings."""
    result = describe(Conversation(), kind, name)
    assert (result["error_code"], result["configs"]) == (code, {})


# changing topics


@pytest.mark.parametrize("version", range(2))
def test_single_settings_change_at_once_and_for_good(version: int) -> None:
    """A change holds for the open log, is shown with its source, and survives a restart."""
    conversation = Conversation()
    conversation.create("a", settings={"segment.ms": "60000"})
    partition = conversation.broker.topics["a"].partitions[0]
    change = ("retention.ms", SET, "5000")
    assert alter(conversation, TOPIC, "a", change, version=version) == 0
    assert partition.config.retention_ms == 5000
    assert shown(conversation, TOPIC, "a", "retention.ms") == ("5000", 1)
    assert shown(conversation, TOPIC, "a", "segment.ms") == ("60000", 1)
    conversation.restart()
    assert shown(conversation, TOPIC, "a", "retention.ms") == ("5000", 1)


def test_a_deleted_setting_is_the_brokers_again() -> None:
    """Deleting a setting brings back the broker's, or Kafka's, value; it needs no value itself."""
    conversation = Conversation({"log.retention.ms": "7000"})
    conversation.create("a", settings={"retention.ms": "5000", "segment.ms": "60000"})
    changes = (("retention.ms", DELETE, None), ("segment.ms", DELETE, "ignored"))
    assert alter(conversation, TOPIC, "a", *changes) == 0
    assert shown(conversation, TOPIC, "a", "retention.ms") == ("7000", 4)
    assert shown(conversation, TOPIC, "a", "segment.ms") == ("604800000", 5)
    assert conversation.broker.topics["a"].settings == {}


def test_lists_grow_and_shrink() -> None:
    """A list is appended to and subtracted from; what it has twice comes once."""
    conversation = Conversation()
    conversation.create("a")
    key = "cleanup.policy"
    assert alter(conversation, TOPIC, "a", (key, APPEND, "compact,delete")) == 0
    assert shown(conversation, TOPIC, "a", key) == ("delete,compact", 1)
    assert alter(conversation, TOPIC, "a", (key, SUBTRACT, "delete")) == 0
    assert shown(conversation, TOPIC, "a", key) == ("compact", 1)
    assert conversation.broker.topics["a"].partitions[0].config.is_compacted
    assert alter(conversation, TOPIC, "a", ("segment.ms", APPEND, "1")) == 40
    assert alter(conversation, TOPIC, "a", ("no.such", APPEND, "1")) == 40


@pytest.mark.parametrize(
    ("kind", "name", "changes", "code"),
    [
        (TOPIC, "a", [("segment.ms", SET, "0")], 40),
        (TOPIC, "a", [("segment.ms", SET, "soon")], 40),
        (TOPIC, "a", [("no.such", SET, "1")], 40),
        (
            TOPIC,
            "a",
            [("min.compaction.lag.ms", SET, "2"), ("max.compaction.lag.ms", SET, "1")],
            40,
        ),
        (TOPIC, "a", [("leader.replication.throttled.replicas", SET, "foo")], 40),
        (TOPIC, "a", [("remote.storage.enable", SET, "true")], 40),
        (TOPIC, "a", [("segment.ms", SET, None)], 42),
        (TOPIC, "a", [("segment.ms", 4, "1")], 42),
        (TOPIC, "a", [("segment.ms", SET, "1"), ("segment.ms", DELETE, None)], 42),
        (TOPIC, "no-such", [("segment.ms", SET, "1")], 3),
        (TOPIC, "no such", [("segment.ms", SET, "1")], 17),
        (TOPIC, "", [("segment.ms", SET, "1")], 42),
        (BROKER, "2", [("log.retention.ms", SET, "1")], 42),
        (BROKER, "1", [("num.partitions", SET, "2")], 42),
        (BROKER, "1", [("metrics.num.samples", SET, "3")], 42),
        (BROKER, "1", [("ssl.keystore.type", SET, "JKS")], 42),
        (BROKER, "1", [("group.consumer.max.size", SET, "9")], 42),
        (BROKER, "1", [("group.consumer.assignment.interval.ms", SET, "-1")], 42),
        (BROKER, "1", [("cordoned.log.dirs", SET, "/a")], 42),
        (BROKER, "1", [("log.retention.ms", SET, "0")], 42),
        (BROKER, "1", [("log.segment.bytes", SET, "1")], 42),
        (GROUP, "g", [("x", SET, "1")], 40),
        (GROUP, "", [], 42),
        (GROUP, "g", [(GROUP_SESSION, SET, "abc")], 40),
        (GROUP, "g", [(GROUP_SESSION, SET, "44999")], 40),
        (GROUP, "g", [(GROUP_SESSION, SET, "60001")], 40),
        (GROUP, "g", [("share.auto.offset.reset", SET, "by_duration:P")], 40),
        (GROUP, "g", [("share.isolation.level", SET, "serializable")], 40),
        (GROUP, "g", [("streams.num.standby.replicas", SET, "-1")], 40),
        (METRICS, "m", [("x", SET, "1")], 42),
        (METRICS, "", [("interval.ms", SET, "100")], 42),
        (METRICS, "m", [("interval.ms", SET, "99")], 42),
        (METRICS, "m", [("interval.ms", SET, "3600001")], 42),
        (METRICS, "m", [("interval.ms", SET, "x")], 40),
        (METRICS, "m", [("match", SET, "nosuch=.*")], 40),
        (METRICS, "m", [("match", SET, "client_id")], 40),
        (METRICS, "m", [("match", SET, "client_id=[")], 40),
    ],
)
def test_a_bad_change_changes_nothing(
    kind: int, name: str, changes: list[tuple[str, int, str | None]], code: int
) -> None:
    """A change that breaks a rule gets that rule's code, and the good ones beside it fall too."""
    conversation = Conversation()
    conversation.create("a", settings={"retention.ms": "5000"})
    good = {
        TOPIC: ("flush.ms", SET, "1000"),
        BROKER: ("log.flush.interval.messages", SET, "1000"),
        GROUP: ("consumer.heartbeat.interval.ms", SET, "6000"),
        METRICS: ("metrics", SET, "org.apache"),
    }.get(kind, ("y", SET, "1000"))
    assert alter(conversation, kind, name, good, *changes) == code
    assert conversation.broker.topics["a"].settings == {"retention.ms": "5000"}
    assert conversation.broker.dynamic_config.of_broker == {}
    for named in (GROUP, METRICS):
        assert conversation.broker.store.metadata.resources_with_settings(named) == []


def test_a_setting_of_one_listener_is_shown() -> None:
    """Its value too; of those that nobody knows, secrets perhaps, only that they are set."""
    conversation = Conversation()
    prefix = "listener.name.internal."
    values = {"max.connections": "70", "ssl.truststore.password": "x", "no.such": "y"}
    changes = [(prefix + name, SET, value) for name, value in values.items()]
    assert alter(conversation, BROKER, "1", *changes) == 0
    assert [shown(conversation, BROKER, "1", prefix + name) for name in values] == [
        ("70", 2),
        (None, 2),
        (None, 2),
    ]


def test_a_throttle_of_replication_is_shown() -> None:
    """Nothing here replicates; it is kept with its value, and taken back."""
    conversation = Conversation()
    name = "leader.replication.throttled.rate"
    assert alter(conversation, BROKER, "1", (name, SET, "123")) == 0
    assert shown(conversation, BROKER, "1", name) == ("123", 2)
    assert alter(conversation, BROKER, "1", (name, DELETE, None)) == 0
    assert name not in describe(conversation, BROKER, "1")["configs"]


def test_a_topic_is_tiered_where_the_broker_is() -> None:
    """``remote.storage.enable`` is taken by a broker that was told to have tiered storage."""
    conversation = Conversation({"remote.log.storage.system.enable": "true"})
    conversation.create("a")
    assert alter(conversation, TOPIC, "a", ("remote.storage.enable", SET, "true")) == 0
    assert shown(conversation, TOPIC, "a", "remote.storage.enable") == ("true", 1)


def test_a_rehearsal_changes_nothing() -> None:
    """With validate_only only the codes come, for topics and for the broker."""
    conversation = Conversation()
    conversation.create("a")
    good, bad = ("retention.ms", SET, "5000"), ("retention.ms", SET, "x")
    assert alter(conversation, TOPIC, "a", good, is_rehearsal=True) == 0
    assert alter(conversation, TOPIC, "a", bad, is_rehearsal=True) == 40
    assert replace(conversation, TOPIC, "a", {"retention.ms": "5000"}, is_rehearsal=True) == 0
    change = ("log.retention.ms", SET, "5000")
    assert alter(conversation, BROKER, "1", change, is_rehearsal=True) == 0
    assert shown(conversation, TOPIC, "a", "retention.ms") == ("604800000", 5)


def test_a_resource_that_comes_twice_is_invalid() -> None:
    """A resource that comes twice is 42 both times."""
    conversation = Conversation()
    conversation.create("a")
    change = {"name": "retention.ms", "config_operation": SET, "value": "1"}
    resource = {"resource_type": TOPIC, "resource_name": "a", "configs": [change]}
    answer = conversation.ask("IncrementalAlterConfigs", 1, resources=[resource, resource])
    assert [result["error_code"] for result in answer["responses"]] == [42, 42]
    assert conversation.broker.topics["a"].settings == {}


@pytest.mark.parametrize("version", range(3))
def test_the_old_api_replaces_all_settings(version: int) -> None:
    """AlterConfigs sets what it names and forgets the rest."""
    conversation = Conversation()
    conversation.create("a", settings={"retention.ms": "5000", "segment.ms": "60000"})
    assert replace(conversation, TOPIC, "a", {"segment.ms": "70000"}, version=version) == 0
    assert conversation.broker.topics["a"].settings == {"segment.ms": "70000"}
    assert replace(conversation, TOPIC, "a", {"segment.ms": None}, version=version) == 42
    assert replace(conversation, TOPIC, "a", {"segment.ms": "x"}, version=version) == 40
    assert conversation.broker.topics["a"].settings == {"segment.ms": "70000"}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ([(APPEND, ",")], "delete"),
        ([(APPEND, "compact,")], "delete,compact"),
        ([(APPEND, "delete , compact")], "delete,compact"),
        ([(SET, "delete,delete")], "delete"),
        ([(SET, "delete,delete,compact"), (SUBTRACT, "delete")], "delete,compact"),
    ],
)
def test_lists_are_taken_apart_as_java_does(changes: list[tuple[int, str]], expected: str) -> None:
    """Nothing stands behind a last comma, and what comes twice is shown once."""
    conversation = Conversation()
    conversation.create("lists")
    for operation, value in changes:
        assert alter(conversation, TOPIC, "lists", ("cleanup.policy", operation, value)) == 0
    assert shown(conversation, TOPIC, "lists", "cleanup.policy")[0] == expected

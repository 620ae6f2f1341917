"""DescribeConfigs, AlterConfigs, IncrementalAlterConfigs: settings, shown and changed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from logstore.segments.kafka.broker_config import BROKER_CONFIG_KEYS
from logstore.segments.kafka.listed_config_keys import LISTED_CONFIG_KEYS
from logstore.segments.kafka.topic_config_keys import TOPIC_CONFIG_KEYS
from tests.compat.kafka.conversation import DIRECTORY, HOST, PORT, Conversation, message_class

TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32
GROUP_SESSION = "consumer.session.timeout.ms"
SET, DELETE, APPEND, SUBTRACT = range(4)


def describe(
    conversation: Conversation,
    kind: int,
    name: str,
    keys: list[str] | None = None,
    *,
    version: int = 4,
) -> dict[str, Any]:
    """Return the result for one resource, its settings by name."""
    top = {"include_documentation": True} if version >= 3 else {}
    answer = conversation.ask(
        "DescribeConfigs",
        version,
        resources=[{"resource_type": kind, "resource_name": name, "configuration_keys": keys}],
        include_synonyms=True,
        **top,
    )
    (result,) = answer["results"]
    assert (result["resource_type"], result["resource_name"]) == (kind, name)
    result["configs"] = {entry["name"]: entry for entry in result["configs"]}
    return dict(result)


def shown(conversation: Conversation, kind: int, name: str, key: str) -> tuple[str | None, int]:
    """Return the value of one setting and its source."""
    entry = describe(conversation, kind, name, [key])["configs"][key]
    return entry["value"], entry["config_source"]


def alter(
    conversation: Conversation,
    kind: int,
    name: str,
    *changes: tuple[str, int, str | None],
    version: int = 1,
    is_rehearsal: bool = False,
) -> int:
    """Change single settings of one resource; return the error code."""
    configs = [
        {"name": key, "config_operation": operation, "value": value}
        for key, operation, value in changes
    ]
    answer = conversation.ask(
        "IncrementalAlterConfigs",
        version,
        resources=[{"resource_type": kind, "resource_name": name, "configs": configs}],
        validate_only=is_rehearsal,
    )
    (result,) = answer["responses"]
    assert (result["resource_type"], result["resource_name"]) == (kind, name)
    assert bool(result["error_message"]) == bool(result["error_code"])
    code: int = result["error_code"]
    return code


def replace(
    conversation: Conversation,
    kind: int,
    name: str,
    settings: dict[str, str | None],
    *,
    version: int = 2,
    is_rehearsal: bool = False,
) -> int:
    """Replace the settings of one resource; return the error code."""
    configs = [{"name": key, "value": value} for key, value in settings.items()]
    answer = conversation.ask(
        "AlterConfigs",
        version,
        resources=[{"resource_type": kind, "resource_name": name, "configs": configs}],
        validate_only=is_rehearsal,
    )
    code: int = answer["responses"][0]["error_code"]
    return code


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


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ("0.0001", "1.0E-4"),
        ("0.00099999", "9.9999E-4"),
        ("1e-3", "0.001"),
        ("0.123456789012345678", "0.12345678901234568"),
        (".25", "0.25"),
        ("0", "0.0"),
        ("1", "1.0"),
        ("0.1f", "0.1"),
        ("0x1p-3", "0.125"),
    ],
)
def test_a_share_is_written_as_the_real_broker_writes_it(given: str, text: str) -> None:
    """With an exponent below 0.001, as Kafka 4.3.1 showed each of them."""
    conversation = Conversation()
    conversation.create("orders")
    assert alter(conversation, TOPIC, "orders", ("min.cleanable.dirty.ratio", SET, given)) == 0
    assert shown(conversation, TOPIC, "orders", "min.cleanable.dirty.ratio")[0] == text


@pytest.mark.parametrize("given", ["0x1", "0x1p99999", "1e999", "f", "0.5ff", "1_0"])
def test_what_java_reads_no_share_from(given: str) -> None:
    """Nor do we."""
    conversation = Conversation()
    conversation.create("orders")
    assert alter(conversation, TOPIC, "orders", ("min.cleanable.dirty.ratio", SET, given)) == 40


@pytest.mark.parametrize(
    ("given", "text"), [("1e999", "Infinity"), ("12345678", "1.2345678E7"), ("1e7", "1.0E7")]
)
def test_a_large_number_is_written_as_java_does(given: str, text: str) -> None:
    """One that no double can hold, too: where there is no limit Java takes it as infinite."""
    conversation = Conversation({"log.cleaner.io.buffer.load.factor": given})
    assert shown(conversation, BROKER, "1", "log.cleaner.io.buffer.load.factor")[0] == text


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
        (BROKER, "1", [("log.retention.ms", SET, "-5")], 42),
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


# changing the broker


def test_the_brokers_defaults_change_for_open_logs() -> None:
    """A changed default holds for logs of topics without a setting of their own, old and new."""
    conversation = Conversation({"log.retention.ms": "1000"})
    conversation.create("own", settings={"retention.ms": "5"})
    conversation.create("old")
    topics = conversation.broker.topics
    assert alter(conversation, BROKER, "", ("log.retention.ms", SET, "2000")) == 0
    assert topics["old"].partitions[0].config.retention_ms == 2000
    assert alter(conversation, BROKER, "1", ("log.retention.ms", SET, "3000")) == 0
    conversation.create("new")
    assert topics["own"].partitions[0].config.retention_ms == 5
    assert topics["old"].partitions[0].config.retention_ms == 3000
    assert topics["new"].partitions[0].config.retention_ms == 3000
    entry = describe(conversation, TOPIC, "old", ["retention.ms"])["configs"]["retention.ms"]
    assert entry["synonyms"] == [
        {"name": "log.retention.ms", "value": "3000", "source": 2},
        {"name": "log.retention.ms", "value": "2000", "source": 3},
        {"name": "log.retention.ms", "value": "1000", "source": 4},
        {"name": "log.retention.hours", "value": "168", "source": 5},
    ]
    assert alter(conversation, BROKER, "1", ("log.retention.ms", DELETE, None)) == 0
    assert alter(conversation, BROKER, "", ("log.retention.ms", DELETE, None)) == 0
    assert topics["old"].partitions[0].config.retention_ms == 1000


def test_a_default_that_would_break_a_topic_is_refused() -> None:
    """A default that does not go with a topic's own settings is refused, and nothing changes."""
    conversation = Conversation()
    conversation.create("a", settings={"min.compaction.lag.ms": "5000"})
    change = ("log.cleaner.max.compaction.lag.ms", SET, "1000")
    assert alter(conversation, BROKER, "1", change) == 42
    assert conversation.broker.dynamic_config.of_broker == {}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("group.consumer.assignment.interval.ms", "1500"),
        ("group.coordinator.cached.buffer.max.bytes", "2000000"),
        ("group.share.assignment.interval.ms", "1500"),
        ("group.streams.assignment.interval.ms", "1500"),
        ("share.coordinator.cached.buffer.max.bytes", "2000000"),
        ("metric.reporters", ""),
        ("config.providers", ""),
        ("follower.fetch.last.tiered.offset.enable", "true"),
        ("remote.fetch.max.wait.ms", "600"),
    ],
)
def test_what_kafka_lets_change_changes(name: str, value: str) -> None:
    """Settings that 4.3 takes while it runs are taken here, although nothing depends on them."""
    conversation = Conversation()
    assert alter(conversation, BROKER, "1", (name, SET, value)) == 0
    assert conversation.broker.dynamic_config.of_broker == {name: value}
    assert alter(conversation, BROKER, "1", (name, DELETE, None)) == 0
    if name in BROKER_CONFIG_KEYS:
        assert not describe(conversation, BROKER, "1", [name])["configs"][name]["read_only"]


def test_settings_of_the_broker_survive_a_restart() -> None:
    """Those of this broker and of all brokers hold again, for topics too; so do removals."""
    conversation = Conversation()
    conversation.create("a")
    changes = ("log.retention.ms", SET, "5000"), ("log.cleaner.threads", SET, "2")
    assert alter(conversation, BROKER, "1", *changes) == 0
    assert alter(conversation, BROKER, "", ("log.segment.bytes", SET, "2000000")) == 0
    assert alter(conversation, BROKER, "1", ("log.cleaner.threads", DELETE, None)) == 0
    conversation.restart()
    config = conversation.broker.dynamic_config
    assert config.of_broker == {"log.retention.ms": "5000"}
    assert config.of_cluster == {"min.insync.replicas": "1", "log.segment.bytes": "2000000"}
    log_config = conversation.broker.topics["a"].partitions[0].config
    assert (log_config.retention_ms, log_config.segment_bytes) == (5000, 2_000_000)


def test_min_insync_replicas_is_the_clusters() -> None:
    """As in a real cluster of 4.1 or newer: not one broker's, and it is never taken back."""
    conversation = Conversation()
    name = "min.insync.replicas"
    assert alter(conversation, BROKER, "1", (name, SET, "2")) == 40
    assert alter(conversation, BROKER, "1", (name, DELETE, None)) == 40
    assert alter(conversation, BROKER, "", (name, DELETE, None)) == 40
    assert alter(conversation, BROKER, "", (name, SET, "2")) == 0
    assert conversation.broker.dynamic_config.value_of(name) == "2"


def test_a_kind_without_settings_refuses_everything() -> None:
    """One resource of a kind that has none: all are 42, as in Kafka."""
    conversation = Conversation()
    conversation.create("a")
    asked = [
        {"resource_type": kind, "resource_name": "a", "configuration_keys": None}
        for kind in (TOPIC, 64)
    ]
    answer = conversation.ask("DescribeConfigs", 4, resources=asked)
    assert [(one["error_code"], one["configs"]) for one in answer["results"]] == [(42, [])] * 2


def test_threads_are_doubled_or_halved_at_most() -> None:
    """More at once is 42, for a rehearsal too; step by step it goes further."""
    conversation = Conversation()
    me = str(conversation.broker.node_id)
    for name, value, code in (
        ("background.threads", "21", 42),
        ("background.threads", "20", 0),
        ("background.threads", "40", 0),
        ("background.threads", "19", 42),
        ("log.cleaner.threads", "3", 42),
    ):
        change = (name, SET, value)
        assert alter(conversation, BROKER, me, change, is_rehearsal=True) == code
        assert alter(conversation, BROKER, me, change) == code
    assert shown(conversation, BROKER, me, "background.threads")[0] == "40"


def test_a_node_has_no_number_by_default() -> None:
    """Its setting comes from the broker alone."""
    conversation = Conversation()
    me = str(conversation.broker.node_id)
    entry = describe(conversation, BROKER, me, ["node.id"])["configs"]["node.id"]
    assert [(one["value"], one["source"]) for one in entry["synonyms"]] == [(me, 4)]

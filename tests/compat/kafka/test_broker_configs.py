"""Settings of the broker that are changed while it runs."""

from __future__ import annotations

import pytest

from logstore.segments.kafka.broker_config import BROKER_CONFIG_KEYS
from tests.compat.kafka.config_requests import BROKER, DELETE, SET, TOPIC, alter, describe, shown
from tests.compat.kafka.conversation import Conversation


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


def test_what_the_broker_refuses_goes_before_what_is_the_clusters() -> None:
    """A change that a broker cannot make is 42, whatever else stands beside it."""
    conversation = Conversation()
    name = "min.insync.replicas"
    for other, value in (
        ("num.partitions", "2"),  # fixed while a broker runs
        ("log.retention.ms", "x"),
        ("log.cleaner.threads", "900"),
    ):
        assert alter(conversation, BROKER, "1", (name, SET, "2"), (other, SET, value)) == 42
        assert alter(conversation, BROKER, "", (name, DELETE, None), (other, SET, value)) == 42
    assert alter(conversation, BROKER, "1", (name, SET, "2"), ("log.retention.ms", SET, "5")) == 40


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

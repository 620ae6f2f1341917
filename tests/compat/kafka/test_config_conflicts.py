"""Settings of a broker that do not go together: it does not start, and is not changed to them."""

from __future__ import annotations

import pytest

from logstore.compat.kafka.configs.conflicts import check_conflicts
from logstore.segments.kafka.broker_config import BrokerConfig
from logstore.segments.kafka.config_keys import ConfigError
from tests.compat.kafka.config_requests import BROKER, SET, TOPIC, alter, shown
from tests.compat.kafka.conversation import Conversation

SIMPLE = "org.apache.kafka.coordinator.group.assignor.SimpleAssignor"
#: what is given, and Kafka's words
CONFLICTS = (
    ("group.consumer.session.timeout.ms=6000",
     ("group.consumer.session.timeout.ms must be greater than or equal to "
     "group.consumer.min.session.timeout.ms")),
    ("group.consumer.max.heartbeat.interval.ms=1",
     ("group.consumer.max.heartbeat.interval.ms must be greater than or equal to "
     "group.consumer.min.heartbeat.interval.ms")),
    ("group.consumer.heartbeat.interval.ms=15001",
     ("group.consumer.heartbeat.interval.ms must be less than or equal to "
     "group.consumer.max.heartbeat.interval.ms")),
    ("group.streams.heartbeat.interval.ms=45000 group.streams.max.heartbeat.interval.ms=45000",
     "group.streams.heartbeat.interval.ms must be less than group.streams.session.timeout.ms"),
    ("group.streams.num.standby.replicas=3",
     ("group.streams.num.standby.replicas must be less than or equal to "
     "group.streams.max.standby.replicas")),
    ("group.share.max.share.sessions=100",
     "group.share.max.share.sessions must be greater than or equal to group.share.max.size"),
    ("group.share.record.lock.duration.ms=14999",
     ("group.share.record.lock.duration.ms must be greater than or equal to "
     "group.share.min.record.lock.duration.ms")),
    (f"group.share.assignors=simple,{SIMPLE}",
     "group.share.assignors must contain exactly one assignor, but found 2"),
    ("group.consumer.assignors=uniform,sticky", "Class sticky cannot be found"),
    ("offsets.topic.compression.codec=9", "Unknown compression type id: 9"),
    ("group.coordinator.rebalance.protocols=consumer",
     "Disabling the 'classic' protocol is not supported."),
    ("log.roll.ms=0", "requirement failed: log.roll.ms must be greater than or equal to 1"),
    ("log.roll.jitter.ms=-1",
     "requirement failed: log.roll.jitter.ms must be greater than or equal to 0"),
    ("log.retention.hours=0", ("requirement failed: log.retention.ms must be unlimited (-1) or, "
     "greater than or equal to 1")),
    ("log.cleaner.threads=0", "/ by zero"),
    ("log.cleaner.threads=128", ("requirement failed: log.cleaner.dedupe.buffer.size must be at "
     "least 1MB per cleaner thread.")),
    ("replica.socket.timeout.ms=499", ("requirement failed: replica.socket.timeout.ms should "
     "always be at least replica.fetch.wait.max.ms to prevent unnecessary socket timeouts")),
    ("replica.lag.time.max.ms=499", ("requirement failed: replica.fetch.wait.max.ms should always "
     "be less than or equal to replica.lag.time.max.ms to prevent frequent changes in ISR")),
    ("queued.max.request.bytes=1", ("requirement failed: queued.max.request.bytes must be larger "
     "or equal to socket.request.max.bytes")),
    ("max.connections.per.ip=0", ("requirement failed: max.connections.per.ip can be set to zero "
     "only if max.connections.per.ip.overrides property is set.")),
    ("max.connections.per.ip.overrides=!!:5",
     "max.connections.per.ip.overrides contains invalid addresses : !!"),
    ("max.connections.per.ip.overrides=a:x", 'For input string: "x"'),
    ("max.connections.per.ip.overrides=abc", ("Error parsing configuration property "
     "'max.connections.per.ip.overrides': begin 0, end -1, length 3")),
    ("connections.max.idle.ms=100", ("requirement failed: connection.failed.authentication.delay.ms"
     "=100 should always be less than connections.max.idle.ms=100 to prevent failed authentication "
     "responses from timing out")),
)  # fmt: skip
NO_RETENTION = (
    "requirement failed: log.retention.ms must be unlimited (-1) or, greater than or equal to 1"
)
FEW_ASSIGNMENTS = (
    "group.consumer.assignment.interval.ms must be less than or equal to "
    "group.consumer.max.assignment.interval.ms"
)


def settings_of(text: str) -> dict[str, str]:
    """Return settings that are written ``name=value``, with spaces between them."""
    return dict(one.split("=") for one in text.split(" "))


def test_an_assignor_that_is_named_twice_is_one() -> None:
    """As every member of a list that Kafka checks."""
    check_conflicts(BrokerConfig({"group.share.assignors": "simple,simple"}))


@pytest.mark.parametrize(("given", "words"), CONFLICTS)
def test_a_broker_does_not_start_with_settings_that_contradict_each_other(
    given: str, words: str
) -> None:
    """Kafka's words say which."""
    with pytest.raises(ConfigError) as caught:
        check_conflicts(BrokerConfig(settings_of(given)))
    assert str(caught.value) == words


@pytest.mark.parametrize(
    "given",
    [
        "",
        "log.retention.ms=-5",
        "log.roll.hours=1 log.retention.minutes=1",
        "group.consumer.min.session.timeout.ms=6000 group.consumer.session.timeout.ms=6000",
        "max.connections.per.ip=0 max.connections.per.ip.overrides=127.0.0.1:5,::1:2",
        "connections.max.idle.ms=-1",
        "queued.max.request.bytes=104857600",
        "group.consumer.assignors=org.apache.kafka.coordinator.group.assignor.RangeAssignor",
    ],
)
def test_what_goes_together(given: str) -> None:
    """Is taken."""
    check_conflicts(BrokerConfig(settings_of(given) if given else {}))


@pytest.mark.parametrize("who", ["1", ""])
@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("log.retention.ms", "0", NO_RETENTION),
        ("log.cleaner.threads", "0", "/ by zero"),
        ("group.consumer.assignment.interval.ms", "15001", FEW_ASSIGNMENTS),
        ("max.connections.per.ip.overrides", "a:x", 'For input string: "x"'),
        ("remote.log.reader.threads", "0", ("Invalid value 0 for configuration "
         "remote.log.reader.threads: Value must be at least 1")),
        ("remote.log.reader.threads", "21", ("Invalid value org.apache.kafka.common.config."
         "ConfigException: Dynamic thread count update validation failed for "
         "remote.log.reader.threads=21, value should not be greater than double the current value "
         "10 for configuration Invalid dynamic configuration")),
    ],
)  # fmt: skip
def test_a_change_is_held_to_the_same(who: str, name: str, value: str, words: str) -> None:
    """Of one broker and of all: 42, and nothing is changed."""
    conversation = Conversation()
    answer = conversation.ask(
        "IncrementalAlterConfigs", 1, validate_only=False,
        resources=[{"resource_type": BROKER, "resource_name": who, "configs": [
            {"name": name, "config_operation": SET, "value": value}]}],
    )  # fmt: skip
    (result,) = answer["responses"]
    assert (result["error_code"], result["error_message"]) == (42, words)


@pytest.mark.parametrize(
    ("name", "of_topic", "value"),
    [("log.retention.ms", "retention.ms", "-1"), ("log.flush.interval.ms", "flush.ms", "0")],
)
def test_a_broker_may_have_negative_times(name: str, of_topic: str, value: str) -> None:
    """Of retention it is none at all; of flushing that all is flushed at once."""
    conversation = Conversation()
    conversation.create("t")
    assert alter(conversation, BROKER, "1", (name, SET, "-5")) == 0
    assert shown(conversation, TOPIC, "t", of_topic)[0] == value

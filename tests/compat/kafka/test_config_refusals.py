"""Why settings are refused, in the words of a real broker, which programs look for."""

from __future__ import annotations

import pytest

from tests.compat.kafka.config_requests import (
    APPEND,
    BROKER,
    DELETE,
    GROUP,
    LOGGER,
    METRICS,
    SET,
    SUBTRACT,
    TOPIC,
    describe,
)
from tests.compat.kafka.conversation import Conversation

Change = tuple[str, int, str | None]
TIERED = (
    "Tiered Storage functionality is disabled in the broker. "
    "Topic cannot be configured with remote log storage."
)
RESET = "share.auto.offset.reset"
RESETS = (
    f"Invalid value middle for configuration {RESET}: Invalid value `middle` for configuration "
    f"{RESET}. The value must be either 'earliest', 'latest' or of the format "
    "'by_duration:<PnDTnHnMn.nS>'."
)
THREADS = (
    "Invalid value org.apache.kafka.common.config.ConfigException: Dynamic thread count update "
    "validation failed for num.io.threads=100, value should not be greater than double the current "
    "value 8 for configuration Invalid dynamic configuration"
)
CLEANERS = (
    "Invalid value org.apache.kafka.common.config.ConfigException: Log cleaner threads cannot be "
    "increased to more than double the current value 1 for configuration Invalid dynamic "
    "configuration"
)
SLOT_MIN = "Value must be at least 1000"
LOCK = "share.record.lock.duration.ms"
LEVELS = "Valid log levels are DEBUG, ERROR, FATAL, INFO, TRACE, WARN"
UNCLEAN, NO_TRUTH = "unclean.leader.election.enable", "Expected value to be either true or false"
FOR_ONE = "Cannot update these configs at default cluster level, broker id must be specified"


def told(kind: int, name: str, *changes: Change) -> tuple[int, str | None]:
    """Return code and words of an incremental change."""
    conversation = Conversation()
    conversation.create("t")
    configs = [{"name": key, "config_operation": how, "value": text} for key, how, text in changes]
    answer = conversation.ask(
        "IncrementalAlterConfigs", 1, validate_only=False,
        resources=[{"resource_type": kind, "resource_name": name, "configs": configs}],
    )  # fmt: skip
    (result,) = answer["responses"]
    return result["error_code"], result["error_message"]


@pytest.mark.parametrize(
    ("name", "changes", "code", "words"),
    [
        ("", [("segment.ms", SET, "1")], 42, "Default topic resources are not allowed."),
        ("no", [("segment.ms", SET, "1")], 3, "The topic 'no' does not exist."),
        ("t", [("segment.ms", SET, "1")] * 2, 42, "Error due to duplicate config keys"),
        ("t", [("a", SET, None), ("b", SET, None), ("c", DELETE, None)], 42,
         "Null value not supported for : a, b"),
        ("t", [("segment.ms", 9, "1")], 42, "Unknown operations type 9"),
        ("t", [("segment.ms", APPEND, "1"), ("b", SUBTRACT, "1")], 40,
         "Can't SUBTRACT to key b because its type is not LIST."),
        ("t", [("b", SET, "1"), ("", SET, "1")], 40, "Unknown topic config name: "),
        ("t", [("remote.storage.enable", SET, "true")], 40, TIERED),
        ("t", [("min.compaction.lag.ms", SET, "9"), ("max.compaction.lag.ms", SET, "8")], 40,
         "conflict topic config setting min.compaction.lag.ms (9) > max.compaction.lag.ms (8)"),
    ],
)  # fmt: skip
def test_topics(name: str, changes: list[Change], code: int, words: str) -> None:
    """What is asked wrongly first, then names, then values."""
    assert told(TOPIC, name, *changes) == (code, words)


@pytest.mark.parametrize(
    ("name", "changes", "code", "words"),
    [
        ("x", [], 42, "Node id must be an integer, but it is: x"),
        ("2", [], 42, "Unexpected broker id, expected 1, but received 2"),
        ("02", [], 42, "Unexpected broker id, expected 1, but received 02"),
        ("+1", [("a", APPEND, "1")], 40, "Unknown config name: a"),
        ("2147483648", [], 42, "Node id must be an integer, but it is: 2147483648"),
        ("1", [("a", APPEND, "1")], 40, "Unknown config name: a"),
        ("1", [("num.io.threads", APPEND, "1")], 40,
         "Config value append is not allowed for config key: num.io.threads"),
        ("1", [("log.segment.bytes", SET, "x"), ("node.id", SET, "3"), ("broker.id", SET, "3")],
         42, "Cannot update these configs dynamically: [node.id, broker.id]"),
        ("1", [("log.cleanup.policy", SET, "x"), (UNCLEAN, SET, "x")], 42,
         f"Invalid value x for configuration {UNCLEAN}: {NO_TRUTH}"),
        ("1", [("num.io.threads", SET, "100")], 42, THREADS),
        ("1", [("log.cleaner.threads", SET, "3")], 42, CLEANERS),
        ("", [("cordoned.log.dirs", SET, "*")], 42, f"{FOR_ONE}: [cordoned.log.dirs]"),
        ("", [("ssl.enabled.protocols", SUBTRACT, "x")], 42, f"{FOR_ONE}: [ssl.enabled.protocols]"),
        ("1", [("sasl.enabled.mechanisms", APPEND, "")], 42,
         "Configuration 'sasl.enabled.mechanisms' values must not be empty."),
    ],
)  # fmt: skip
def test_the_broker(name: str, changes: list[Change], code: int, words: str) -> None:
    """What is fixed comes before what cannot be read, which comes in the order of Kafka's table."""
    assert told(BROKER, name, *changes) == (code, words)


@pytest.mark.parametrize(
    ("kind", "name", "changes", "code", "words"),
    [
        (GROUP, "", [], 42, "Default group resources are not allowed."),
        (GROUP, "g", [("a", SET, "1"), (LOCK, SET, "x")], 40, "Unknown group config name: a"),
        (GROUP, "g", [(RESET, SET, "middle"), (LOCK, SET, "999")], 40,
         f"Invalid value 999 for configuration {LOCK}: {SLOT_MIN}"),
        (GROUP, "g", [(RESET, SET, "middle")], 40, RESETS),
        (METRICS, "", [], 42, "Subscription name can't be empty"),
        (METRICS, "m", [("a", SET, "1")], 42, "Unknown client metrics configuration: a"),
        (METRICS, "m", [("metrics", SET, "a,,b"), ("interval.ms", SET, "x")], 40,
         "Configuration 'metrics' values must not be empty."),
        *((METRICS, "m", [("match", SET, text)], 40, f"Illegal client matching pattern: {text}")
          for text in ("client_id=a=b", "client_id=", "client_id==", "nobody=a", "client_id=[")),
        (LOGGER, "2", [], 42, "Unexpected node id. Expected 1, but received 2"),
        (LOGGER, "+02", [], 42, "Unexpected node id. Expected 1, but received 2"),
        (LOGGER, "1", [("no", SET, "INFO")], 40, "Logger no does not exist!"),
        (LOGGER, "1", [("root", DELETE, None)], 42,
         "Removing the log level of the root logger is not allowed"),
        (LOGGER, "1", [("root", SET, "LOUD")], 40,
         f"Cannot set the log level of root to LOUD as it is not a supported log level. {LEVELS}"),
        (LOGGER, "1", [("root", APPEND, "INFO")], 42,
         "APPEND operation is not allowed for the BROKER_LOGGER resource"),
        (64, "x", [], 42, "Unknown resource type 64"),
    ],
)  # fmt: skip
def test_other_resources(
    kind: int, name: str, changes: list[Change], code: int, words: str
) -> None:
    """Groups, subscriptions to metrics, loggers, and what there is not."""
    assert told(kind, name, *changes) == (code, words)


@pytest.mark.parametrize(
    ("kind", "name", "words"),
    [
        (BROKER, "2", "Unexpected broker id, expected 1 or empty string, but received 2"),
        (BROKER, "x", "Broker id must be an integer, but it is: x"),
        (BROKER, "99999999999", "Broker id must be an integer, but it is: 99999999999"),
        (LOGGER, "2", "Unexpected broker id, expected 1 but received 2"),
        (LOGGER, "", "Broker id must not be empty"),
        (GROUP, "", "Group name must not be empty"),
        (METRICS, "", "Client metrics subscription name must not be empty"),
    ],
)
def test_what_cannot_be_described(kind: int, name: str, words: str) -> None:
    """All of it is 42."""
    found = describe(Conversation(), kind, name)
    assert (found["error_code"], found["error_message"]) == (42, words)

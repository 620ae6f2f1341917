"""The settings of brokers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from logstore.segments.kafka.broker_config import (
    ACCEPTED_FAMILIES,
    BROKER_CONFIG_KEYS,
    BrokerConfig,
    Knowledge,
    knowledge_of,
)
from logstore.segments.kafka.config import parse_topic_configs
from logstore.segments.kafka.config_keys import ConfigError, Effect, Scope
from logstore.segments.kafka.topic_config_keys import TOPIC_CONFIG_KEYS, TOPIC_CONFIG_SYNONYMS


def test_every_default_is_allowed() -> None:
    """The table does not contradict itself; every setting has a sentence about it."""
    for name, key in BROKER_CONFIG_KEYS.items():
        if key.default is not None:
            key.parse(key.default)
        assert key.name == name
        assert key.scope is Scope.BROKER
        assert key.doc.endswith(".")


def test_synonyms_are_broker_settings_with_the_same_meaning() -> None:
    """A topic's default is that of its coarsest synonym, and both have the same range."""
    for topic_name, synonyms in TOPIC_CONFIG_SYNONYMS.items():
        topic_key = TOPIC_CONFIG_KEYS[topic_name]
        for synonym in synonyms:
            assert BROKER_CONFIG_KEYS[synonym.name].effect is topic_key.effect, synonym.name
        last = BROKER_CONFIG_KEYS[synonyms[-1].name]
        assert last.default is not None
        expected = last.default
        if synonyms[-1].factor != 1:
            expected = str(int(last.default) * synonyms[-1].factor)
        assert topic_key.default == expected, topic_name
        if len(synonyms) == 1:
            assert (last.minimum, last.choices) == (topic_key.minimum, topic_key.choices)


def test_values() -> None:
    """Given values are parsed, others are the defaults, with their own types."""
    config = BrokerConfig({"num.partitions": "3", "log.dirs": "/a, /b", "no.such": "x"})
    assert config.integer("num.partitions") == 3
    assert config["log.dirs"] == ("/a", "/b")
    assert config["auto.create.topics.enable"] is True
    assert config["log.cleaner.io.buffer.load.factor"] == 0.9
    assert config["log.roll.ms"] is None
    assert config.text("num.partitions") == "3"
    assert config.text("num.io.threads") == "8"
    assert config.text("no.such") == "x"
    assert config.text("other") is None
    with pytest.raises(ConfigError, match="no such broker setting"):
        config["no.such"]
    with pytest.raises(ConfigError, match=r"Invalid value 0 .*num\.partitions.*at least 1"):
        BrokerConfig({"num.partitions": "0"})


def test_what_is_known() -> None:
    """A setting is used, accepted without effect, or unknown; and the unknown are listed."""
    assert knowledge_of("log.segment.bytes") is Knowledge.USED
    assert knowledge_of("num.io.threads") is Knowledge.ACCEPTED
    assert knowledge_of("ssl.keystore.location") is Knowledge.USED
    assert knowledge_of("ssl.secure.random.implementation") is Knowledge.ACCEPTED
    assert knowledge_of("listener.name.external.ssl.key.password") is Knowledge.USED
    assert knowledge_of("listener.name.external.plain.sasl.jaas.config") is Knowledge.USED
    assert knowledge_of("listener.name.external.num.network.threads") is Knowledge.ACCEPTED
    assert knowledge_of("log.segment.byte") is Knowledge.UNKNOWN
    config = BrokerConfig({"zz": "1", "ssl.x": "1", "num.partitions": "2", "aa": "1"})
    assert config.unknown() == ["aa", "zz"]
    assert not any(key.effect is Effect.USED for key in BROKER_CONFIG_KEYS.values()
                   if key.name.startswith(("replica.fetch", "num.io")))  # fmt: skip
    assert all(text for text in ACCEPTED_FAMILIES.values())


def test_topic_defaults() -> None:
    """What a broker's settings mean for topics is valid for topics."""
    config = BrokerConfig({"log.retention.hours": "1", "log.cleanup.policy": "compact"})
    assert parse_topic_configs(config.topic_defaults()).retention_ms == 3600000
    assert parse_topic_configs(config.topic_defaults()).is_compacted


def test_settings_of_the_golden_brokers_are_known(golden: Path) -> None:
    """What the real brokers behind the golden data were given is known here."""
    count = 0
    for path in golden.glob("*/set.json"):
        given = json.loads(path.read_text())["broker_settings"]
        settings = {name: str(value) for name, value in given.items()}
        assert BrokerConfig(settings).unknown() == []
        count += len(settings)
    assert count > 10

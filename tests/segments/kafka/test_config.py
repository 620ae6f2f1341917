"""The settings of topics."""

from __future__ import annotations

import contextlib

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from logstore.segments.kafka.compression import Codec
from logstore.segments.kafka.config import LogConfig, parse_topic_configs, topic_defaults
from logstore.segments.kafka.config_keys import LONG_MAX, ConfigError
from logstore.segments.kafka.topic_config_keys import TOPIC_CONFIG_KEYS, TOPIC_CONFIG_SYNONYMS


def test_no_settings_are_the_defaults() -> None:
    """The defaults in the class are those in the table of keys."""
    table = {name: key.default for name, key in TOPIC_CONFIG_KEYS.items() if key.default}
    assert parse_topic_configs(table) == parse_topic_configs({}) == LogConfig()


def test_every_key_is_a_field() -> None:
    """Table and class name the same settings, but for the internal one."""
    fields = {field.name.replace("_", ".") for field in attrs.fields(LogConfig)}
    assert fields == set(TOPIC_CONFIG_KEYS) - {"internal.segment.bytes"}


def test_values_are_parsed() -> None:
    """Text becomes numbers, truth values, words and lists, with white space around it ignored."""
    config = parse_topic_configs(
        {
            "segment.bytes": " 2097152 ",
            "min.cleanable.dirty.ratio": ".25",
            "preallocate": "TRUE",
            "cleanup.policy": "compact , delete",
            "compression.type": "zstd",
            "retention.ms": "-1",
        }
    )
    assert config.segment_bytes == 2097152
    assert config.min_cleanable_dirty_ratio == 0.25
    assert config.preallocate is True
    assert config.cleanup_policy == ("compact", "delete")
    assert config.compression_type == "zstd"
    assert config.retention_ms == -1


POLICIES = "String must be one of: compact, delete"
REPLICAS = (
    " must be the literal '*' or a list of replicas in the following format: "
    "[partitionId]:[brokerId],[partitionId]:[brokerId],..."
)


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("segment.bytes", "1048575", "Value must be at least 1048576"),
        ("segment.bytes", "2147483648", "Not a number of type INT"),
        ("segment.bytes", "1e9", "Not a number of type INT"),
        ("segment.bytes", "1_000_000_000", "Not a number of type INT"),
        ("segment.bytes", "", "Not a number of type INT"),
        ("retention.ms", "-2", "Value must be at least -1"),
        ("retention.bytes", " x", "Not a number of type LONG"),
        ("min.cleanable.dirty.ratio", "1.1", "Value must be no more than 1"),
        ("min.cleanable.dirty.ratio", "nan", "Not a number of type DOUBLE"),
        ("compression.type", "none",
         "String must be one of: uncompressed, zstd, lz4, snappy, gzip, producer"),
        ("compression.gzip.level", "0", "Value must be between 1 and 9 or equal to -1"),
        ("compression.gzip.level", "10", "Value must be between 1 and 9 or equal to -1"),
        ("compression.lz4.level", "18", "Value must be no more than 17"),
        ("message.timestamp.type", "createtime",
         "String must be one of: CreateTime, LogAppendTime"),
        ("preallocate", "yes", "Expected value to be either true or false"),
    ],
)  # fmt: skip
def test_bad_values(name: str, value: str, reason: str) -> None:
    """The error names the setting, its value and what is wrong, as Kafka's does."""
    with pytest.raises(ConfigError) as caught:
        parse_topic_configs({name: value})
    assert caught.value.name == name
    assert str(caught.value) == f"Invalid value {value} for configuration {name}: {reason}"


@pytest.mark.parametrize("value", ["foo", "*,1:1", "**", "1:-1", "0:1:2", "1"])
def test_bad_replicas(value: str) -> None:
    """The value is shown as the list that it is."""
    name = "leader.replication.throttled.replicas"
    with pytest.raises(ConfigError) as caught:
        parse_topic_configs({name: value})
    shown = f"[{value.replace(',', ', ')}]"
    assert str(caught.value) == f"Invalid value {shown} for configuration {name}: {name}{REPLICAS}"


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("delete,erase", f"Invalid value erase for configuration cleanup.policy: {POLICIES}"),
        ("delete,,", "Configuration 'cleanup.policy' values must not be empty."),
    ],
)  # fmt: skip
def test_bad_members_of_a_list(value: str, told: str) -> None:
    """The member that is wrong is told."""
    with pytest.raises(ConfigError) as caught:
        parse_topic_configs({"cleanup.policy": value})
    assert str(caught.value) == told


def test_what_kafka_looks_at_first_is_refused_first() -> None:
    """Names before values, and values in the order of Kafka's own table."""
    bad = {"preallocate": "x", "retention.ms": "x", "segment.bytes": "x"}
    with pytest.raises(ConfigError, match=r"configuration segment\.bytes"):
        parse_topic_configs(bad)
    with pytest.raises(ConfigError, match=r"^Unknown topic config name: b$"):
        parse_topic_configs({**bad, "b": "x"})


def test_an_unknown_name_is_told_in_kafkas_words() -> None:
    """Programs look for them."""
    with pytest.raises(ConfigError, match=r"^Unknown topic config name: no\.such\.thing$"):
        parse_topic_configs({"no.such.thing": "1"})


def test_throttled_replicas() -> None:
    """Replicas are named by partition and broker, or all of them by a star."""
    for text in ("", "*", " * ", "1:1", " 1:1 , 2:3", "1:1,"):
        parse_topic_configs({"follower.replication.throttled.replicas": text})
    names = parse_topic_configs({"leader.replication.throttled.replicas": "0:1,1:1"})
    assert names.leader_replication_throttled_replicas == ("0:1", "1:1")


def test_compaction_lags_must_fit() -> None:
    """The least lag must not exceed the greatest."""
    with pytest.raises(ConfigError, match=r"max\.compaction\.lag\.ms"):
        parse_topic_configs({"min.compaction.lag.ms": "10", "max.compaction.lag.ms": "9"})


def test_internal_segment_bytes() -> None:
    """The internal setting goes below the limit, and overrides the other."""
    settings = {"internal.segment.bytes": "1000", "segment.bytes": "2097152"}
    assert parse_topic_configs(settings).segment_bytes == 1000


def test_target_codec() -> None:
    """The topic's codec is the batch's own with `producer`, else always the same."""
    assert [LogConfig().target_codec(codec) for codec in range(5)] == [0, 1, 2, 3, 4]
    assert LogConfig(compression_type="lz4").target_codec(Codec.GZIP) == Codec.LZ4
    assert LogConfig(compression_type="uncompressed").target_codec(Codec.GZIP) == Codec.NONE
    config = LogConfig(compression_zstd_level=7)
    levels = [config.compression_level(codec) for codec in Codec]
    assert levels == [None, -1, None, 9, 7]


def test_policies() -> None:
    """Retention applies to deleting logs only; -1 is no bound; compaction lag shortens segments."""
    assert LogConfig().retention_policy.retention_ms == 604800000
    assert LogConfig().retention_policy.retention_bytes is None
    compacted = LogConfig(cleanup_policy=("compact",), max_compaction_lag_ms=5000)
    assert compacted.retention_policy.retention_ms is None
    assert compacted.roll_policy.segment_ms_max == 5000
    assert LogConfig(max_compaction_lag_ms=5000).roll_policy.segment_ms_max == 604800000
    assert LogConfig(flush_messages=7).flush_policy.messages == 7


def test_needs_every_record() -> None:
    """Keys and old timestamps can only be checked record by record."""
    assert not LogConfig().needs_every_record
    assert LogConfig(cleanup_policy=("delete", "compact")).needs_every_record
    assert LogConfig(message_timestamp_before_max_ms=5).needs_every_record
    assert not LogConfig(
        message_timestamp_before_max_ms=5, message_timestamp_type="LogAppendTime"
    ).needs_every_record
    assert LogConfig().message_timestamp_before_max_ms == LONG_MAX


def test_the_finest_synonym_counts() -> None:
    """Of ms, minutes and hours the finest given one counts, in ms; below zero is for ever."""
    assert topic_defaults({"log.retention.hours": "2"}) == {"retention.ms": "7200000"}
    assert topic_defaults({"log.retention.hours": "2", "log.retention.minutes": "3"}) == {
        "retention.ms": "180000"
    }
    assert topic_defaults(
        {"log.retention.hours": "2", "log.retention.minutes": "3", "log.retention.ms": "5"}
    ) == {"retention.ms": "5"}
    assert topic_defaults({"log.retention.hours": "-1"}) == {"retention.ms": "-1"}
    assert topic_defaults({"log.flush.scheduler.interval.ms": "9"}) == {"flush.ms": "9"}
    assert topic_defaults({"log.roll.hours": "1", "log.segment.bytes": "5", "node.id": "1"}) == {
        "segment.ms": "3600000",
        "segment.bytes": "5",
    }
    with pytest.raises(ConfigError, match=r"log\.roll\.hours"):
        topic_defaults({"log.roll.hours": "x"})


def test_synonyms_belong_to_topic_settings() -> None:
    """Every synonym is that of a setting that there is."""
    assert set(TOPIC_CONFIG_SYNONYMS) <= set(TOPIC_CONFIG_KEYS)


@given(name=st.sampled_from(sorted(TOPIC_CONFIG_KEYS)), text=st.text(max_size=30))
def test_fuzz(name: str, text: str) -> None:
    """Any text gives a configuration or ConfigError."""
    with contextlib.suppress(ConfigError):
        assert parse_topic_configs({name: text}).segment_bytes > 0

"""Settings of broker and store: names, defaults and texts of the real broker."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logstore.segments.rocketmq.settings.broker_config import BROKER_CONFIG_KEYS, BrokerSettings
from logstore.segments.rocketmq.settings.java_config import ConfigError, ConfigType
from logstore.segments.rocketmq.settings.store_config import STORE_CONFIG_KEYS, StoreConfig
from tests.segments.rocketmq.golden_case import GoldenCase, golden_cases

#: what a broker works out at its start, or takes from the machine
STARTED = {
    "bitMapLengthConsumeQueueExt": "112",
    "haListenPort": "19332",
    "namesrvAddr": "127.0.0.1:19351",
}


def printed_by(case: GoldenCase) -> dict[str, str]:
    """Return the settings that mqadmin got from the broker of a wire case."""
    frames = case.transcripts["mqadmin-getBrokerConfig"]
    answer = next(frame for frame in frames if frame["server"] == "broker" and frame["body_bytes"])
    raw = bytes.fromhex(answer["hex"])
    body = raw[8 + int.from_bytes(raw[5:8], "big") :].decode()
    return dict(line.split("=", 1) for line in body.splitlines() if line)


def test_a_broker_prints_what_the_real_one_prints() -> None:
    """With the settings of a real 5.5.0 broker all lines but its paths are the same, and sorted."""
    (case,) = golden_cases("wire", version="5.5.0")
    real = printed_by(case)
    text = BrokerSettings({**case.settings, **STARTED}).properties_text()
    ours = dict(line.split("=", 1) for line in text.splitlines())
    paths = {"rocketmqHome", "storePathCommitLog", "storePathRootDir"}
    assert ours == {name: value for name, value in real.items() if name not in paths}
    assert list(ours) == sorted(ours)


def test_every_name_of_4x_is_known() -> None:
    """What a real 4.9.8 broker prints are all known names, and its values parse."""
    (case,) = golden_cases("wire", version="4.9.8")
    settings = BrokerSettings(printed_by(case))
    assert settings.unknown == {}
    assert settings.integer("maxDelayTime") == 40


def test_defaults_are_those_of_java() -> None:
    """A store without settings has the sizes that RocketMQ's documentation names."""
    config = StoreConfig()
    assert config.commit_log_file_size_bytes == 1 << 30
    assert config.consume_queue_file_size_bytes == 6_000_000
    assert config.index_sizes.file_size_bytes == 420_000_040
    assert config.batch_consume_queue_file_size_bytes == 13_800_000
    assert config.integer("flushIntervalCommitLog") == 500
    assert not config.is_sync_flush
    assert config.text("storePathCommitLog") == ""
    assert config.decimal("logicalDiskSpaceCleanForciblyThreshold") == 0.8


def test_sizes_are_exact() -> None:
    """File sizes from 64 KiB up are taken as given; queues are rounded up to whole units."""
    config = StoreConfig({"mappedFileSizeCommitLog": "65537", "mappedFileSizeConsumeQueue": "81"})
    assert config.commit_log_file_size_bytes == 65_537
    assert config.consume_queue_file_size_bytes == 100


def test_values_that_java_clips_are_clipped() -> None:
    """Ratios and the timer's precision come out within the bounds that Java's getters keep."""
    config = StoreConfig(
        {
            "diskMaxUsedSpaceRatio": "99",
            "diskSpaceWarningLevelRatio": "99",
            "diskSpaceCleanForciblyRatio": "1",
            "timerPrecisionMs": "450",
        }
    )
    ratios = (config.disk_used_ratio_max, config.disk_warning_ratio)
    assert ratios == (0.95, 0.90)
    assert config.disk_clean_forcibly_ratio == 0.30
    assert config.timer_precision_ms == 200
    assert StoreConfig({"timerPrecisionMs": "1"}).timer_precision_ms == 100


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("mappedFileSizeCommitLog", "1g", "a whole number of 32 bits"),
        ("mappedFileSizeCommitLog", "2147483648", "a whole number of 32 bits"),
        ("mappedFileSizeCommitLog", "12", "at least 4096"),
        ("messageIndexEnable", "yes", "true or false"),
        ("flushDiskType", "SYNC", "one of SYNC_FLUSH, ASYNC_FLUSH"),
        ("transactionTimeOut", "", "a whole number of 64 bits"),
        ("timerRocksDBRollMaxTps", "fast", "a number"),
    ],
)
def test_a_bad_value_is_named(name: str, text: str, expected: str) -> None:
    """A value that its key does not take is an error with name, value and what is expected."""
    with pytest.raises(ConfigError) as caught:
        BrokerSettings({name: text})
    assert str(caught.value) == f"{name}={text}: expected {expected}"


def test_an_unknown_name_is_kept_aside() -> None:
    """A name that Java does not know is no error; it is told apart from those that it knows."""
    settings = BrokerSettings({"mappedFileSize": "7", "listenPort": " 10911 "})
    assert settings.unknown == {"mappedFileSize": "7"}
    assert settings.integer("listenPort") == 10_911
    assert "mappedFileSize=" not in settings.properties_text()


def test_an_update_changes_all_or_nothing() -> None:
    """An update with one bad value changes nothing; a good one tells what it changed."""
    settings = BrokerSettings({"fileReservedTime": "48"})
    with pytest.raises(ConfigError):
        settings.update({"fileReservedTime": "72", "listenPort": "x"})
    assert settings.store.integer("fileReservedTime") == 48
    changed = settings.update({"fileReservedTime": "72", "brokerPermission": "6", "new": "1"})
    assert changed == ["fileReservedTime"]
    assert settings.store.integer("fileReservedTime") == 72
    assert settings.integer("fileReservedTime") == 72


def test_names_of_setters_are_taken() -> None:
    """A name that Java's setter gives a field is taken as the field's."""
    settings = BrokerSettings({"isEnableBatchPush": "true"})
    assert settings.boolean("enableBatchPush")
    assert settings.store.boolean("enableBatchPush")


def test_every_default_has_its_type() -> None:
    """Each key's default is of its type, and is what its own text parses to."""
    kinds = {
        ConfigType.BOOLEAN: bool,
        ConfigType.INT: int,
        ConfigType.LONG: int,
        ConfigType.DOUBLE: float,
        ConfigType.TEXT: str,
        ConfigType.CHOICE: str,
    }
    assert len(STORE_CONFIG_KEYS) > 200
    assert len(BROKER_CONFIG_KEYS) > 500
    for name, key in BROKER_CONFIG_KEYS.items():
        assert key.name == name
        if key.default is None:
            assert key.type is ConfigType.TEXT, name
            continue
        assert type(key.default) is kinds[key.type], name
        text = str(key.default)
        assert key.parse(text.lower() if key.type is ConfigType.BOOLEAN else text) == key.default


@given(st.sampled_from(sorted(BROKER_CONFIG_KEYS)), st.text(max_size=30))
def test_any_text_is_a_value_or_an_error(name: str, text: str) -> None:
    """Whatever text a setting gets: it has a value of its type, or is refused."""
    before = BrokerSettings()
    settings = BrokerSettings()
    with suppress(ConfigError):
        settings.update({name: text})
    assert settings[name] == before[name] or settings.settings == {name: text}
    assert type(settings[name]) in (type(before[name]), str)

"""The options of ``df.write.format("logstore")`` and of ``writeStream``."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from logstore.compat.spark.option_values import OptionError, text_of
from logstore.segments.rocketmq.settings.store_config import STORE_CONFIG_KEYS

_LAYOUTS = ("kafka", "rocketmq")
_SETTING = "set."
#: Spark hands names over in small letters; Java's have capitals, Kafka's have none
_JAVA_NAMES = {name.lower(): name for name in STORE_CONFIG_KEYS}


@attrs.frozen
class WriteOptions:
    """
    Where rows are appended to.

    `topic` goes over a column of that name, as it does in Spark's Kafka sink. `layout` and
    `partition_count` are for what is made anew: the store, and topics. `writer` names a stream,
    whose batches are taken once each. `settings` are the store's.
    """

    path: str
    topic: str | None
    layout: str
    partition_count: int
    writer: str
    settings: Mapping[str, str]


def parse_write_options(given: Mapping[str, str]) -> WriteOptions:
    """
    Read the options; their names' case is ignored.

    Raises:
        OptionError: a value is not allowed, or the path is missing.

    """
    options = {name.lower(): value for name, value in given.items()}
    path = options.get("path")
    if not path or "://" in path:
        raise OptionError("path", path, "must name a store's directory on this machine")
    layout = options.get("layout", "kafka").lower()
    if layout not in _LAYOUTS:
        raise OptionError("layout", layout, f"must be one of: {', '.join(_LAYOUTS)}")
    count = options.get("partitions", "1")
    if not count.isdigit() or int(count) < 1:
        raise OptionError("partitions", count, "must be a whole number, at least 1")
    settings = {
        _JAVA_NAMES.get(setting := name.removeprefix(_SETTING), setting): value
        for name, value in options.items()
        if name.startswith(_SETTING)
    }
    writer = options.get("writer") or options.get("checkpointlocation", "")
    topic = text_of(options, "topic") or None
    return WriteOptions(path, topic, layout, int(count), writer, settings)

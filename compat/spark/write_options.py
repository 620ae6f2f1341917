"""The options of ``df.write.format("logstore")`` and of ``writeStream``."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from logstore.compat.spark.options import OptionError

_LAYOUTS = ("kafka", "rocketmq")
_SETTING = "set."


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
    Read the options; their names' case is ignored, but for ``set.NAME``.

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
        name[len(_SETTING) :]: value
        for name, value in given.items()
        if name.lower().startswith(_SETTING)
    }
    writer = options.get("writer") or options.get("checkpointlocation", "")
    return WriteOptions(path, options.get("topic"), layout, int(count), writer, settings)

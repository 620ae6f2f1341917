"""What a conversion is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import attrs

from logstore.compat.spark.convert.damage import FAILFAST

#: how much of the source a task reads at most
TASK_BYTES = 256 * 1024 * 1024


@attrs.frozen
class ConvertOptions:
    """
    From where to where, and what of it.

    `topics` None means all but internal ones. `settings` are those of the target: Kafka's topic
    settings, or keys of RocketMQ's ``MessageStoreConfig``. `codec` None is what the target's kind
    has by default: none for new batches and for lines, zstd for Parquet. `preserve` keeps what a
    way back needs to write the source's files byte for byte; where something was kept of the
    target's layout it is that way back. `mode` is what becomes of damage in the source:
    ``failfast`` raises, ``dropmalformed`` passes over it (:mod:`~logstore.compat.spark.convert.
    damage`), ``permissive`` puts a row there that tells of it, in files of rows alone.
    """

    source: str
    target: str
    layout: str
    topics: tuple[str, ...] | None = None
    starting_timestamp_ms: int | None = None
    ending_timestamp_ms: int | None = None
    codec: str | None = None
    settings: Mapping[str, str] = attrs.field(factory=dict[str, str])
    task_bytes: int = TASK_BYTES
    preserve: bool = False
    mode: str = FAILFAST

    def wishes(self) -> dict[str, Any]:
        """Return what decides on the target's content, as it stands in its report."""
        return {
            "source": self.source,
            "layout": self.layout,
            "onlyTopics": None if self.topics is None else list(self.topics),
            "from": self.starting_timestamp_ms,
            "until": self.ending_timestamp_ms,
            "codec": self.codec,
            "settings": dict(self.settings),
            "preserve": self.preserve or None,
            "mode": None if self.mode == FAILFAST else self.mode,
        }

    def read_options(self) -> dict[str, str]:
        """Return the choice of records as the data source's options have it."""
        options = {"path": self.source, "mode": self.mode}
        if self.topics is not None:
            options["topics"] = ",".join(self.topics)
        if self.starting_timestamp_ms is not None:
            options["startingTimestamp"] = str(self.starting_timestamp_ms)
        if self.ending_timestamp_ms is not None:
            options["endingTimestamp"] = str(self.ending_timestamp_ms)
        return options


#: how who asks says what a report has under another name, and what stands there if nothing is said
_SAID = {
    "source": ("the source", "none"),
    "layout": ("the layout", "none"),
    "onlyTopics": ("topics", "all topics but internal ones"),
    "from": ("from", "no from"),
    "until": ("until", "no until"),
    "codec": ("codec", "no codec named"),
    "settings": ("settings", "no settings"),
    "preserve": ("preserve", "no preserve"),
    "mode": ("mode", f"mode {FAILFAST}"),
}


def shown_wish(name: str, value: object) -> str:
    """Return a wish of :meth:`ConvertOptions.wishes` in the words of who wishes."""
    said, unsaid = _SAID[name]
    if value is None or value == {}:
        return unsaid
    if isinstance(value, Mapping):
        pairs = cast("Mapping[str, object]", value)
        value = ",".join(f"{key}={text}" for key, text in pairs.items())
    elif isinstance(value, list):
        value = ",".join(map(str, cast("list[object]", value)))
    return said if value is True else f"{said} {value}"

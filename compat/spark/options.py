"""
The options of a read, named and meant as those of Spark's Kafka source where it has them.

``subscribe``, ``subscribePattern``, ``assign``, ``startingOffsets``, ``endingOffsets``, the
``…Timestamp`` and ``…OffsetsByTimestamp`` forms, ``minPartitions``, ``includeHeaders``,
``maxOffsetsPerTrigger``, ``failOnDataLoss``. Without a
choice of topics all but internal ones are read. Own: ``path``, ``columns``, ``isolation``,
``mode``, ``splitBytes``, ``timestampSlackMs`` (:mod:`logstore.compat.spark.time_window`; -1 reads
whatever may hold a wanted record). Without ``splitBytes`` units have up to 128 MiB, and tasks more
than one of them where there are many.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, cast

import attrs

from logstore.compat.spark.columns import CORRUPT, DEFAULT_COLUMNS, HEADERS, checked_columns
from logstore.compat.spark.work_unit import UNIT_BYTES
from logstore.errors import LogStoreError

EARLIEST, LATEST = -2, -1
FAILFAST = "failfast"
PERMISSIVE = "permissive"
MODES = (FAILFAST, PERMISSIVE, "dropmalformed")
ISOLATIONS = ("read_committed", "read_uncommitted")
#: by how much times may go back inside of a batch without a row being missed
TIMESTAMP_SLACK_MS = 5 * 60 * 1000
_WORDS = {"earliest": EARLIEST, "latest": LATEST}

Places = Mapping[tuple[str, int], int]


class OptionError(LogStoreError):
    """An option has a value that is not allowed."""

    def __init__(self, name: str, value: object, wanted: str) -> None:
        super().__init__(f"option {name}: {value!r} {wanted}")


@attrs.frozen
class Bound:
    """
    Where reading starts or ends: for all partitions, or one by one.

    `everywhere` is EARLIEST or LATEST; `offsets` by (topic, partition) win over it. `timestamp_ms`
    and `timestamps` stand for the first offset whose record is at least that young.
    """

    everywhere: int
    offsets: Places = attrs.field(factory=dict[tuple[str, int], int])
    timestamp_ms: int | None = None
    timestamps: Places = attrs.field(factory=dict[tuple[str, int], int])

    def time_of(self, topic: str, partition: int) -> int | None:
        """Return the time that bounds the partition, if one does."""
        return self.timestamps.get((topic, partition), self.timestamp_ms)


@attrs.frozen
class ReadOptions:
    """What a read is asked for."""

    path: str
    start: Bound
    end: Bound
    columns: tuple[str, ...] = DEFAULT_COLUMNS
    topics: frozenset[str] | None = None
    topic_pattern: str | None = None
    assigned: frozenset[tuple[str, int]] | None = None
    is_committed_only: bool = True
    mode: str = "failfast"
    #: 0: as the size of what is read suggests
    split_bytes: int = 0
    partition_count_min: int = 0
    timestamp_slack_ms: int = TIMESTAMP_SLACK_MS
    offsets_per_trigger_max: int = 0
    fails_on_loss: bool = True

    @property
    def unit_bytes(self) -> int:
        """How much of a file a unit has at most."""
        return self.split_bytes or UNIT_BYTES

    def wants(self, topic: str, partition: int) -> bool:
        """Tell whether records of this partition are asked for."""
        if self.assigned is not None:
            return (topic, partition) in self.assigned
        if self.topics is not None:
            return topic in self.topics
        if self.topic_pattern is not None:
            return re.fullmatch(self.topic_pattern, topic) is not None
        return not topic.startswith("__")


def parse_options(given: Mapping[str, str], *, is_stream: bool = False) -> ReadOptions:
    """
    Read the options of ``spark.read``, or of ``spark.readStream``; their names' case is ignored.

    A stream starts with what is new, unless told otherwise.

    Raises:
        OptionError: a value is not allowed, or the path is missing.
        UnknownColumnError: there is no such column.

    """
    options = {name.lower(): value for name, value in given.items()}
    path = options.get("path")
    if not path:
        raise OptionError("path", path, "must name the store's directory: .load(DIRECTORY)")
    mode = _one_of(options, "mode", MODES)
    return ReadOptions(
        path,
        _start(options) if is_stream else _bound(options, "starting", EARLIEST),
        _bound(options, "ending", LATEST),
        _columns(options, mode),
        _topics(options),
        options.get("subscribepattern"),
        _assigned(options),
        _one_of(options, "isolation", ISOLATIONS) == "read_committed",
        mode,
        _number(options, "splitBytes", 0, 1),
        _number(options, "minPartitions", 0, 0),
        _number(options, "timestampSlackMs", TIMESTAMP_SLACK_MS, -1),
        _number(options, "maxOffsetsPerTrigger", 0, 1),
        options.get("failondataloss", "true").strip().lower() != "false",
    )


def _columns(options: Mapping[str, str], mode: str) -> tuple[str, ...]:
    text = options.get("columns")
    if text:
        return checked_columns(text.split(","))
    headers = (HEADERS,) if _flag(options, "includeHeaders") else ()
    corrupt = (CORRUPT,) if mode == "permissive" else ()
    return (*DEFAULT_COLUMNS, *headers, *corrupt)


def _topics(options: Mapping[str, str]) -> frozenset[str] | None:
    text = options.get("subscribe") or options.get("topics")
    return None if text is None else frozenset(_split(text))


def _split(text: str) -> Iterable[str]:
    return (part.strip() for part in text.split(",") if part.strip())


def _assigned(options: Mapping[str, str]) -> frozenset[tuple[str, int]] | None:
    text = options.get("assign")
    if text is None:
        return None
    found = _json("assign", text)
    try:
        return frozenset(
            (topic, int(index)) for topic, indexes in found.items() for index in indexes
        )
    except (TypeError, ValueError, AttributeError) as error:
        raise OptionError("assign", text, 'must look like {"topic": [0, 1]}') from error


def _start(options: Mapping[str, str]) -> Bound:
    """Read where a stream starts."""
    text = options.get("startingoffsets", "latest").strip().lower()
    timed = {"startingtimestamp", "startingoffsetsbytimestamp"} & options.keys()
    if text in _WORDS and not timed:
        return Bound(_WORDS[text])
    return _bound(options, "starting", EARLIEST)


def _bound(options: Mapping[str, str], word: str, default: int) -> Bound:
    """Read what says where to start or to end; the most special option wins, as in Spark."""
    name = f"{word}OffsetsByTimestamp"
    if name.lower() in options:
        return Bound(default, timestamps=_places(name, options[name.lower()]))
    if f"{word}timestamp" in options:
        time_ms = _number(options, f"{word}Timestamp", 0, 0)
        return Bound(default, timestamp_ms=time_ms)
    name = f"{word}Offsets"
    text = options.get(name.lower())
    if text is None:
        return Bound(default)
    if text.strip().lower() in _WORDS:
        everywhere = _WORDS[text.strip().lower()]
        if everywhere != default and word == "ending":
            raise OptionError(name, text, "ends before anything; say latest, or offsets")
        if everywhere != default:
            raise OptionError(name, text, "starts behind everything; say earliest, or offsets")
        return Bound(everywhere)
    return Bound(default, _places(name, text))


def _places(name: str, text: str) -> dict[tuple[str, int], int]:
    found = _json(name, text)
    try:
        return {
            (topic, int(index)): int(place)
            for topic, places in found.items()
            for index, place in places.items()
        }
    except (TypeError, ValueError, AttributeError) as error:
        raise OptionError(name, text, 'must look like {"topic": {"0": 23, "1": -2}}') from error


def _json(name: str, text: str) -> dict[str, Any]:
    try:
        found: Any = json.loads(text)
    except ValueError as error:
        raise OptionError(name, text, f"is no JSON ({error})") from error
    if not isinstance(found, dict):
        raise OptionError(name, text, "must be a JSON object with a key per topic")
    return cast("dict[str, Any]", found)


def _one_of(options: Mapping[str, str], name: str, allowed: tuple[str, ...]) -> str:
    value = options.get(name.lower(), allowed[0]).lower()
    if value not in allowed:
        raise OptionError(name, value, f"must be one of: {', '.join(allowed)}")
    return value


def _number(options: Mapping[str, str], name: str, default: int, least: int) -> int:
    text = options.get(name.lower())
    if text is None:
        return default
    try:
        value = int(text)
    except ValueError:
        raise OptionError(name, text, "must be a whole number") from None
    if value < least:
        raise OptionError(name, text, f"must be at least {least}")
    return value


def _flag(options: Mapping[str, str], name: str) -> bool:
    return options.get(name.lower(), "false").strip().lower() == "true"

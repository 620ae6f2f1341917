"""
The options of a read, named and meant as those of Spark's Kafka source where it has them.

``subscribe``, ``subscribePattern``, ``assign`` (:mod:`logstore.compat.spark.topic_choice`);
``startingOffsets``, ``endingOffsets``, the ``…Timestamp`` and ``…OffsetsByTimestamp`` forms
(:mod:`logstore.compat.spark.offset_bounds`); ``minPartitions``, ``maxRecordsPerPartition``,
``includeHeaders``, ``failOnDataLoss``; of streams ``maxOffsetsPerTrigger``,
``minOffsetsPerTrigger``, ``maxTriggerDelay``. Options of its consumer (``kafka.…``) are passed
over, but for ``kafka.isolation.level``.

Own: ``path`` (several directories of one cluster with commas between), ``columns``, ``isolation``,
``mode``, ``splitBytes``, ``timestampSlackMs`` (:mod:`logstore.compat.spark.time_window`; -1 reads
whatever may hold a wanted record). Without ``splitBytes`` units have up to 128 MiB, and tasks more
than one of them where there are many.

Other than there, as files lie still: without a choice of topics all but internal ones are read;
offsets may be given for some partitions only; a time that no record of a partition is young enough
for reads nothing there, unless ``startingOffsetsByTimestampStrategy`` is ``error``; of a batch
query ``failOnDataLoss`` counts only where it is given; and only what is committed is read.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

import attrs

from logstore.compat.spark.columns import CORRUPT, DEFAULT_COLUMNS, HEADERS, checked_columns
from logstore.compat.spark.offset_bounds import Bound, check_order, ending, starting
from logstore.compat.spark.option_values import (
    OptionError,
    duration_ms,
    flag,
    number,
    one_of,
    text_of,
)
from logstore.compat.spark.topic_choice import TopicChoice, topic_choice
from logstore.compat.spark.work_unit import UNIT_BYTES

FAILFAST = "failfast"
PERMISSIVE = "permissive"
MODES = (FAILFAST, PERMISSIVE, "dropmalformed")
ISOLATIONS = ("read_committed", "read_uncommitted")
#: by how much times may go back inside of a batch without a row being missed
TIMESTAMP_SLACK_MS = 5 * 60 * 1000
#: as Spark's
_TRIGGER_DELAY_MS = 15 * 60 * 1000
_ISOLATION = "isolation"


@attrs.frozen
class TriggerOptions:
    """How many offsets a micro-batch has, and how long one waits for the fewest; 0: no bound."""

    offset_count_max: int = 0
    offset_count_min: int = 0
    delay_ms_max: int = _TRIGGER_DELAY_MS


@attrs.frozen
class ReadOptions:
    """What a read is asked for."""

    path: str
    start: Bound
    end: Bound
    columns: tuple[str, ...] = DEFAULT_COLUMNS
    choice: TopicChoice = attrs.field(factory=TopicChoice)
    is_committed_only: bool = True
    mode: str = "failfast"
    #: 0: as the size of what is read suggests
    split_bytes: int = 0
    #: 0: as few as split_bytes suggests
    partition_count_min: int = 0
    #: 0: as many as there are
    records_per_partition_max: int = 0
    timestamp_slack_ms: int = TIMESTAMP_SLACK_MS
    fails_on_loss: bool = True
    trigger: TriggerOptions = attrs.field(factory=TriggerOptions)

    @property
    def unit_bytes(self) -> int:
        """How much of a file a unit has at most."""
        return self.split_bytes or UNIT_BYTES

    def wants(self, topic: str, partition: int) -> bool:
        """Tell whether records of this partition are asked for."""
        return self.choice.wants(topic, partition)


def parse_options(given: Mapping[str, str], *, is_stream: bool = False) -> ReadOptions:
    """
    Read the options of ``spark.read``, or of ``spark.readStream``; their names' case is ignored.

    A stream starts with what is new, unless told otherwise.

    Raises:
        OptionError: a value is not allowed, or the path is missing.
        UnknownColumnError: there is no such column.

    """
    options = {name.lower(): value for name, value in given.items()}
    # Spark tells several by a list of JSON; here they are one, as log.dirs names them.
    path = options.get("path") or ",".join(json.loads(options.get("paths") or "[]"))
    if not path:
        raise OptionError("path", path, "must name the store's directory: .load(DIRECTORY)")
    start = starting(options, is_stream=is_stream)
    mode = one_of(options, "mode", MODES)
    return ReadOptions(
        path,
        start,
        _end(options, start, is_stream=is_stream),
        _columns(options, mode),
        topic_choice(options),
        _isolation(options) == "read_committed",
        mode,
        number(options, "splitBytes", 0, 1),
        number(options, "minPartitions", 0, 1),
        number(options, "maxRecordsPerPartition", 0, 1),
        number(options, "timestampSlackMs", TIMESTAMP_SLACK_MS, -1),
        flag(options, "failOnDataLoss", default=is_stream),
        _trigger(options),
    )


def _end(options: Mapping[str, str], start: Bound, *, is_stream: bool) -> Bound:
    if is_stream:
        for name in ("endingOffsets", "endingOffsetsByTimestamp", "endingTimestamp"):
            if (text := text_of(options, name)) is not None:
                raise OptionError(name, text, "is for batch queries: a stream goes on")
    end = ending(options)
    check_order(start, end)
    return end


def _isolation(options: Mapping[str, str]) -> str:
    name = _ISOLATION if _ISOLATION in options else "kafka.isolation.level"
    return one_of(options, name, ISOLATIONS)


def _trigger(options: Mapping[str, str]) -> TriggerOptions:
    most = number(options, "maxOffsetsPerTrigger", 0, 1)
    least = number(options, "minOffsetsPerTrigger", 0, 0)
    if most and least > most:
        raise OptionError("minOffsetsPerTrigger", least, f"is above maxOffsetsPerTrigger, {most}")
    return TriggerOptions(most, least, duration_ms(options, "maxTriggerDelay", _TRIGGER_DELAY_MS))


def _columns(options: Mapping[str, str], mode: str) -> tuple[str, ...]:
    text = options.get("columns")
    if text:
        return checked_columns(text.split(","))
    headers = (HEADERS,) if flag(options, "includeHeaders") else ()
    corrupt = (CORRUPT,) if mode == "permissive" else ()
    return (*DEFAULT_COLUMNS, *headers, *corrupt)

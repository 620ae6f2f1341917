"""
What a task does with a unit of a RocketMQ store: from bytes of the commit log to Arrow batches.

Bodies are handed on as they stand, but for compressed ones. A message that is a batch in itself
comes as the messages that it holds.
"""

from __future__ import annotations

import importlib
import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from logstore.compat.spark.columns import CORRUPT, HEADERS
from logstore.compat.spark.record_start import goes_on, next_record_position
from logstore.compat.spark.rocketmq_unit import QueueBounds, RocketMQUnit
from logstore.errors import CorruptEntryError
from logstore.host import FileSystem
from logstore.segments.rocketmq.columns import MessageColumns, iterate_columns, to_arrow
from logstore.segments.rocketmq.messages.message import Message, decode_message
from logstore.segments.rocketmq.messages.message_batch import decode_batch_body
from logstore.segments.rocketmq.messages.properties import KEYS, parse_properties
from logstore.segments.rocketmq.messages.system_flags import COMPRESSED, INNER_BATCH

#: it carries no types
pa: Any = importlib.import_module("pyarrow")
_log = logging.getLogger(__name__)
_CREATE_TIME = 0
_NOTHING = "there is no record, although the log goes on behind it"
#: our name of a column -> the decoder's
_DECODED = {
    "topic": "topic",
    "partition": "queue_id",
    "offset": "queue_offset",
    "queueOffset": "queue_offset",
    "physicalOffset": "physical_offset",
    "sizeBytes": "size_bytes",
    "tags": "tags",
    "keys": "keys",
    "bornHost": "born_host",
    "storeHost": "store_host",
    "sysFlag": "sys_flag",
    "reconsumeTimes": "reconsume_times",
}


class MessageReader:
    """Reads units into batches of one schema."""

    def __init__(self, fs: FileSystem, schema: Any, mode: str) -> None:
        self._fs = fs
        self._schema = schema
        self._names: Sequence[str] = schema.names
        self._mode = mode

    def read(self, unit: RocketMQUnit) -> Iterator[Any]:
        """
        Yield the unit's messages as ``pyarrow.RecordBatch``, in the order of the commit log.

        Raises:
            CorruptEntryError: mode failfast, and a record is damaged; it names file and position.

        """
        file = self._fs.open(unit.path, writable=False)
        try:
            base, end = unit.base_physical_offset, unit.end_position
            position = next_record_position(file, base, unit.position, end)
            while position < end:
                stop = position
                try:
                    for columns in iterate_columns(file, unit.path, position, None):
                        stop = _checked_end(columns, unit, position)
                        position = columns.next_position
                        yield from self._batches(columns, unit)
                        if position >= end:
                            break
                    if (stop < end or not unit.is_last) and not goes_on(file, base, stop):
                        raise CorruptEntryError(unit.path, stop, _NOTHING)
                    break
                except CorruptEntryError as error:
                    for columns in iterate_columns(file, unit.path, position, error.position):
                        stop = _checked_end(columns, unit, position)
                        position = columns.next_position
                        yield from self._batches(columns, unit)
                    at = error.position
                    # What begins behind the unit is told by others, unless they pass over it.
                    is_passed = stop == at and not unit.is_last and not goes_on(file, base, at)
                    if at < end or is_passed:
                        yield from self._refused(unit, error)
                    position = next_record_position(file, base, at + 1, end)
        finally:
            file.close()

    def _refused(self, unit: RocketMQUnit, error: CorruptEntryError) -> Iterator[Any]:
        """Raise in mode failfast, tell in mode permissive."""
        if self._mode == "failfast":
            raise error
        _log.warning("%s; passed over", error)
        if self._mode == "permissive" and CORRUPT in self._names:
            row = {"file": unit.path, "position": error.position, CORRUPT: str(error)}
            yield self._of_rows([row])

    def _batches(self, columns: MessageColumns, unit: RocketMQUnit) -> Iterator[Any]:
        positions = columns.physical_offset - unit.base_physical_offset
        is_wanted = columns.scan.is_queued & (positions < unit.end_position)
        is_wanted &= rows_within(columns, unit.bounds)
        is_batch = (columns.sys_flag & INNER_BATCH) != 0
        rows = np.flatnonzero(is_wanted & ~is_batch)
        if len(rows):
            yield self._batch(columns, unit, rows)
        for row in np.flatnonzero(is_batch & columns.scan.is_queued).tolist():
            yield from self._unwrapped(columns, unit, row)

    def _batch(self, columns: MessageColumns, unit: RocketMQUnit, rows: NDArray[Any]) -> Any:
        is_all = len(rows) == len(columns)
        taken = pa.array(rows)
        arrays: list[Any] = []
        for name in self._names:
            array = _column(name, columns, unit, rows)
            if len(array) != len(rows) or (name not in _BY_ROWS and not is_all):
                array = array.take(taken)
            arrays.append(array.cast(self._schema.field(name).type))
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def _unwrapped(self, columns: MessageColumns, unit: RocketMQUnit, row: int) -> Iterator[Any]:
        """Yield the messages of an inner batch that are wanted."""
        message = message_at(columns, row)
        bounds = unit.bounds.by_queue.get((message.topic, message.queue_id))
        position = message.physical_offset - unit.base_physical_offset
        if bounds is None or position >= unit.end_position:
            return
        base = int(message.properties.get("INNER_BASE", message.queue_offset))
        rows: list[dict[str, Any]] = []
        for index, item in enumerate(decode_batch_body(message.plain_body())):
            if bounds[0] <= base + index < bounds[1]:
                properties = parse_properties(item.properties_text)
                made = _row_of(message, item.body, properties, base + index)
                rows.append(made | {"file": unit.path, "position": position})
        if rows:
            yield self._of_rows(rows)

    def _of_rows(self, rows: list[dict[str, Any]]) -> Any:
        known = [{name: row.get(name) for name in self._names} for row in rows]
        return pa.RecordBatch.from_pylist(known, schema=self._schema)


def _checked_end(columns: MessageColumns, unit: RocketMQUnit, position: int) -> int:
    """
    Return where the records of a step end that begins at `position`, or the first behind the unit.

    Raises:
        CorruptEntryError: one says that it stands elsewhere.

    """
    ends = position + np.cumsum(columns.size_bytes, dtype=np.int64)
    places = ends - columns.size_bytes + unit.base_physical_offset
    wrong = np.flatnonzero(places != columns.physical_offset)
    if len(wrong):
        place, said = int(places[wrong[0]]), int(columns.physical_offset[wrong[0]])
        raise CorruptEntryError(
            unit.path,
            place - unit.base_physical_offset,
            f"physical offset {said} does not belong here, at {place}",
        )
    behind = ends[ends >= unit.end_position]
    return int(behind[0] if len(behind) else ends[-1])


def rows_within(columns: MessageColumns, bounds: QueueBounds) -> NDArray[np.bool_]:
    """Tell of every row whether its queue is wanted, and its queue offset there."""
    numbers, texts = columns.topic.numbers.astype(np.int64), columns.topic.texts
    keys = numbers << 32 | columns.queue_id.astype(np.int64) & 0xFFFF_FFFF
    found, rows = np.unique(keys, return_inverse=True)
    limits = np.zeros((2, len(found)), dtype=np.int64)
    distinct: list[int] = found.tolist()
    for place, key in enumerate(distinct):
        queue_id = (key & 0xFFFF_FFFF) - (1 << 32 if key & 0x8000_0000 else 0)
        limits[:, place] = bounds.by_queue.get((texts[key >> 32], queue_id), (0, 0))
    offsets = columns.queue_offset
    within: NDArray[np.bool_] = (offsets >= limits[0][rows]) & (offsets < limits[1][rows])
    return within


def _column(name: str, columns: MessageColumns, unit: RocketMQUnit, rows: NDArray[Any]) -> Any:
    """Return a column of all rows, or of the wanted ones if each costs something."""
    if name in _DECODED:
        return to_arrow(columns, (_DECODED[name],)).column(0)
    count = len(columns)
    if name == "key":
        return to_arrow(columns, ("keys",)).column(0).cast(pa.binary())
    if name == "timestamp":
        return pa.array(columns.born_timestamp_ms * 1000).cast(pa.timestamp("us", tz="UTC"))
    if name == "timestampType":
        return pa.array(np.full(count, _CREATE_TIME, dtype=np.int32))
    if name == "bornTimestamp":
        return pa.array(columns.born_timestamp_ms)
    if name == "storeTimestamp":
        return pa.array(columns.store_timestamp_ms)
    if name == "file":
        return pa.array([unit.path]).take(pa.array(np.zeros(count, dtype=np.int32)))
    if name == "position":
        return pa.array(columns.physical_offset - unit.base_physical_offset)
    if name == CORRUPT:
        return pa.nulls(count, pa.string())
    if name == "value":
        return _bodies(columns, rows)
    return _texts(name, columns, rows)


_BY_ROWS = frozenset(("value", HEADERS, "properties"))


def _bodies(columns: MessageColumns, rows: NDArray[Any]) -> Any:
    """Return the bodies of these rows, decompressed."""
    is_packed = (columns.sys_flag[rows] & COMPRESSED) != 0
    stored = to_arrow(columns, ("body",)).column(0)
    if len(rows) < len(columns):
        stored = stored.take(pa.array(rows))
    if not is_packed.any():
        return stored
    bodies = stored.to_pylist()
    for place in np.flatnonzero(is_packed).tolist():
        bodies[place] = message_at(columns, int(rows[place])).plain_body()
    return pa.array(bodies, pa.binary())


def _texts(name: str, columns: MessageColumns, rows: NDArray[Any]) -> Any:
    """Return headers or properties of these rows."""
    texts = to_arrow(columns, ("properties",)).column(0).take(pa.array(rows)).to_pylist()
    found = [parse_properties(text) for text in texts]
    if name == HEADERS:
        header = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])
        return pa.array([_headers(properties) for properties in found], pa.list_(header))
    return pa.array([list(one.items()) for one in found], pa.map_(pa.string(), pa.string()))


def _headers(properties: Mapping[str, str]) -> list[dict[str, Any]] | None:
    """Return all properties but the keys, null if there are none, as in Spark's Kafka source."""
    headers = [
        {"key": name, "value": value.encode()} for name, value in properties.items() if name != KEYS
    ]
    return headers or None


def message_at(columns: MessageColumns, row: int) -> Message:
    """Return one row as a message."""
    size_bytes = int(columns.size_bytes[row])
    start = int(columns.physical_offset[row] - columns.physical_offset[0])
    return decode_message(columns.scan.data[start : start + size_bytes].data)


def _row_of(
    message: Message, body: bytes, properties: Mapping[str, str], queue_offset: int
) -> dict[str, Any]:
    """Return a message of an inner batch as a row."""
    keys = properties.get(KEYS)
    return {
        "key": None if keys is None else keys.encode(),
        "value": body,
        "topic": message.topic,
        "partition": message.queue_id,
        "offset": queue_offset,
        "timestamp": message.born_timestamp_ms * 1000,
        "timestampType": _CREATE_TIME,
        HEADERS: _headers(properties),
        "queueOffset": queue_offset,
        "physicalOffset": message.physical_offset,
        "sizeBytes": message.size_bytes,
        "keys": keys,
        "tags": properties.get("TAGS"),
        "bornTimestamp": message.born_timestamp_ms,
        "storeTimestamp": message.store_timestamp_ms,
        "bornHost": str(message.born_host),
        "storeHost": str(message.store_host),
        "sysFlag": message.sys_flag,
        "reconsumeTimes": message.reconsume_times,
        "properties": dict(properties),
    }

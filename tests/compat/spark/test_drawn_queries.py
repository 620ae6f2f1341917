"""
Queries drawn at random over logs drawn at random, held against all records that were written.

Logs have many small segments, batches of every codec, times that go back, transactions of either
end or none, and a part removed; they are read beside the writer, after it closed, and after it
died. Queries have bounds by offset and by time, filters, an isolation and sizes of tasks.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logstore.compat.spark.data_loss import check_bounds
from logstore.compat.spark.kafka_rows import RowReader
from logstore.compat.spark.options import TIMESTAMP_SLACK_MS, parse_options
from logstore.compat.spark.predicates import INT64_MAX, Where
from logstore.compat.spark.stores import open_for_reading, plan_tasks
from logstore.compat.spark.work_unit import WorkUnit
from logstore.os_host import system_host
from logstore.segments.kafka.compression import Codec
from logstore.segments.kafka.record import Record, encode_batch
from logstore.segments.kafka.store import KafkaStore

pytest.importorskip("pyarrow", reason="pyarrow is missing: extra `columns`")

from logstore.compat.spark.columns import arrow_schema

T = 1_700_000_000_000
#: by how much time goes on before a batch; records lie around that by less than queries allow for
ADVANCES = st.integers(0, 9_000)
AROUND = st.sampled_from([0, 0, 1, -1, 700, -700, 3_000, -3_000])
#: hundredths of what there is
SHARES = st.integers(0, 100)
PRODUCERS = (11, 12)


@attrs.frozen
class Written:
    """A record, and whether its transaction came to an end: True if it committed, None if open."""

    offset: int
    timestamp_ms: int
    value: bytes
    is_committed: bool | None = True


@attrs.define
class Log:
    """A partition that is written to, and all that a query may be asked for."""

    store: KafkaStore
    written: list[Written] = attrs.field(factory=list[Written])
    open: dict[int, list[Written]] = attrs.field(factory=dict[int, list[Written]])
    sequences: dict[int, int] = attrs.field(factory=dict[int, int])
    time_ms: int = T

    @property
    def partition(self) -> Any:
        """What is written to."""
        return self.store.partition("t", 0)

    def append(
        self, advance_ms: int, around_ms: list[int], codec: Codec, producer: int | None
    ) -> None:
        """Append a batch, of a transaction if there is a producer."""
        self.time_ms += advance_ms
        start = self.partition.end_offset
        found = [
            Written(start + n, self.time_ms + ms, b"%d" % (start + n), producer is None or None)
            for n, ms in enumerate(around_ms)
        ]
        own: dict[str, Any] = {}
        if producer is not None:
            own = {"producer_id": producer, "producer_epoch": 0, "is_transactional": True}
            own["base_sequence"] = self.sequences.get(producer, 0)
            self.sequences[producer] = own["base_sequence"] + len(found)
            self.open.setdefault(producer, []).extend(found)
        records = [
            Record(index, one.timestamp_ms, None, one.value) for index, one in enumerate(found)
        ]
        batch = encode_batch(records, codec=codec, **own)
        self.partition.append_produced(memoryview(batch), T)
        self.written += found

    def end(self, producer: int, *, is_committed: bool) -> None:
        """End the producer's transaction, if it has one."""
        ended = self.open.pop(producer, None)
        if ended is None:
            return
        self.partition.append_marker(
            producer, 0, is_commit=is_committed, coordinator_epoch=0, now_ms=T
        )
        offsets = {one.offset for one in ended}
        self.written = [
            attrs.evolve(one, is_committed=is_committed) if one.offset in offsets else one
            for one in self.written
        ]


APPENDS = st.tuples(
    st.just("append"),
    ADVANCES,
    st.lists(AROUND, min_size=1, max_size=12),
    st.sampled_from(list(Codec)),
    st.sampled_from([None, None, None, *PRODUCERS]),
)
OTHER_STEPS = (
    st.tuples(st.just("end"), st.sampled_from(PRODUCERS), st.booleans())
    | st.tuples(st.just("remove"), SHARES)
    | st.tuples(st.just("flush"))
)
#: logs of more than one or two batches
STEPS = st.lists(APPENDS | APPENDS | OTHER_STEPS, min_size=15, max_size=40)
BOUNDS = st.none() | st.tuples(st.sampled_from(["offset", "time"]), SHARES)
QUERIES = st.fixed_dictionaries(
    {
        "start": BOUNDS,
        "end": BOUNDS,
        "isolation": st.sampled_from(["read_committed", "read_uncommitted"]),
        "splitBytes": st.sampled_from(["1", "500", "100000"]),
        "minPartitions": st.none() | st.integers(1, 9).map(str),
        "maxRecordsPerPartition": st.none() | st.integers(1, 50).map(str),
        "offsets": st.none() | st.tuples(SHARES, SHARES),
        "times": st.none() | st.tuples(SHARES, SHARES),
    }
)


def fill(log: Log, steps: list[Any]) -> None:
    """Write what was drawn."""
    for step in steps:
        if step[0] == "append":
            log.append(*step[1:])
        elif step[0] == "end":
            log.end(step[1], is_committed=step[2])
        elif step[0] == "flush":
            log.partition.flush()
        else:
            partition = log.partition
            partition.delete_records(partition.last_stable_offset * step[1] // 100)
            log.store.write_checkpoints()


@contextmanager
def filled(steps: list[Any], state: str, index_interval_bytes: int) -> Generator[Log]:
    """A store with what was drawn: beside its writer, after it closed, or after it died."""
    with tempfile.TemporaryDirectory() as directory:
        store = KafkaStore(system_host(), f"{directory}/data")
        config = {"segment.ms": "30000", "retention.ms": "-1"}
        config["index.interval.bytes"] = str(index_interval_bytes)
        store.create_topic("t", 1, config)
        log = Log(store)
        fill(log, steps)
        if state == "closed":
            store.close()
        elif state == "dead":
            store.abandon()
        yield log
        if state == "live":
            store.close()


@attrs.frozen
class Asked:
    """A query, with offsets and times of the log that it goes to; both inclusive but for ends."""

    start: tuple[str, int] | None
    end: tuple[str, int] | None
    offsets: tuple[int, int]
    times: tuple[int, int]
    drawn: dict[str, Any]

    @classmethod
    def of(cls, drawn: dict[str, Any], log: Log, end_offset: int) -> Asked:
        """Take hundredths for what they stand for."""
        times = sorted(one.timestamp_ms for one in log.written) or [T]

        def place(kind: str, share: int) -> int:
            return end_offset * share // 100 if kind == "offset" else _at(times, share)

        start, end = (
            drawn[word] and (drawn[word][0], place(*drawn[word])) for word in ("start", "end")
        )
        low, high = drawn["offsets"] or (0, 100)
        inside = (place("offset", low), place("offset", high) if drawn["offsets"] else INT64_MAX)
        between = (-INT64_MAX, INT64_MAX)
        if drawn["times"]:
            oldest, youngest = drawn["times"]
            between = (_at(times, oldest), _at(times, youngest))
        return cls(start, end, inside, between, drawn)

    @property
    def contradicts_itself(self) -> bool:
        """Whether an end lies before its start, both being of a kind: that is refused."""
        start, end = self.start, self.end
        return bool(start and end and start[0] == end[0] and end[1] < start[1])

    @property
    def options(self) -> dict[str, str]:
        """What Spark is given."""
        found = {"subscribe": "t", "isolation": self.drawn["isolation"]}
        for name in ("splitBytes", "minPartitions", "maxRecordsPerPartition"):
            if self.drawn[name]:
                found[name] = self.drawn[name]
        for word, bound in (("starting", self.start), ("ending", self.end)):
            if bound is None:
                continue
            kind, place = bound
            if kind == "offset":
                found[f"{word}Offsets"] = json.dumps({"t": {"0": place}})
            else:
                found[f"{word}Timestamp"] = str(place)
        return found

    @property
    def where(self) -> Where:
        """What Spark makes of the filters."""
        return Where(None, None, *self.offsets, *self.times)

    def expected(self, log: Log, start_offset: int, end_offset: int, stable: int) -> list[int]:
        """Return the offsets that the query is to give, by what was written."""
        kept = [one for one in log.written if one.offset >= start_offset]

        def resolved(bound: tuple[str, int] | None, otherwise: int) -> int:
            if bound is None or bound[0] == "offset":
                return otherwise if bound is None else bound[1]
            young = (one.offset for one in kept if one.timestamp_ms >= bound[1])
            return next(young, end_offset)

        first, last = resolved(self.start, 0), resolved(self.end, end_offset)
        if self.drawn["isolation"] == "read_committed":
            last = min(last, stable)
            kept = [one for one in kept if one.is_committed]
        return [
            one.offset
            for one in kept
            if first <= one.offset < last and self.lets_through(one.offset, one.timestamp_ms)
        ]

    def lets_through(self, offset: int, timestamp_ms: int) -> bool:
        """Tell whether the filters let a row through."""
        low, high = self.offsets
        oldest, youngest = self.times
        return low <= offset <= high and oldest <= timestamp_ms <= youngest


def _at(times: list[int], share: int) -> int:
    return times[min(len(times) * share // 100, len(times) - 1)]


def found_by(directory: str, options: dict[str, str], where: Where) -> list[list[tuple[int, int]]]:
    """Return offsets and times of what a query reads, task by task, without Spark."""
    parsed = parse_options({**options, "path": directory})
    with open_for_reading(directory) as store:
        check_bounds(store, parsed)
        tasks = plan_tasks(store, parsed, where)
    schema = arrow_schema(("offset", "timestamp", "value"))
    reader = RowReader(system_host().fs, schema, where, "failfast", TIMESTAMP_SLACK_MS)
    found: list[list[tuple[int, int]]] = []
    for task in tasks:
        rows = [
            row
            for unit in task
            if isinstance(unit, WorkUnit)
            for batch in reader.read(unit)
            for row in batch.to_pylist()
        ]
        assert all(row["value"] == b"%d" % row["offset"] for row in rows)
        found.append([(row["offset"], round(row["timestamp"].timestamp() * 1000)) for row in rows])
    return found


@given(
    steps=STEPS,
    state=st.sampled_from(["live", "closed", "dead"]),
    index_interval_bytes=st.sampled_from([0, 300, 4096]),
    queries=st.lists(QUERIES, min_size=3, max_size=8),
)
@settings(max_examples=40)
def test_a_query_gives_what_was_written(
    steps: list[Any], state: str, index_interval_bytes: int, queries: list[dict[str, Any]]
) -> None:
    """All that is wanted, each record once; what a filter lets through besides Spark takes out."""
    with filled(steps, state, index_interval_bytes) as log:
        partition = log.partition
        bounds = (partition.start_offset, partition.end_offset, partition.last_stable_offset)
        for drawn in queries:
            asked = Asked.of(drawn, log, partition.end_offset)
            if asked.contradicts_itself:
                continue
            tasks = found_by(log.store.directory, asked.options, asked.where)
            rows = [row for task in tasks for row in task if asked.lets_through(*row)]
            assert [offset for offset, _ in rows] == asked.expected(log, *bounds), asked
            most = int(asked.options.get("maxRecordsPerPartition", INT64_MAX))
            assert all(len(task) <= most for task in tasks)

"""RocketMQ's files themselves, without a broker: put, dispatched, synced, recovered, pulled."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager

import attrs

from logstore.os_host import system_host
from logstore.segments.rocketmq.messages.host_address import HostAddress
from logstore.segments.rocketmq.messages.message_batch import (
    BatchItem,
    MessageBatchDraft,
    draft_batch,
    encode_batch_body,
)
from logstore.segments.rocketmq.messages.message_draft import MessageDraft, draft_message
from logstore.segments.rocketmq.reading.get_message import GetMessageStatus
from logstore.segments.rocketmq.store import RocketMQStore, StoreOptions
from logstore.tools.bench.figures import Bar, Metric
from logstore.tools.bench.frames import BenchError
from logstore.tools.bench.layout_cells import LayoutCell, Workplace

_TOPIC = "bench"
_QUEUE_COUNT = 8
_BATCH_COUNT = 32
_TIME_MS = 1_700_000_000_000
_BORN = HostAddress.of("10.0.0.5", 50000)
_STORED = HostAddress.of("10.0.0.1", 10911)
#: what a 5.x broker stores with a message of its Java client
_PROPERTIES = (
    b"MSG_REGION\x01DefaultRegion\x02UNIQ_KEY\x01%032X\x02CLUSTER\x01DefaultCluster\x02"
    b"WAIT\x01true\x02TRACE_ON\x01true\x02"
)
#: what is the same in all unique keys of a client: its address, process and class loader
_CLIENT = 0x0A000005_1F90_18B4AAC2 << 48
#: puts after which a broker dispatches what one read of its sockets brought
_PUTS_A_TURN = 64
_TURNS_A_TICK = 16


def _draft(number: int, body: bytes) -> MessageDraft:
    return draft_message(
        topic=_TOPIC,
        body=body,
        queue_id=number % _QUEUE_COUNT,
        properties_text=_PROPERTIES % number,
        born_timestamp_ms=_TIME_MS,
        born_host=_BORN,
        store_host=_STORED,
    )


def _batch_body(body: bytes, first: int = 0) -> bytes:
    """Return a client's batch; the unique keys of messages count on from `first`."""
    numbers = range(first, first + _BATCH_COUNT)
    items = (BatchItem(body, b"UNIQ_KEY\x01%032X\x02" % (_CLIENT | number)) for number in numbers)
    return encode_batch_body(items)


def _batch(number: int, body: bytes) -> MessageBatchDraft:
    return draft_batch(
        topic=_TOPIC,
        body=body,
        queue_id=number % _QUEUE_COUNT,
        born_timestamp_ms=_TIME_MS,
        born_host=_BORN,
        store_host=_STORED,
    )


@contextmanager
def _store(workplace: Workplace, name: str) -> Generator[RocketMQStore]:
    """Yield an empty store; it is thrown away afterwards."""
    path = f"{workplace.directory}/{name}"
    store = RocketMQStore(system_host(), path, StoreOptions())
    try:
        yield store
    finally:
        store.abandon()
        shutil.rmtree(path, ignore_errors=True)


@attrs.frozen
class Put:
    """Drafted, put, dispatched and written: all that one core does of a message."""

    body_bytes: int = 1024
    count: int = 200_000

    def __call__(self, workplace: Workplace) -> Mapping[str, float]:
        """Put one message at a time, with a dispatch every 64 and a write every 1,024."""
        count = int(self.count * workplace.scale)
        body = bytes(self.body_bytes)
        with _store(workplace, "put") as store:
            busy, began = time.thread_time(), time.perf_counter()
            for number in range(count):
                if not store.put_message(_draft(number, body)).is_ok:
                    raise BenchError("a put was refused")
                if number % _PUTS_A_TURN == 0:
                    store.dispatch()
                    if number % (_PUTS_A_TURN * _TURNS_A_TICK) == 0:
                        store.write_derived()
            store.dispatch()
            store.write_derived()
            busy, elapsed = time.thread_time() - busy, time.perf_counter() - began
            if store.stats.put_times_total != count or store.dispatching.behind_bytes:
                raise BenchError("not every message was put and dispatched")
        return {"messages": count / busy / 1e3, "wall_messages": count / elapsed / 1e3}


@attrs.frozen
class PutBatch:
    """Batches of 32, drafted and put; what dispatch takes of them is a figure of its own."""

    body_bytes: int = 128
    count: int = 20_000

    def __call__(self, workplace: Workplace) -> Mapping[str, float]:
        """Put batches; dispatch them every 64, timed apart."""
        count = int(self.count * workplace.scale)
        body = _batch_body(bytes(self.body_bytes))
        putting = dispatching = 0.0
        with _store(workplace, "put-batch") as store:
            for start in range(0, count, _PUTS_A_TURN):
                began = time.thread_time()
                for number in range(start, min(start + _PUTS_A_TURN, count)):
                    if not store.put_batch(_batch(number, body)).is_ok:
                        raise BenchError("a batch was refused")
                put = time.thread_time()
                store.dispatch()
                store.write_derived()
                dispatching += time.thread_time() - put
                putting += put - began
        messages = count * _BATCH_COUNT
        return {"messages": messages / putting / 1e3, "dispatched": messages / dispatching / 1e3}


def group_commit(workplace: Workplace) -> Mapping[str, float]:
    """A hundred puts that wait for the disk, and one sync for all of them."""
    body = bytes(128)
    syncs = 0
    with _store(workplace, "group-commit") as store:
        rounds = max(int(50 * workplace.scale), 5)
        began = time.perf_counter()
        for start in range(rounds):
            waiting = [store.put_message(_draft(start * 100 + n, body)) for n in range(100)]
            while any(
                store.commit_log.flushed_where < result.next_physical_offset for result in waiting
            ):
                task = store.commit_log.begin_flush()
                task.run()
                store.commit_log.end_flush(task)
                syncs += 1
        elapsed = time.perf_counter() - began
    return {"syncs": syncs / rounds, "ms": elapsed / rounds * 1e3}


@attrs.frozen
class Recover:
    """A store opened that was killed: every CRC checked, queues and index made anew."""

    body_bytes: int
    mebibytes: int

    def __call__(self, workplace: Workplace) -> Mapping[str, float]:
        """Open it once before, to have the files cached."""
        path = f"{workplace.directory}/recover-{self.body_bytes}"
        size_bytes, count = self.make(path, int(self.mebibytes * 2**20 * workplace.scale))
        figures: Mapping[str, float] = {}
        for _ in range(2):
            for name in ("consumequeue", "index", "checkpoint"):
                shutil.rmtree(f"{path}/{name}", ignore_errors=True)
            if os.path.exists(f"{path}/checkpoint"):
                os.remove(f"{path}/checkpoint")
            began, busy = time.perf_counter(), time.process_time()  # it may read ahead in a thread
            store = RocketMQStore(system_host(), path)
            elapsed, busy = time.perf_counter() - began, time.process_time() - busy
            found = store.recovery.dispatched_count
            end = store.commit_log.max_physical_offset
            store.abandon()
            if (found, end) != (count, size_bytes):
                raise BenchError(f"{path}: {found} messages, {end} bytes were recovered")
            figures = {"bytes": size_bytes / elapsed / 1e9, "messages": count / busy / 1e6}
        shutil.rmtree(path)
        return figures

    def make(self, path: str, size_bytes: int) -> tuple[int, int]:
        """Fill a commit log, and leave it as a killed process does."""
        store = RocketMQStore(system_host(), path)
        body, number = bytes(self.body_bytes), 0
        while store.commit_log.wrote_where < size_bytes:
            store.put_batch(_batch(number, _batch_body(body, number * _BATCH_COUNT)))
            number += 1
        end = store.commit_log.wrote_where
        store.abandon()
        return end, number * _BATCH_COUNT


@attrs.frozen
class ToColumns:
    """A commit log to columns: topics, queues, places, times, properties and bodies."""

    body_bytes: int = 128
    mebibytes: int = 64

    def __call__(self, workplace: Workplace) -> Mapping[str, float]:
        """CPU time of the one thread that does it, without CRCs and with them."""
        try:
            from logstore.segments.rocketmq.columns import iterate_columns
        except ImportError as error:
            raise BenchError(f"{error}; install the extra `columns`") from error
        path = f"{workplace.directory}/columns"
        recover = Recover(self.body_bytes, self.mebibytes)
        size_bytes, expected = recover.make(path, int(self.mebibytes * 2**20 * workplace.scale))
        log = f"{path}/commitlog/{0:020}"
        file = system_host().fs.open(log, writable=False)
        figures: dict[str, float] = {}
        for verify_crc in (False, True, False, True):  # the first two load the compiled loops
            count, busy = 0, time.thread_time()
            for columns in iterate_columns(file, log, 0, size_bytes, verify_crc=verify_crc):
                _ = columns.topic, columns.queue_id, columns.queue_offset, columns.physical_offset
                _ = columns.store_timestamp_ms, columns.sys_flag, columns.tags_code
                _ = columns.properties_text, columns.body
                count += len(columns)
            figures["checked" if verify_crc else "messages"] = (
                count / (time.thread_time() - busy) / 1e6
            )
            if count != expected:
                raise BenchError(f"{log}: {count} messages instead of {expected}")
        file.close()
        figures["copied"] = _copied(log, size_bytes)
        shutil.rmtree(path)
        return figures


def _copied(path: str, size_bytes: int) -> float:
    """Return how many GB of a cached file one core copies a second: no decoder is faster."""
    target = bytearray(2**20)
    with open(path, "rb", buffering=0) as file:
        busy = time.thread_time()
        while file.tell() < size_bytes:
            file.readinto(target)
        return size_bytes / (time.thread_time() - busy) / 1e9


def pull(workplace: Workplace) -> Mapping[str, float]:
    """Pulls of 32 messages of 1 KiB of one queue, without reading what they found."""
    with _store(workplace, "pull") as store:
        for number in range(_QUEUE_COUNT * 3200):
            store.put_message(_draft(number, bytes(1024)))
        store.dispatch()
        store.write_derived()
        began, rounds = time.thread_time(), 0
        for _ in range(20):
            for queue_offset in range(0, 3200, 32):
                found = store.get_message("group", _TOPIC, 0, queue_offset, 32)
                if found is None or found.status is not GetMessageStatus.FOUND:
                    raise BenchError("a pull found nothing")
                rounds += 1
        busy = time.thread_time() - began
    return {"us": busy / rounds * 1e6}


def _cell(
    name: str, metrics: tuple[Metric, ...], run: Callable[[Workplace], Mapping[str, float]]
) -> LayoutCell:
    return LayoutCell("rocketmq", name, metrics, run)


ROCKETMQ_CELLS: list[LayoutCell] = [
    _cell(
        "put of 1 KiB: drafted, put, dispatched",
        (
            Metric("messages", "k messages/s a core", Bar("value", ">=", 60)),
            Metric("wall_messages", "k messages/s", is_shown=False),
        ),
        Put(),
    ),
    _cell(
        "put of batches of 32 x 128 B",
        (
            Metric("messages", "k messages/s a core", Bar("value", ">=", 500)),
            Metric("dispatched", "k messages/s dispatched a core"),
        ),
        PutBatch(),
    ),
    _cell(
        "100 puts wait for the disk",
        (Metric("syncs", "syncs", Bar("value", "<=", 1)), Metric("ms", "ms")),
        group_commit,
    ),
    _cell(
        "pull of 32 x 1 KiB",
        (Metric("us", "us CPU", Bar("value", "<", 60)),),
        pull,
    ),
    _cell(
        "128 B messages to columns",
        (
            Metric("messages", "M messages/s a core", Bar("value", ">=", 5)),
            Metric("checked", "M messages/s a core with CRCs"),
            Metric("copied", "GB/s a core only copied"),
        ),
        ToColumns(),
    ),
    *(
        _cell(
            f"recovery of {mebibytes} MiB, {what} messages",
            (
                Metric("bytes", "GB/s", Bar("value", ">=", 1) if body_bytes > 1000 else None),
                Metric(
                    "messages",
                    "M messages/s dispatched",
                    Bar("value", ">=", 1) if body_bytes < 1000 else None,
                ),
            ),
            Recover(body_bytes, mebibytes),
        )
        for what, body_bytes, mebibytes in (("128 B", 128, 256), ("1 KiB", 1024, 512))
    ),
]

"""Scans of many records at once: they say what the slow way says, and stop where it must judge."""

from __future__ import annotations

import importlib.util
import random
import sys
import zlib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from logstore.java_hash import java_hash
from logstore.segments.rocketmq.columns import RecordScan, ScanStop, kernel, scan_records
from logstore.segments.rocketmq.messages.corrupt_message import CorruptMessageError
from logstore.segments.rocketmq.messages.dispatch_request import (
    Blank,
    DispatchRequest,
    read_dispatch_request,
)
from logstore.segments.rocketmq.messages.host_address import HostAddress
from logstore.segments.rocketmq.messages.message_draft import blank_entry, draft_message
from logstore.segments.rocketmq.messages.system_flags import is_queued
from tests.damage import damaged
from tests.segments.rocketmq.golden_case import GoldenCase
from tests.segments.rocketmq.golden_records import ids_of, stored_records, stores

STORES = stores()
FIELDS = [name for name in DispatchRequest.__slots__ if name != "_properties"]
HOSTS = (HostAddress.of("10.0.0.5", 50000), HostAddress.of("fd00::1", 10911))


def record(
    topic: str = "t", text: bytes = b"", body: bytes = b"body", queue_id: int = 0, sys_flag: int = 0
) -> bytes:
    """Return a message's bytes."""
    one = draft_message(
        topic=topic,
        body=body,
        queue_id=queue_id,
        properties_text=text,
        sys_flag=sys_flag,
        born_timestamp_ms=1,
        born_host=HOSTS[queue_id % 2],
        store_host=HOSTS[sys_flag % 2],
    )
    one.stamp(queue_id * 7, 1700000000123)
    return bytes(memoryview(one.stamped(1 << 40).data))


def read_slowly(data: bytes) -> Iterator[DispatchRequest]:
    """Yield the requests in `data` one by one, up to what is none."""
    position = 0
    while position < len(data):
        try:
            found = read_dispatch_request(data, position, verify_crc=True)
        except CorruptMessageError:
            return
        if isinstance(found, Blank):
            return
        yield found
        position += found.size_bytes


def check(scan: RecordScan, expected: list[DispatchRequest]) -> None:
    """Compare all that a scan says with what was read one by one."""
    assert len(scan) == len(expected)
    for row, request in enumerate(expected):
        found = scan.request(row)
        for name in FIELDS:
            assert getattr(found, name) == getattr(request, name), name
        assert scan.is_queued[row] == is_queued(request.sys_flag)
        assert scan.is_inner_batch[row] == bool(request.sys_flag & 0x80)
        assert scan.is_multi_dispatch[row] == ("INNER_MULTI_DISPATCH" in request.properties)
    check_units(scan, expected)
    for has_tag_keys in (False, True):
        check_index(scan, expected, has_tag_keys)


def check_units(scan: RecordScan, expected: list[DispatchRequest]) -> None:
    """Compare the units of every queue."""
    units: dict[tuple[str, int], bytes] = defaultdict(bytes)
    offsets: dict[tuple[str, int], list[int]] = defaultdict(list)
    for one in expected:
        if is_queued(one.sys_flag):
            units[one.topic, one.queue_id] += (
                one.physical_offset.to_bytes(8, signed=True)
                + one.size_bytes.to_bytes(4)
                + one.tags_code.to_bytes(8, signed=True)
            )
            offsets[one.topic, one.queue_id].append(one.queue_offset)
    runs = list(scan.queue_runs())
    assert {(run.topic, run.queue_id): bytes(run.units) for run in runs} == units
    assert len(runs) == len(units)
    for run in runs:
        found = run.queue_offsets.tolist()
        assert found == offsets[run.topic, run.queue_id]
        assert run.is_dense == (found == list(range(found[0], found[0] + len(found))))
        assert [scan.request(row).topic for row in run.rows.tolist()] == [run.topic] * len(found)


def check_index(scan: RecordScan, expected: list[DispatchRequest], has_tag_keys: bool) -> None:
    """Compare what the index is to note."""
    found: list[tuple[int, int, int]] = []
    for one in expected:
        if one.sys_flag & 12 == 12:
            continue
        keys = [one.unique_key] if one.unique_key else []
        keys += [key for key in one.keys.split(" ") if key]
        keys += [f"T#{one.tags}"] if has_tag_keys and one.tags else []
        where = one.physical_offset, one.store_timestamp_ms
        found += [(java_hash(f"{one.topic}#{key}"), *where) for key in keys]
    entries = scan.index_entries(has_tag_keys=has_tag_keys)
    columns = (entries.hashes, entries.physical_offsets, entries.store_timestamps_ms)
    assert list(zip(*(column.tolist() for column in columns), strict=True)) == found
    assert len(entries) == len(found)
    assert scan.table[kernel.PHYSICAL_OFFSET, entries.rows].tolist() == [one[1] for one in found]


@pytest.mark.parametrize(("case", "store"), STORES, ids=ids_of(STORES))
def test_golden_commit_logs_are_scanned_as_they_are_read(case: GoldenCase, store: Path) -> None:
    """Every file, whole: the same messages, units and index keys, up to the BLANK or the zeros."""
    files = {record.file for record in stored_records(store)}
    for file in files:
        data = file.read_bytes()
        scan = scan_records(data, verify_crc=True)
        check(scan, list(read_slowly(data)))
        has_blank = any(data[scan.end_position : scan.end_position + 8])
        assert scan.stop is (ScanStop.BLANK if has_blank else ScanStop.FOREIGN)
        assert scan.end_position == sum(scan.column(kernel.SIZE).tolist())
    assert files


texts = st.one_of(
    st.text("TAGSKEYabc \x01\x02\x00é中🚀", max_size=30).map(str.encode),
    st.binary(max_size=20),
    st.sampled_from(
        [
            b"TAGS\x01TagA\x02KEYS\x01k1 k2\x02UNIQ_KEY\x01u1\x02",
            b"TAGS\x01TagB\x02KEYS\x01k3 k4\x02UNIQ_KEY\x01u2\x02",
            b"TAGS\x01Ta\x01B\x02KEYS\x01k3 k4\x02UNIQ_KEY\x01u2\x02",
            b"TAGS\x01Ta\x02B\x02KEYS\x01k3 k4\x02UNIQ_KEY\x01u2\x02",
            b"TAGS\x01Ta\x00B\x02KEYS\x01k3 k4\x02UNIQ_KEY\x01u2\x02",
            b"tAGS\x01TagB\x02KEYS\x01k3 k4\x02UNIQ_KEY\x01u2\x02",
            "TAGS\x01标签\x02KEYS\x01é\x02INNER_MULTI_DISPATCH\x01a".encode(),
            b"TAGS\x01\xff\xfe\x02KEYS\x01\xc0 \xe2\x82\x02DELAY\x013",
        ]
    ),
)
messages = st.builds(
    record,
    st.sampled_from(["t", "topic/中", "t" * 128, "other"]),
    texts,
    st.binary(max_size=40),
    st.integers(0, 3),
    st.sampled_from([0, 1, 4, 8, 12, 0x80]),
)


@given(st.lists(messages, max_size=12))
def test_any_messages_are_scanned_as_they_are_read(records: list[bytes]) -> None:
    """Odd properties, texts that are no UTF-8, hosts and versions of both kinds: all the same."""
    data = b"".join(records)
    scan = scan_records(data, verify_crc=True)
    check(scan, list(read_slowly(data)))
    assert (scan.stop, scan.end_position) == (ScanStop.ALL_READ, len(data))


def test_texts_that_only_look_alike_are_told_apart() -> None:
    """Same size and separators as the one before, yet another name, or one more separator."""
    bodies = [
        b"TAGS\x01%b\x02x\x01y" % value for value in (b"abcd", b"efgh", b"a\x02cd", b"a\x01cd")
    ]
    bodies += [
        b"TAGX\x01abcd\x02x\x01y",
        b"TAGS\x01a\x00cd\x02x\x01y",
        b"TAGS\x01a\x02cd\x02x\x01y",
    ]
    data = b"".join(record(text=text) for text in bodies)
    scan = scan_records(data)
    assert [scan.text(row, kernel.TAGS) for row in range(len(bodies))] == [
        b"abcd",
        b"efgh",
        b"a",
        b"a\x01cd",
        None,
        b"a\x00cd",
        b"a",
    ]


@pytest.mark.parametrize(
    ("behind", "stop"),
    [
        (b"", ScanStop.ALL_READ),
        (bytes(memoryview(blank_entry(0, 50).data)) + bytes(42), ScanStop.BLANK),
        (bytes(50), ScanStop.FOREIGN),
        (b"\0\0\0", ScanStop.CUT),
        (record()[:-1], ScanStop.CUT),
        ((200).to_bytes(4) + record()[4:] + bytes(108), ScanStop.ODD),
        ((20).to_bytes(4) + record()[4:], ScanStop.ODD),
        (b"\xff" * 4 + record()[4:], ScanStop.ODD),
        (record(body=b"abc").replace(b"abc", b"abd"), ScanStop.BAD_CRC),
    ],
)
def test_a_scan_ends_where_no_sound_message_stands(behind: bytes, stop: ScanStop) -> None:
    """What was read before counts, and the reason is told."""
    sound = record() + record("other")
    scan = scan_records(b"xx" + sound + behind, 2, verify_crc=True)
    assert (len(scan), scan.end_position, scan.stop) == (2, 2 + len(sound), stop)


def test_messages_of_the_schedule_topic_get_when_they_are_due() -> None:
    """Only there, and only with a level."""
    text = b"TAGS\x01TagA\x02DELAY\x01%b\x02"
    records = [record("SCHEDULE_TOPIC_XXXX", text % level) for level in (b"3", b"0", b"x")]
    records += [record("t", text % b"3"), record("SCHEDULE_TOPIC_XXXX", b"TAGS\x01TagA")]
    scan = scan_records(b"".join(records), deliver_time=lambda level, stored_ms: stored_ms + level)
    assert scan.column(kernel.TAGS_CODE).tolist() == [1700000000126, *[2598919] * 4]


def test_the_checksum_is_that_of_zlib() -> None:
    """At every length around the steps of eight, of sixteen and of 64 bytes."""
    data = random.Random(5).randbytes(1100)
    source = np.frombuffer(data, np.uint8)
    for start in range(9):
        for end in (*range(start, 210), *range(1020, 1100)):
            assert kernel.crc32(source, start, end) == zlib.crc32(data[start:end])


def test_the_checksum_without_the_processors_help_is_the_same(uncompiled: SimpleNamespace) -> None:
    """Where it cannot multiply without carries, tables do."""
    data = random.Random(6).randbytes(150)
    source = np.frombuffer(data, np.uint8)
    for end in range(3, 150):
        assert uncompiled.kernel.crc32(source, 3, end) == zlib.crc32(data[3:end])


class Guarded(np.ndarray[Any, Any]):
    """An array that refuses the indices and slices that compiled code would silently follow."""

    def __getitem__(self, key: Any) -> Any:
        self._check(key)
        return super().__getitem__(key)

    def __setitem__(self, key: Any, value: Any) -> None:
        self._check(key)
        super().__setitem__(key, value)

    def _check(self, key: Any) -> None:
        for part, size in zip(np.index_exp[key], self.shape, strict=False):
            first = getattr(part, "start", part)
            last = getattr(part, "stop", first + 1)
            assert 0 <= first <= last <= size, f"{part} of {size}"


UNCOMPILED = (
    "logstore.segments.compiled.loops",
    "logstore.segments.compiled.machine_words",
    "logstore.segments.rocketmq.columns.kernel",
    "logstore.segments.rocketmq.columns.property_loops",
    "logstore.segments.rocketmq.columns.scan_loops",
)


@pytest.fixture
def uncompiled(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The modules of a scan as they are without numba."""
    monkeypatch.setitem(sys.modules, "numba", None)
    monkeypatch.setitem(sys.modules, "logstore.segments.compiled.machine_code", None)
    found = SimpleNamespace()
    for name in UNCOMPILED:
        spec = importlib.util.find_spec(name)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, name, module)
        spec.loader.exec_module(module)
        setattr(found, name.rpartition(".")[2], module)
    assert not found.loops.is_available()
    assert not found.machine_words.CAN_FOLD
    return found


def test_the_loops_never_leave_their_arrays(uncompiled: SimpleNamespace) -> None:
    """Over damaged records every index lies inside, and compiled code finds the same."""
    chance = random.Random(1)
    text = "TAGS\x01标签\x02KEYS\x01k1 k2\x02UNIQ_KEY\x01u1\x02".encode()
    honest = record(text=text) + record("t" * 130, text, sys_flag=1) + record(text=text)
    for _ in range(120):
        data = damaged(honest, chance)
        source = np.frombuffer(data, np.uint8).view(Guarded)
        count, end, stop = uncompiled.kernel.count_records(source, 0, len(source))
        table = np.zeros((kernel.ROWS, int(count)), np.int64).view(Guarded)
        sound, at, fault = uncompiled.scan_loops.scan(source, 0, table, False)
        scan = scan_records(data)
        assert (int(sound), int(at)) == (len(scan), scan.end_position)
        assert int(fault or stop) == scan.stop.value
        assert end >= at
        for row in range(int(sound)):
            assert scan.request(row).size_bytes == table[kernel.SIZE, row]


def test_a_scan_without_numba_says_the_same(
    uncompiled: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The loops are plain Python, too: slow, and right."""
    text = b"TAGS\x01TagA\x02KEYS\x01k1 k2\x02UNIQ_KEY\x01u1\x02"
    data = b"".join(record(text=text, queue_id=index) for index in (0, 1, 0, 2))
    compiled = scan_records(data, verify_crc=True)
    for name in ("kernel", "scan_loops"):
        place = f"logstore.segments.rocketmq.columns.record_scan.{name}"
        monkeypatch.setattr(place, getattr(uncompiled, name))
    check(scan_records(data, verify_crc=True), [compiled.request(row) for row in range(4)])

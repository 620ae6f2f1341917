"""The compiled loops against the way batch by batch: one outcome, to the byte."""

from __future__ import annotations

import hashlib
import random
import struct
from importlib.util import find_spec

import numpy as np
import pytest

from logstore.checksum import crc32c
from logstore.errors import CorruptEntryError
from logstore.host import read_file
from logstore.segments.kafka.compaction import CompactionLimits
from logstore.segments.kafka.compaction.key_kernel import NO_ORDER, hashed
from logstore.segments.kafka.compaction.run_scan import HashedOffsetMap
from logstore.segments.kafka.record import Record, decode_records, encode_batch
from logstore.segments.kafka.record_batch import RecordBatch
from logstore.testing import SimulatedHost
from tests.segments.kafka.compaction.compacted_log import (
    DIRECTORY,
    RETENTION_MS,
    START_MS,
    Filler,
    filled,
    make_host,
    opened,
    run_pass,
    stored_bytes,
)

pytestmark = pytest.mark.skipif(find_spec("numba") is None, reason="numba is not installed")
PASS_MS = START_MS + 100_000


def files_of(host: SimulatedHost) -> dict[str, bytes]:
    """Return every file of the partition that is not on its way out."""
    return {
        entry.name: read_file(host.fs, f"{DIRECTORY}/{entry.name}")
        for entry in host.fs.list_directory(DIRECTORY)
        if not entry.name.endswith(".deleted")
    }


@pytest.mark.parametrize("seed", range(30))
def test_both_ways_leave_the_same_files(seed: int) -> None:
    """Logs and indexes, what was counted, and where the pass ended; pass after pass."""
    first = make_host(seed)
    partition = opened(first)
    Filler(partition, random.Random(seed)).write(80, has_transactions=seed % 2 == 0)
    partition.log.roll()
    partition.close()
    second = first.fork()
    checkpoint = 0
    for now_ms in (PASS_MS, PASS_MS + RETENTION_MS - 1, PASS_MS + RETENTION_MS):
        plain = run_pass(opened(first), now_ms, checkpoint)
        fast = run_pass(opened(second), now_ms, checkpoint, is_fast=True)
        assert fast.tally == plain.tally
        assert (fast.end_offset, fast.key_count) == (plain.end_offset, plain.key_count)
        assert files_of(second) == files_of(first)
        checkpoint = plain.end_offset


@pytest.mark.parametrize("key_count_max", [1, 3, 7])
def test_both_ways_stop_where_the_map_is_full(key_count_max: int) -> None:
    """Also in the middle of a batch."""
    limits = CompactionLimits(24 * key_count_max, 1.0)
    plain, fast = filled(1, has_transactions=False), filled(1, has_transactions=False)
    ends = [
        run_pass(partition, PASS_MS, 0, limits, is_fast=is_fast).end_offset
        for partition, is_fast in ((plain, False), (fast, True))
    ]
    assert ends[0] == ends[1]
    assert stored_bytes(plain) == stored_bytes(fast)


def test_a_batch_larger_than_a_window_is_read_whole() -> None:
    """So are many small ones in front of it and behind it."""
    hosts = [make_host(), make_host()]
    results: list[bytes] = []
    for host, is_fast in zip(hosts, (False, True), strict=True):
        partition = opened(host)
        partition.reconfigure(type(partition.config)(cleanup_policy=("compact",)))
        for number in range(50):
            value = bytes(9_000_000) if number == 20 else b"v"
            records = [
                Record(n, START_MS + n, b"%d" % (n % 5), value) for n in range(1 + number % 2)
            ]
            batch = encode_batch(records)
            partition.log.append(
                RecordBatch(memoryview(batch), len(batch)).stamped(partition.end_offset, 0)
            )
        partition.log.roll()
        run_pass(partition, PASS_MS, is_fast=is_fast)
        results.append(stored_bytes(partition))
    assert results[0] == results[1]


def test_records_that_share_an_offset_are_told_apart() -> None:
    """No leader looks at the offsets of records: what one supersedes leaves the other alone."""
    results: list[bytes] = []
    for is_fast in (False, True):
        partition = opened(make_host())
        for keys in ((b"a", b"b"), (b"a",), (b"c",)):
            base = partition.end_offset
            records = [Record(base + n, START_MS, key, b"v") for n, key in enumerate(keys)]
            batch = encode_batch(records, base_offset=base)
            if len(keys) > 1:
                batch[73] = 0  # the second record's offset, counted from the first one's
                struct.pack_into(">I", batch, 17, crc32c(memoryview(batch)[21:]))
            partition.log.append(RecordBatch(memoryview(batch), len(batch)))
        partition.log.roll()
        run_pass(partition, PASS_MS, is_fast=is_fast)
        found = [r for batch in partition.batches() for r in decode_records(batch.data)]
        assert [record.key for record in found] == [b"b", b"a", b"c"]
        results.append(stored_bytes(partition))
    assert results[0] == results[1]


def test_what_is_superseded_is_noted_while_offsets_rise() -> None:
    """By a bit for each offset; once one does not rise, or has no bit, keys are looked up."""
    offsets = HashedOffsetMap(100, range(10, 30), random.Random(1))
    for offset in range(10, 20):
        assert offsets.put(b"%d" % (offset % 4), offset)
    assert offsets.marked_from == 10
    bits = np.unpackbits(offsets.superseded, bitorder="little")
    assert np.flatnonzero(bits).tolist() == list(range(6))
    for offset in (19, 34):
        other = HashedOffsetMap(100, range(10, 30), random.Random(1))
        assert other.put(b"a", 19)
        assert other.put(b"b", offset)
        assert other.marked_from == NO_ORDER
        assert (other.get(b"a"), other.get(b"b")) == (19, offset)


@pytest.mark.parametrize("place", [70, 8, 16, 57])
def test_damage_is_refused(place: int) -> None:
    """A wrong CRC, length, magic or count: the log stays as it is."""
    partition = filled(7, has_transactions=False)
    host = partition.host
    assert isinstance(host, SimulatedHost)
    host.fs.damage(partition.log.segments.values()[0].path, place, b"\x7f\xff")
    before = files_of(host)
    with pytest.raises(CorruptEntryError):
        run_pass(partition, PASS_MS, is_fast=True)
    assert files_of(host) == before


def test_the_hash_is_siphash() -> None:
    """The first two of the reference vectors of SipHash-2-4 with 128 bits."""
    secret = np.frombuffer(bytes(range(16)), dtype="<u8").astype(np.uint64)
    source = np.frombuffer(bytes(range(64)), dtype=np.uint8)
    vectors = {
        0: "a3817f04ba25a8e66df67214c7550293",
        1: "da87c1d86b99af44347659119b22fc45",
    }
    for size, expected in vectors.items():
        low, high = hashed(source, 0, size, secret)
        found = int(low).to_bytes(8, "little") + int(high).to_bytes(8, "little")
        assert found.hex() == expected


def test_the_map_is_a_map() -> None:
    """Of many keys each has the offset that was put last; others have none."""
    offsets = HashedOffsetMap(5000, range(100_000), random.Random(1))
    keys = [hashlib.sha256(b"%d" % n).digest()[: n % 33] for n in range(5000)]
    expected: dict[bytes, int] = {}
    for offset, key in enumerate(keys + keys[:100]):
        if len(expected) == 5000:
            break
        assert offsets.put(key, offset)
        expected[key] = offset
    assert len(offsets) == len(expected)
    assert {key: offsets.get(key) for key in expected} == expected
    assert offsets.get(b"not there") == -1
    assert offsets.latest_offset == max(expected.values())

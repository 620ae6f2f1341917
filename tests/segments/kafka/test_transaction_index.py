"""The transaction index: what it holds, finds, refuses, and keeps through a power loss."""

from __future__ import annotations

import errno
import struct

import pytest

from logstore.errors import CorruptFileError
from logstore.host import read_file, write_file
from logstore.segments.kafka.transaction_index import AbortedTransaction, TransactionIndex
from logstore.testing import PowerLoss, SimulatedHost

DIRECTORY = "/t-0"
PATH = f"{DIRECTORY}/00000000000000000100.txnindex"
FIRST = AbortedTransaction(7, 90, 110, 95)
SECOND = AbortedTransaction(8, 95, 120, 121)
THIRD = AbortedTransaction(7, 130, 140, 141)


@pytest.fixture
def host() -> SimulatedHost:
    """A disk with the directory of a partition."""
    host = SimulatedHost()
    host.fs.make_directory(DIRECTORY)
    host.fs.sync_directory("/")
    return host


def index_of(host: SimulatedHost, *entries: AbortedTransaction) -> TransactionIndex:
    """Return the index with these entries appended."""
    index = TransactionIndex(host.fs, PATH, 100)
    for entry in entries:
        index.append(entry)
    return index


def test_entries_stand_as_kafka_writes_them(host: SimulatedHost) -> None:
    """34 bytes each: version 0, producer, first and last offset, last stable offset."""
    index_of(host, FIRST, SECOND)
    assert read_file(host.fs, PATH) == struct.pack(
        ">hqqqqhqqqq", 0, 7, 90, 110, 95, 0, 8, 95, 120, 121
    )
    assert list(TransactionIndex(host.fs, PATH, 100).entries()) == [FIRST, SECOND]


def test_there_is_no_file_before_the_first_entry(host: SimulatedHost) -> None:
    """Neither opening, resetting, cutting, flushing nor closing makes one."""
    index = TransactionIndex(host.fs, PATH, 100)
    assert index.is_empty
    assert index.collect(0, 1000) == ([], False)
    index.sanity_check()
    index.reset()
    index.truncate_to(0)
    index.flush()
    index.close()
    assert not host.fs.exists(PATH)


@pytest.mark.parametrize(
    ("offset", "end_offset", "found", "is_complete"),
    [
        (0, 1000, [FIRST, SECOND, THIRD], False),
        (110, 121, [FIRST, SECOND], True),
        (111, 122, [SECOND], True),
        (0, 95, [FIRST], True),
        (0, 96, [FIRST, SECOND], True),
        (121, 130, [], True),
        (141, 142, [], False),
    ],
)
def test_what_reaches_into_a_range_is_found(
    host: SimulatedHost,
    offset: int,
    end_offset: int,
    found: list[AbortedTransaction],
    is_complete: bool,
) -> None:
    """Transactions that end at or above its start and start below its end."""
    index = index_of(host, FIRST, SECOND, THIRD)
    assert index.collect(offset, end_offset) == (found, is_complete)
    again = TransactionIndex(host.fs, PATH, 100)
    assert again.collect(offset, end_offset) == (found, is_complete)


@pytest.mark.parametrize(("offset", "kept"), [(100, 0), (110, 0), (111, 1), (120, 1), (141, 3)])
def test_a_cut_takes_the_markers_from_an_offset_on(
    host: SimulatedHost, offset: int, kept: int
) -> None:
    """What is cut stays cut, also through a power loss; appends go on behind the rest."""
    index = index_of(host, FIRST, SECOND, THIRD)
    index.flush()
    index.truncate_to(offset)
    host.power_loss(PowerLoss())
    index = TransactionIndex(host.fs, PATH, 100)
    assert list(index.entries()) == [FIRST, SECOND, THIRD][:kept]
    last = AbortedTransaction(9, 150, 160, 161)
    index.append(last)
    assert list(index.entries()) == [*[FIRST, SECOND, THIRD][:kept], last]


def test_what_was_flushed_survives_a_power_loss(host: SimulatedHost) -> None:
    """Bytes and name of the file, which was created long after its segment."""
    index = index_of(host, FIRST)
    index.flush()
    index.append(SECOND)
    host.power_loss(PowerLoss())
    assert list(TransactionIndex(host.fs, PATH, 100).entries()) == [FIRST]


def test_a_reset_empties_the_file(host: SimulatedHost) -> None:
    """It stays, with nothing in it, as Kafka's recovery leaves it."""
    index_of(host, FIRST, SECOND).close()
    index = TransactionIndex(host.fs, PATH, 100)
    index.reset()
    assert read_file(host.fs, PATH) == b""
    index.append(THIRD)
    assert list(TransactionIndex(host.fs, PATH, 100).entries()) == [THIRD]


def test_an_entry_that_the_disk_refused_is_not_forgotten(host: SimulatedHost) -> None:
    """It is found at once, and written by the next flush; until then a flush fails."""
    index = index_of(host, FIRST)
    host.fs.fill_up(10)
    index.append(SECOND)
    assert index.collect(0, 1000)[0] == [FIRST, SECOND]
    index.close()
    assert index.collect(0, 1000)[0] == [FIRST, SECOND]
    with pytest.raises(OSError, match="ENOSPC"):
        index.flush()
    host.fs.faults.clear()
    index.flush()
    assert list(TransactionIndex(host.fs, PATH, 100).entries()) == [FIRST, SECOND]


def test_after_a_failed_sync_all_is_written_again(host: SimulatedHost) -> None:
    """The kernel forgets what it could not write; the next flush brings every entry."""
    index = index_of(host, FIRST, SECOND)
    host.fs.faults.fail_next_sync(errno.EIO, path=PATH)
    with pytest.raises(OSError, match="EIO"):
        index.flush()
    index.flush()
    host.power_loss(PowerLoss())
    assert list(TransactionIndex(host.fs, PATH, 100).entries()) == [FIRST, SECOND]


def test_half_an_entry_at_the_end_does_not_count(host: SimulatedHost) -> None:
    """A torn write is left out, and overwritten by the next entry."""
    index_of(host, FIRST)
    torn = read_file(host.fs, PATH) + bytes(20)
    write_file(host.fs, PATH, torn)
    index = TransactionIndex(host.fs, PATH, 100)
    assert list(index.entries()) == [FIRST]
    index.append(SECOND)
    assert len(read_file(host.fs, PATH)) == 68
    assert list(TransactionIndex(host.fs, PATH, 100).entries()) == [FIRST, SECOND]


@pytest.mark.parametrize(
    ("fields", "reason"),
    [((256, 7, 100, 110, 111), "version 256"), ((0, 7, 10, 99, 100), "below the base offset 100")],
)
def test_impossible_entries_are_refused(
    host: SimulatedHost, fields: tuple[int, ...], reason: str
) -> None:
    """An unknown version, and a marker that does not lie in the segment."""
    write_file(host.fs, PATH, struct.pack(">hqqqq", *fields))
    with pytest.raises(CorruptFileError, match=reason):
        TransactionIndex(host.fs, PATH, 100).sanity_check()


@pytest.mark.parametrize("version", [1, 255, -1])
def test_a_version_that_kafka_does_not_see_is_put_up_with(
    host: SimulatedHost, version: int
) -> None:
    """Of its two bytes Kafka looks at the first: nothing is recovered because of the other."""
    write_file(host.fs, PATH, struct.pack(">hqqqq", version, 7, 100, 110, 111))
    index = TransactionIndex(host.fs, PATH, 100)
    index.sanity_check()
    assert [entry.producer_id for entry in index.entries()] == [7]


def test_markers_come_in_order(host: SimulatedHost) -> None:
    """An entry that does not come after the one before it is a programmer's mistake."""
    with pytest.raises(AssertionError, match="after 120"):
        index_of(host, SECOND, FIRST)

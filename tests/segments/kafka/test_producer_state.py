"""What a partition knows of its producers."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logstore.host import read_file
from logstore.os_host import SystemFileSystem
from logstore.segments.kafka.control_record import ControlType, encode_control
from logstore.segments.kafka.producer_snapshot import decode_snapshot, snapshot_name
from logstore.segments.kafka.producer_state import (
    CompletedTransaction,
    InvalidProducerEpochError,
    InvalidTransactionStateError,
    OutOfOrderSequenceError,
    ProducedBatch,
    ProducerStates,
    TransactionCoordinatorFencedError,
)

FS = SystemFileSystem()
T = 1700000000000
SEQUENCE_MAX = 2**31 - 1


def offer(
    states: ProducerStates,
    first: int,
    count: int = 1,
    *,
    producer_id: int = 7,
    epoch: int = 0,
    offset: int | None = None,
    timestamp_ms: int = T,
    is_transactional: bool = False,
) -> ProducedBatch | None:
    """Check a batch of `count` records as a leader does, and append it unless it is a duplicate."""
    last = (first + count - 1) % 2**31
    original = states.check(
        producer_id=producer_id,
        epoch=epoch,
        first_sequence=first,
        last_sequence=last,
        is_transactional=is_transactional,
    )
    if original is None:
        states.append(
            producer_id=producer_id,
            epoch=epoch,
            first_sequence=first,
            last_sequence=last,
            last_offset=(first if offset is None else offset) + count - 1,
            offset_delta=count - 1,
            timestamp_ms=timestamp_ms,
            is_transactional=is_transactional,
        )
    return original


def end_transaction(
    states: ProducerStates, offset: int, *, epoch: int = 0, coordinator_epoch: int = 0
) -> CompletedTransaction | None:
    """Append an ABORT marker of producer 7."""
    states.check_marker(producer_id=7, epoch=epoch, coordinator_epoch=coordinator_epoch)
    return states.append_marker(
        producer_id=7,
        epoch=epoch,
        coordinator_epoch=coordinator_epoch,
        offset=offset,
        timestamp_ms=T,
        is_abort=True,
    )


def test_numbers_continue() -> None:
    """Batches that continue the numbering are taken; others are not, and change nothing."""
    states = ProducerStates()
    assert offer(states, 0, 3) is None
    assert offer(states, 3, 2) is None
    for first in (4, 6, 10**6):
        with pytest.raises(OutOfOrderSequenceError, match="expected 5"):
            offer(states, first)
    assert offer(states, 5) is None


def test_a_duplicate_gets_its_old_offsets() -> None:
    """One of the last five batches is answered with where it is; an older one is out of order."""
    states = ProducerStates()
    for number in range(6):
        offer(states, number * 2, 2, offset=100 + number * 10, timestamp_ms=T + number)
    for number in range(1, 6):
        original = offer(states, number * 2, 2)
        assert original is not None
        assert original.base_offset == 100 + number * 10
        assert original.last_offset == 101 + number * 10
        assert original.timestamp_ms == T + number
    with pytest.raises(OutOfOrderSequenceError):
        offer(states, 0, 2)
    with pytest.raises(OutOfOrderSequenceError):
        offer(states, 2, 1)  # the same start, another end


def test_numbers_wrap() -> None:
    """After 2^31-1 comes 0, also inside a batch."""
    states = ProducerStates()
    offer(states, SEQUENCE_MAX - 1, 2, offset=0)
    assert offer(states, 0, 1, offset=2) is None
    other = ProducerStates()
    offer(other, SEQUENCE_MAX, 3, offset=0)
    assert offer(other, 2, 1, offset=3) is None
    original = offer(other, SEQUENCE_MAX, 3)
    assert original is not None
    assert original.base_offset == 0


def test_unknown_producers_start_anywhere() -> None:
    """A producer that is not known, or no longer, may start with any number."""
    assert offer(ProducerStates(), 12345) is None


def test_epochs() -> None:
    """An old epoch is fenced off; a new one starts at 0 and forgets the batches before it."""
    states = ProducerStates()
    offer(states, 0, 3, epoch=5)
    with pytest.raises(InvalidProducerEpochError):
        offer(states, 3, epoch=4)
    with pytest.raises(OutOfOrderSequenceError):
        offer(states, 3, epoch=6)
    assert offer(states, 0, 3, epoch=6) is None
    with pytest.raises(InvalidProducerEpochError):
        offer(states, 0, 3, epoch=5)
    entry = states.get(7)
    assert entry is not None
    assert [batch.first_sequence for batch in entry.batches] == [0]


def test_transactions() -> None:
    """A transaction holds back the stable offset until its marker; numbers continue after it."""
    states = ProducerStates()
    assert states.first_unstable_offset(50) == 50
    offer(states, 0, 2, offset=10, is_transactional=True)
    offer(states, 2, 2, offset=20, is_transactional=True)
    offer(states, 0, producer_id=8, offset=30, is_transactional=True)
    assert states.first_unstable_offset(50) == 10
    with pytest.raises(InvalidTransactionStateError):
        offer(states, 4)
    assert end_transaction(states, 40) == CompletedTransaction(7, 10, 40, True, 30)
    assert states.first_unstable_offset(50) == 30
    assert end_transaction(states, 41) is None
    assert offer(states, 4, offset=42) is None


def test_markers() -> None:
    """Markers of an old producer epoch or coordinator are refused; an unknown producer's is not."""
    states = ProducerStates()
    end_transaction(states, 5, epoch=2, coordinator_epoch=3)
    with pytest.raises(InvalidProducerEpochError):
        end_transaction(states, 6, epoch=1, coordinator_epoch=3)
    with pytest.raises(TransactionCoordinatorFencedError):
        end_transaction(states, 6, epoch=2, coordinator_epoch=2)
    end_transaction(states, 6, epoch=3, coordinator_epoch=3)
    assert offer(states, 0, epoch=3) is None


def test_marker_batches() -> None:
    """A control batch as it stands in the log ends the transaction."""
    states = ProducerStates()
    offer(states, 0, 2, offset=10, is_transactional=True)
    batch = encode_control(
        ControlType.COMMIT,
        base_offset=12,
        timestamp_ms=T,
        producer_id=7,
        producer_epoch=0,
        coordinator_epoch=4,
    )
    assert states.append_marker_batch(batch) == [CompletedTransaction(7, 10, 12, False, 13)]
    entry = states.get(7)
    assert entry is not None
    assert entry.coordinator_epoch == 4


def test_replicated_transactions() -> None:
    """With followers, an ended transaction is unstable until its marker is replicated."""
    states = ProducerStates(tracks_replication=True)
    offer(states, 0, 2, offset=10, is_transactional=True)
    end_transaction(states, 12)
    assert states.first_unstable_offset(50) == 10
    states.advance_high_watermark(12)
    assert states.first_unstable_offset(50) == 10
    states.advance_high_watermark(13)
    assert states.first_unstable_offset(50) == 50


def test_expiry() -> None:
    """A producer that was silent so long is forgotten, unless it has a transaction open."""
    states = ProducerStates()
    offer(states, 0)
    offer(states, 0, producer_id=8, is_transactional=True)
    offer(states, 0, producer_id=9, timestamp_ms=T + 1)
    assert states.expire(T + 99, 100) == 0
    assert states.expire(T + 100, 100) == 1
    assert sorted(entry.producer_id for entry in states) == [8, 9]


def test_golden_snapshots(tmp_path: Path) -> None:
    """The history of the reference gives the two snapshots that Kafka wrote."""
    states = ProducerStates()
    for number, time_ms in enumerate((1, 501, 401, 901, 951)):
        offer(states, number * 2, 2, timestamp_ms=T + time_ms)
    offer(
        states, 0, producer_id=9, epoch=1, offset=10, timestamp_ms=T + 1000, is_transactional=True
    )
    path = str(tmp_path / snapshot_name(11))
    states.snapshot(FS, path)
    assert read_file(FS, path)[2:6].hex() == "eccf6379"
    states.append_marker(
        producer_id=9,
        epoch=1,
        coordinator_epoch=5,
        offset=11,
        timestamp_ms=T + 1100,
        is_abort=True,
    )
    states.snapshot(FS, path, sync=False)
    assert read_file(FS, path)[2:6].hex() == "c92a01fc"


def test_snapshots_read_back(tmp_path: Path) -> None:
    """A loaded state knows the last batch, the open transaction, and takes what comes next."""
    states = ProducerStates()
    offer(states, SEQUENCE_MAX, 3, offset=0)
    offer(states, 0, 2, producer_id=8, offset=3, is_transactional=True)
    path = str(tmp_path / snapshot_name(5))
    states.snapshot(FS, path)
    loaded = ProducerStates()
    loaded.load(FS, path)
    assert list(loaded) == list(states)
    assert loaded.first_unstable_offset(50) == 3
    assert offer(loaded, SEQUENCE_MAX, 3) is not None
    assert offer(loaded, 2, offset=5) is None
    loaded.load(FS, path, now_ms=T + 100, expiration_ms=100)
    assert [entry.producer_id for entry in loaded] == [8]


def test_entries_are_in_the_order_of_a_hash_map(tmp_path: Path) -> None:
    """Producers 1000..1003 and 16 stand in the order of Java's 16 buckets, not of coming."""
    states = ProducerStates()
    for producer_id in (1003, 16, 1002, 1000, 1001, 1016):
        offer(states, 0, producer_id=producer_id)
    path = str(tmp_path / "snapshot")
    states.snapshot(FS, path)
    found = [entry.producer_id for entry in decode_snapshot(read_file(FS, path))]
    assert found == [16, 1000, 1016, 1001, 1002, 1003]  # buckets 0, 8, 8, 9, 10, 11


def test_golden_snapshots_are_written_in_the_same_order(golden: Path, tmp_path: Path) -> None:
    """Loading a real broker's snapshot and writing it again gives the same bytes."""
    files = sorted(golden.glob("*/data/*/*.snapshot"))
    files = [file for file in files if not file.parent.name.startswith("__cluster_metadata")]
    path = str(tmp_path / "snapshot")
    for file in files:
        states = ProducerStates()
        states.load(FS, str(file))
        states.snapshot(FS, path, sync=False)
        assert read_file(FS, path) == file.read_bytes(), file
    assert len(files) > 20


@given(sizes=st.lists(st.integers(1, 5), max_size=20), start=st.integers(0, SEQUENCE_MAX))
def test_every_order_of_retries(sizes: list[int], start: int) -> None:
    """However the numbers wrap, each batch is taken once and its retry is answered."""
    states = ProducerStates()
    first, offset = start, 0
    for size in sizes:
        assert offer(states, first, size, offset=offset) is None
        original = offer(states, first, size, offset=10**6)
        assert original is not None
        assert (original.base_offset, original.last_offset) == (offset, offset + size - 1)
        first, offset = (first + size) % 2**31, offset + size

"""The checkpoint: its fields, its file, and what a power loss may leave of it."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logstore.host import read_file
from logstore.os_host import system_host
from logstore.segments.rocketmq.opening.checkpoint import CHECKPOINT_SIZE_BYTES, StoreCheckpoint
from logstore.testing.crash_points import every_power_loss
from logstore.testing.simulated_host import SimulatedHost
from tests.segments.rocketmq.golden_case import GoldenCase, golden_cases

PATH = "/checkpoint"


@pytest.mark.parametrize("case", golden_cases(), ids=lambda case: case.id)
def test_golden_checkpoints_are_written_again_byte_for_byte(case: GoldenCase) -> None:
    """The fields of a real broker's checkpoint give its file."""
    for store in case.stores.values():
        read = StoreCheckpoint(system_host(), str(store / "checkpoint"))
        host = SimulatedHost()
        written = StoreCheckpoint(host, PATH)
        written.physic_msg_timestamp_ms = read.physic_msg_timestamp_ms
        written.logics_msg_timestamp_ms = read.logics_msg_timestamp_ms
        written.index_msg_timestamp_ms = read.index_msg_timestamp_ms
        written.master_flushed_physical_offset = read.master_flushed_physical_offset
        written.confirm_physical_offset = read.confirm_physical_offset
        written.logics_physical_offset = read.logics_physical_offset
        written.flush()
        data = (store / "checkpoint").read_bytes()
        assert any(data)
        assert read_file(host.fs, PATH) == data


def test_a_missing_checkpoint_is_all_zero() -> None:
    """Without a file every field is zero, and nothing is made before a flush."""
    host = SimulatedHost()
    checkpoint = StoreCheckpoint(host, PATH)
    assert checkpoint.encoded() == bytes(48)
    assert checkpoint.min_timestamp_ms == 0
    assert not host.fs.exists(PATH)


@given(st.binary(max_size=60))
def test_a_short_checkpoint_lacks_zeros(data: bytes) -> None:
    """A file of any length is read as if zeros followed, and has its full length when written."""
    host = SimulatedHost()
    file = host.fs.open(PATH, create=True)
    file.write(0, data)
    file.close()
    checkpoint = StoreCheckpoint(host, PATH)
    assert checkpoint.encoded() == data[:48].ljust(48, b"\0")
    checkpoint.confirm_physical_offset = 77
    checkpoint.flush()
    assert host.fs.open(PATH).size() == CHECKPOINT_SIZE_BYTES
    assert StoreCheckpoint(host, PATH).confirm_physical_offset == 77


def test_recovery_starts_three_seconds_before_the_earlier_time() -> None:
    """The time that is durable for sure is that of log and queues, the earlier one, less 3 s."""
    checkpoint = StoreCheckpoint(SimulatedHost(), PATH)
    checkpoint.physic_msg_timestamp_ms = 50_000
    checkpoint.logics_msg_timestamp_ms = 40_000
    checkpoint.index_msg_timestamp_ms = 45_000
    assert checkpoint.min_timestamp_ms == 37_000
    assert checkpoint.min_timestamp_with_index_ms == 37_000
    checkpoint.index_msg_timestamp_ms = 20_000
    assert checkpoint.min_timestamp_with_index_ms == 20_000
    checkpoint.logics_msg_timestamp_ms = 2999
    assert checkpoint.min_timestamp_ms == 0


def test_an_unchanged_checkpoint_is_not_written() -> None:
    """A flush without a change touches nothing."""
    host = SimulatedHost()
    checkpoint = StoreCheckpoint(host, PATH)
    checkpoint.physic_msg_timestamp_ms = 5
    checkpoint.flush()
    before = len(host.fs.journal)
    checkpoint.flush()
    assert len(host.fs.journal) == before


def test_each_field_survives_a_power_loss_as_old_or_new() -> None:
    """Whenever the power goes each field is one that was to be written, and none is older."""

    def workload(host: SimulatedHost) -> None:
        checkpoint = StoreCheckpoint(host, PATH)
        for number in range(1, 4):
            checkpoint.physic_msg_timestamp_ms = 1000 * number
            checkpoint.logics_physical_offset = 7 * number
            checkpoint.flush()
            host.fs.journal.note("flushed", number)

    for point in every_power_loss(workload):
        flushed = max(point.host.fs.journal.notes("flushed", int), default=0)
        found = StoreCheckpoint(point.host, PATH)
        assert found.physic_msg_timestamp_ms in (1000 * flushed, 1000 * (flushed + 1)), point
        assert found.logics_physical_offset in (7 * flushed, 7 * (flushed + 1)), point


def test_the_layout_is_that_of_java() -> None:
    """Six big-endian longs stand at 0, 8, 16, 24, 32, 40."""
    host = SimulatedHost()
    file = host.fs.open(PATH, create=True)
    file.write(0, struct.pack(">6q", 1, 2, 3, 4, 5, 6))
    checkpoint = StoreCheckpoint(host, PATH)
    assert (
        checkpoint.physic_msg_timestamp_ms,
        checkpoint.logics_msg_timestamp_ms,
        checkpoint.index_msg_timestamp_ms,
        checkpoint.master_flushed_physical_offset,
        checkpoint.confirm_physical_offset,
        checkpoint.logics_physical_offset,
    ) == (1, 2, 3, 4, 5, 6)

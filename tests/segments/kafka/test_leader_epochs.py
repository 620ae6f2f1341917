"""The leader epochs of a partition."""

from __future__ import annotations

import contextlib
import itertools
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logstore.errors import CorruptFileError
from logstore.host import read_file, write_file
from logstore.os_host import SystemFileSystem
from logstore.segments.kafka.leader_epochs import LeaderEpochs

FS = SystemFileSystem()


def test_golden_bytes(tmp_path: Path) -> None:
    """Two epochs have the bytes that Kafka writes, as soon as they are known."""
    epochs = LeaderEpochs.load(FS, str(tmp_path))
    assert epochs.latest_epoch == -1
    assert epochs.assign(0, 0)
    assert epochs.assign(3, 11)
    assert read_file(FS, str(tmp_path / "leader-epoch-checkpoint")) == b"0\n2\n0 0\n3 11\n"
    again = LeaderEpochs.load(FS, str(tmp_path))
    assert again.entries == [(0, 0), (3, 11)]
    assert again.latest_epoch == 3


def test_assign(tmp_path: Path) -> None:
    """An epoch known already is no news; one that contradicts entries replaces them."""
    epochs = LeaderEpochs.load(FS, str(tmp_path))
    epochs.assign(1, 0)
    assert not epochs.assign(1, 0)
    assert not epochs.assign(1, 5)
    epochs.assign(2, 10)
    epochs.assign(4, 10)
    assert epochs.entries == [(1, 0), (4, 10)]
    epochs.assign(6, 20)
    assert epochs.assign(3, 15)
    assert epochs.entries == [(1, 0), (3, 15)]
    assert epochs.assign(3, 12)
    assert epochs.entries == [(1, 0), (3, 12)]


def test_end_offset_for(tmp_path: Path) -> None:
    """Each row of the table in the docstring is answered."""
    epochs = LeaderEpochs.load(FS, str(tmp_path))
    assert epochs.end_offset_for(0, 100) == (-1, -1)
    for epoch, start_offset in [(2, 5), (4, 20), (7, 40)]:
        epochs.assign(epoch, start_offset)
    assert epochs.end_offset_for(-1, 100) == (-1, -1)
    assert epochs.end_offset_for(8, 100) == (-1, -1)
    assert epochs.end_offset_for(7, 100) == (7, 100)
    assert epochs.end_offset_for(1, 100) == (1, 5)
    assert epochs.end_offset_for(2, 100) == (2, 20)
    assert epochs.end_offset_for(3, 100) == (2, 20)
    assert epochs.end_offset_for(6, 100) == (4, 40)


@pytest.mark.parametrize(
    ("leader_epoch", "leader_end", "expected"),
    [
        (5, 40, (40, True)),  # the same epoch: up to where the leader's ends
        (5, 70, (60, True)),  # our log is shorter than the leader's
        (3, 15, (15, True)),  # our latest epoch is unknown to the leader; the one it knows is ours
        (3, 25, (20, True)),  # and ended earlier with us
        (4, 30, (20, False)),  # the leader's epoch is unknown to us: cut, and ask about epoch 3
        (1, 8, (8, True)),  # older than all that we know
        (9, 50, (50, True)),  # younger than all that we know
        (-1, 33, (33, True)),  # a leader of before epochs
    ],
)
def test_where_logs_leave_each_other(
    tmp_path: Path, leader_epoch: int, leader_end: int, expected: tuple[int, bool]
) -> None:
    """A replica cuts its log at the largest offset up to which both have the same epochs."""
    epochs = LeaderEpochs(FS, str(tmp_path / "e"), [(2, 10), (3, 12), (5, 20)])
    assert epochs.divergence(leader_epoch, leader_end, 60) == expected


def test_epoch_for(tmp_path: Path) -> None:
    """The epoch of an offset is the last one that starts at or before it."""
    epochs = LeaderEpochs.load(FS, str(tmp_path))
    epochs.assign(2, 5)
    epochs.assign(4, 20)
    assert [epochs.epoch_for(offset) for offset in (4, 5, 19, 20, 99)] == [-1, 2, 2, 4, 4]


def test_truncate_from_end(tmp_path: Path) -> None:
    """Epochs that start at the new end or behind are forgotten; flush makes that durable."""
    epochs = LeaderEpochs.load(FS, str(tmp_path))
    for epoch, start_offset in [(2, 5), (4, 20), (7, 40)]:
        epochs.assign(epoch, start_offset)
    assert not epochs.truncate_from_end(41)
    assert epochs.truncate_from_end(20)
    assert epochs.entries == [(2, 5)]
    assert epochs.latest_epoch == 2
    epochs.flush()
    assert LeaderEpochs.load(FS, str(tmp_path)).entries == [(2, 5)]


def test_truncate_from_start(tmp_path: Path) -> None:
    """Epochs that ended are forgotten; the one in force at the new start begins there."""
    epochs = LeaderEpochs.load(FS, str(tmp_path))
    for epoch, start_offset in [(2, 5), (4, 20), (7, 40)]:
        epochs.assign(epoch, start_offset)
    assert not epochs.truncate_from_start(4)
    assert not epochs.truncate_from_start(5)
    assert epochs.truncate_from_start(30)
    assert epochs.entries == [(4, 30), (7, 40)]
    assert epochs.truncate_from_start(40)
    assert epochs.entries == [(7, 40)]
    assert epochs.truncate_from_start(90)
    assert epochs.entries == [(7, 90)]
    epochs.clear()
    assert LeaderEpochs.load(FS, str(tmp_path)).entries == []


class HesitantFileSystem(SystemFileSystem):
    """With `hesitates` set, the next file waits for others before it gets its name."""

    def __init__(self) -> None:
        self.hesitates = False
        self.is_waiting = threading.Event()
        self.has_waited = threading.Event()

    def rename(self, source: str, target: str) -> None:
        """Rename it in the end."""
        if self.hesitates:
            self.hesitates = False
            self.is_waiting.set()
            self.has_waited.wait(0.3)
        super().rename(source, target)


def test_a_flush_may_run_beside_a_change(tmp_path: Path) -> None:
    """Both write the file anew, one after the other; the newer epochs are what stays."""
    fs = HesitantFileSystem()
    epochs = LeaderEpochs.load(fs, str(tmp_path))
    epochs.assign(1, 0, sync=False)
    fs.hesitates = True
    with ThreadPoolExecutor(1) as pool:
        flush = pool.submit(epochs.flush)
        assert fs.is_waiting.wait(30)
        epochs.assign(2, 5)
        fs.has_waited.set()
        flush.result()
    assert LeaderEpochs.load(FS, str(tmp_path)).entries == [(1, 0), (2, 5)]


def test_negative_entries_are_corrupt(tmp_path: Path) -> None:
    """A file with a negative epoch or offset is refused."""
    for line in (b"-1 5", b"1 -5"):
        path = str(tmp_path / "leader-epoch-checkpoint")
        write_file(FS, path, b"0\n1\n" + line + b"\n", sync=False)
        with pytest.raises(CorruptFileError):
            LeaderEpochs.load(FS, str(tmp_path))


@given(
    steps=st.lists(
        st.tuples(st.sampled_from("aes"), st.integers(0, 10), st.integers(0, 30)), max_size=20
    )
)
def test_entries_rise(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int, int]]
) -> None:
    """After any steps epochs and offsets rise, and the file says the same."""
    directory = tmp_path_factory.getbasetemp() / "epochs"
    directory.mkdir(exist_ok=True)
    epochs = LeaderEpochs(FS, str(directory / "leader-epoch-checkpoint"))
    epochs.assign(0, 0, sync=False)
    for step, epoch, offset in steps:
        if step == "a":
            epochs.assign(epoch, offset, sync=False)
            assert epochs.epoch_for(10**6) == epochs.latest_epoch
        elif step == "e":
            epochs.truncate_from_end(offset)
            assert all(start < offset for _, start in epochs.entries)
        else:
            epochs.truncate_from_start(offset)
            assert all(start >= offset for _, start in epochs.entries[1:])
        rows = epochs.entries
        for row, following in itertools.pairwise(rows):
            assert row[0] < following[0]
            assert row[1] < following[1]
        assert LeaderEpochs.load(FS, str(directory)).entries == rows


@given(content=st.text("0123 \n-", max_size=60))
def test_fuzz(tmp_path_factory: pytest.TempPathFactory, content: str) -> None:
    """Any file gives epochs or CorruptFileError."""
    directory = tmp_path_factory.getbasetemp()
    write_file(FS, str(directory / "leader-epoch-checkpoint"), content.encode(), sync=False)
    with contextlib.suppress(CorruptFileError):
        LeaderEpochs.load(FS, str(directory))

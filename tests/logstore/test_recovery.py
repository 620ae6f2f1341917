"""What a recovery takes out of a log is kept."""

from __future__ import annotations

import pytest

from logstore.host import File, read_file, write_file
from logstore.recovery import Recovery, content_end, holds_something, keep_tail, set_aside
from logstore.testing import SimulatedHost
from logstore.testing.simulated_file import SimulatedFile

MIB = 1 << 20


@pytest.fixture
def host() -> SimulatedHost:
    """Return a world with an empty directory ``/log``."""
    host = SimulatedHost()
    host.fs.make_directory("/log")
    host.fs.sync_directory("/")
    return host


def file_of(host: SimulatedHost, content: bytes) -> File:
    """Return an open file ``/log/a`` that is durable."""
    write_file(host.fs, "/log/a", content)
    return host.fs.open("/log/a")


def names_in(host: SimulatedHost) -> list[str]:
    """Return the names in ``/log``."""
    return [entry.name for entry in host.fs.list_directory("/log")]


@pytest.mark.parametrize(
    "tail", [b"x", b"\0x", b"x" + bytes(9), bytes(2 * MIB) + b"x" + bytes(2 * MIB)]
)
def test_a_tail_is_kept_byte_for_byte(host: SimulatedHost, tail: bytes) -> None:
    """Under the file's name and the position; it survives a power loss, and the file is as was."""
    (kept,) = keep_tail(host.fs, file_of(host, b"good" + tail), 4)
    host.power_loss()
    assert kept == "/log/a.cut-at-4"
    assert read_file(host.fs, kept) == tail
    assert read_file(host.fs, "/log/a") == b"good" + tail


def test_a_long_tail_is_copied_in_pieces(
    host: SimulatedHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be as long as a segment, and many logs are recovered at once: 1 MiB at a time."""
    read, sizes = SimulatedFile.read, list[int]()

    def watched(file: SimulatedFile, position: int, size_bytes: int) -> bytes:
        data = read(file, position, size_bytes)
        sizes.append(len(data))
        return data

    tail = b"abcdefg" * (5 * MIB // 14)
    file = file_of(host, b"good" + tail)
    monkeypatch.setattr(SimulatedFile, "read", watched)
    (kept,) = keep_tail(host.fs, file, 4)
    assert max(sizes) == MIB
    monkeypatch.undo()
    assert read_file(host.fs, kept) == tail


def test_zeros_are_not_kept(host: SimulatedHost) -> None:
    """A preallocated tail is nobody's data, and neither is a file that was never written."""
    assert keep_tail(host.fs, file_of(host, b"good" + bytes(MIB + 3)), 4) == ()
    assert keep_tail(host.fs, file_of(host, b"good"), 4) == ()
    assert set_aside(host.fs, file_of(host, bytes(2 * MIB))) == ()
    assert set_aside(host.fs, file_of(host, b"")) == ()
    assert names_in(host) == ["a"]


def test_what_is_cut_may_be_kept_elsewhere(host: SimulatedHost) -> None:
    """In a directory that is made for it, durably, where strange names hurt a foreign program."""
    tail = b"tail" + bytes(5)
    (kept,) = keep_tail(
        host.fs, file_of(host, b"good" + tail), 4, directory="/aside/log", end_position=8
    )
    assert kept == "/aside/log/a.cut-at-4"
    (whole,) = set_aside(host.fs, host.fs.open("/log/a"), directory="/aside/log")
    host.fs.sync_directory("/log")
    host.fs.sync_directory("/")
    host.power_loss()
    assert read_file(host.fs, kept) == b"tail"
    assert read_file(host.fs, whole) == b"good" + tail
    assert names_in(host) == []


@pytest.mark.parametrize("gap", [0, 1, 5, MIB - 1, MIB, 3 * MIB + 7])
def test_content_ends_behind_the_last_byte_that_is_no_zero(host: SimulatedHost, gap: int) -> None:
    """Wherever zeros stand, in holes or written."""
    file = file_of(host, b"good")
    file.truncate(8 * MIB)
    assert (content_end(file, 0), content_end(file, 4)) == (4, 4)
    assert not holds_something(file, 4)
    file.write(100 + gap, b"x" + bytes(1000))
    assert (content_end(file, 0), content_end(file, 101 + gap)) == (101 + gap, 101 + gap)
    assert holds_something(file, 100 + gap)
    assert not holds_something(file, 101 + gap)


def test_what_was_kept_before_under_the_name_is_replaced(host: SimulatedHost) -> None:
    """A recovery that was interrupted starts over; nothing of the longer old copy remains."""
    keep_tail(host.fs, file_of(host, b"good" + b"old and long"), 4)
    keep_tail(host.fs, file_of(host, b"good" + b"new"), 4)
    assert read_file(host.fs, "/log/a.cut-at-4") == b"new"


def test_a_whole_file_is_kept_under_another_name(host: SimulatedHost) -> None:
    """It is cut at 0, which costs no copy."""
    file = file_of(host, b"all of it")
    before = host.fs.journal.operations[:]
    assert set_aside(host.fs, file) == ("/log/a.cut-at-0",)
    assert [o.kind for o in host.fs.journal.operations[len(before) :]] == ["sync", "rename"]
    assert names_in(host) == ["a.cut-at-0"]
    assert read_file(host.fs, "/log/a.cut-at-0") == b"all of it"


def test_outcomes_add_up_in_the_order_of_the_log() -> None:
    """Bytes are summed, the first reason counts, and the end is that of the later segments."""
    first = Recovery(10, 100)
    second = Recovery(15, 50, 7, "bad", ("/log/b.cut-at-43",))
    third = Recovery(15, 30, 30, "worse", ("/log/c.cut-at-0",))
    joined = first.joined(second).joined(third)
    kept = ("/log/b.cut-at-43", "/log/c.cut-at-0")
    assert joined == Recovery(15, 180, 37, "bad", kept)
    assert first.is_clean
    assert not joined.is_clean

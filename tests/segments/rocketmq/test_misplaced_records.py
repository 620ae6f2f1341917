"""A record that says a wrong physical offset, which no CRC covers, costs nothing behind it."""

from __future__ import annotations

import shutil
import struct
from pathlib import Path

import pytest

from logstore.errors import CorruptEntryError
from logstore.segments.rocketmq.log.record_walk import (
    FastChecker,
    Mending,
    RecordChecks,
    RecordWalk,
)
from logstore.segments.rocketmq.messages.message_layout import (
    BLANK_MAGIC,
    PHYSICAL_OFFSET_POSITION,
)
from logstore.testing import SimulatedHost
from tests.segments.rocketmq.golden_case import GoldenCase
from tests.segments.rocketmq.golden_rewrite import queue_bytes
from tests.segments.rocketmq.test_golden_recovery import opened, read_all
from tests.segments.rocketmq.test_record_walk import PATH, START, replaced, run

CASE = GoldenCase("damage", "5.5.0")
MAGIC = bytes.fromhex("daa320a7")
WRONG = struct.pack(">q", 4711)


def mended(data: bytes, *, slow_bytes_max: int = 10**9, mending: Mending = Mending.ANY) -> bytes:
    """Return the records that a recovery's walk finds."""
    file = SimulatedHost().fs.open(PATH, create=True)
    file.write(0, data)
    file.truncate(len(data) + 500)
    check = FastChecker(slow_bytes_max)
    walk = RecordWalk(
        file, PATH, START, 0, RecordChecks(), check=check, step_bytes=300, mending=mending
    )
    return b"".join(bytes(records) for _, records in walk.runs())


@pytest.mark.parametrize("slow_bytes_max", [0, 10**9])
@pytest.mark.parametrize("number", range(5))
def test_its_place_counts(
    number: int, slow_bytes_max: int, caplog: pytest.LogCaptureFixture
) -> None:
    """Wherever it stands; those who are shown the record see the right offset."""
    bodies = [b"one", b"", b"three" * 100, b"four", b"five"]
    data = run(*bodies)
    position = len(run(*bodies[:number]))
    damaged = replaced(data, position + PHYSICAL_OFFSET_POSITION, WRONG)
    assert mended(damaged, slow_bytes_max=slow_bytes_max) == data
    assert (
        f"{PATH}: position {position}: the record there says physical offset 4711; "
        f"taken for {START + position}, its place"
    ) in caplog.text


def test_so_it_does_with_neighbours() -> None:
    """As long as one of the next few says where it stands."""
    sizes = [len(run(*[b"x"] * count)) for count in range(8)]
    damaged = data = run(*[b"x"] * 8)
    for position in sizes[1:4]:
        damaged = replaced(damaged, position + PHYSICAL_OFFSET_POSITION, WRONG)
    assert mended(damaged) == data
    for position in sizes[1:7]:
        damaged = replaced(damaged, position + PHYSICAL_OFFSET_POSITION, WRONG)
    with pytest.raises(CorruptEntryError, match="does not belong here"):
        mended(damaged)


def test_it_does_not_count_where_something_else_is_wrong_too() -> None:
    """The record may be another one, that was written to a wrong place."""
    data = run(b"one", b"two", b"three")
    damaged = replaced(data, PHYSICAL_OFFSET_POSITION, WRONG)
    assert mended(damaged) == data
    for bad in (replaced(damaged, 90, b"X"), replaced(damaged, 4, b"\0")):
        with pytest.raises(CorruptEntryError):
            mended(bad)


def test_of_the_last_record_it_counts_only_after_a_clean_stop() -> None:
    """Of any other the log must go on behind it, if only by what fills a file up."""
    data = run(b"one", b"two")
    first = len(run(b"one"))
    damaged = replaced(data, first + PHYSICAL_OFFSET_POSITION, WRONG)
    assert mended(damaged) == data
    with pytest.raises(CorruptEntryError, match="does not belong here"):
        mended(damaged, mending=Mending.FOLLOWED)
    blank = struct.pack(">i4s", 500, BLANK_MAGIC)
    assert mended(damaged + blank, mending=Mending.FOLLOWED) == data


def places(store: Path) -> list[tuple[Path, int]]:
    """Return file and position of every record of a commit log."""
    found: list[tuple[Path, int]] = []
    for file in sorted((store / "commitlog").iterdir()):
        data, position = file.read_bytes(), 0
        while data[position + 4 : position + 8] == MAGIC:
            found.append((file, position))
            position += int.from_bytes(data[position : position + 4])
    return found


@pytest.mark.parametrize("was_killed", [False, True])
@pytest.mark.parametrize("has_queues", [True, False])
@pytest.mark.parametrize("number", [0, 13, -1])
def test_a_store_serves_it_and_all_behind_it(
    number: int, has_queues: bool, was_killed: bool, tmp_path: Path
) -> None:
    """
    Also where its unit must be made anew: Java leads readers elsewhere.

    The last one of all is served after a clean stop alone.
    """
    directory = CASE.copy_store(tmp_path / "store", "base")
    before = queue_bytes(directory)
    file, position = places(directory)[number]
    where = position + PHYSICAL_OFFSET_POSITION
    file.write_bytes(replaced(file.read_bytes(), where, WRONG))
    if not has_queues:
        shutil.rmtree(directory / "consumequeue")
    if was_killed:
        (directory / "abort").write_text("")
    store = opened(CASE, directory)
    is_lost = was_killed and number == -1
    assert len(read_all(store)) == len(CASE.expected) - is_lost
    store.close()
    assert (queue_bytes(directory) == before) is not is_lost

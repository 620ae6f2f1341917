"""The walk over the records of a commit log file: what is believed, and where it ends."""

from __future__ import annotations

import random
import struct
from pathlib import Path

import pytest

from logstore.errors import CorruptEntryError
from logstore.segments.rocketmq.log.record_walk import (
    FastChecker,
    RecordChecks,
    RecordWalk,
    check_run,
)
from logstore.segments.rocketmq.messages.message_layout import BLANK, BLANK_MAGIC
from logstore.testing import SimulatedHost
from tests.segments.rocketmq.drafts import draft
from tests.segments.rocketmq.golden_case import GoldenCase
from tests.segments.rocketmq.golden_records import ids_of, stored_records, stores

CHECKS = RecordChecks()
PATH = "/file"
START = 5000


def record(
    body: bytes = b"hello", physical_offset: int = START, *, has_property_crc: bool = False
) -> bytes:
    """Return a record as it stands in the log."""
    message = draft(body=body, properties={"TAGS": "a"}, has_property_crc=has_property_crc)
    message.stamp(3, 1_700_000_000_000)
    return bytes(memoryview(message.stamped(physical_offset).data))


def run(*bodies: bytes) -> bytes:
    """Return records that follow one another."""
    data = b""
    for body in bodies:
        data += record(body, START + len(data))
    return data


def replaced(data: bytes, position: int, new: bytes) -> bytes:
    """Return the bytes with some overwritten."""
    return data[:position] + new + data[position + len(new) :]


def test_whole_records_are_counted_in_bytes() -> None:
    """One that is cut short by the end of the data is left for the next step."""
    data = run(b"one", b"", b"three" * 100)

    assert check_run(memoryview(data), START, CHECKS) == (len(data), None)
    for cut in range(1, 100):
        done, reason = check_run(memoryview(data)[:-cut], START, CHECKS)
        assert (done, reason) == (len(run(b"one", b"")), None)


@pytest.mark.parametrize(
    ("position", "new", "reason"),
    [
        (4, b"\xda\xa3\x20\xa8", "magic daa320a8 is that of no message"),
        (0, struct.pack(">i", 80), "a record of 80 bytes is too short"),
        (0, struct.pack(">i", -5), "a record of -5 bytes is too short"),
        (8, b"\x00\x00\x00\x01", "CRC of the body is"),
        (88, b"X", "CRC of the body is"),
        (28, struct.pack(">q", 4999), "physical offset 4999 does not belong here, at 5000"),
        (84, struct.pack(">i", 6), "the lengths of its parts do not add up"),
        (84, struct.pack(">i", -1), "a body of -1 bytes does not fit"),
        (84, struct.pack(">i", 99999), "a body of 99999 bytes does not fit"),
        (93, b"\x08", "the lengths of its parts do not add up"),
        (103, b"\x00\x01", "the lengths of its parts do not add up"),
        (103, b"\xff\xff", "the lengths of its parts do not add up"),
        (39, b"\x10", "does not fit"),
    ],
)
def test_what_is_no_record_is_told(position: int, new: bytes, reason: str) -> None:
    """With what is wrong about it; the records before it count."""
    good = run(b"first")
    bad = replaced(record(b"hello", START + len(good)), position, new)
    if position == 28:
        good, bad = b"", replaced(record(), position, new)

    done, found = check_run(memoryview(good + bad), START, CHECKS)

    assert done == len(good)
    assert found is not None
    assert reason in found


def test_the_crc_of_the_body_may_be_left_out() -> None:
    """``checkCRCOnRecover`` off."""
    data = replaced(record(), 88, b"X")

    assert check_run(memoryview(data), START, RecordChecks(has_body_crc=False)) == (
        len(data),
        None,
    )


def test_the_crc_in_the_properties_covers_every_byte() -> None:
    """``forceVerifyPropCRC``: a message without one is not believed either."""
    checks = RecordChecks(has_property_crc=True)
    data = record(has_property_crc=True)
    assert check_run(memoryview(data), START, checks) == (len(data), None)

    for position in range(len(data)):
        bad = replaced(data, position, bytes([data[position] ^ 4]))
        done, reason = check_run(memoryview(bad), START, checks)
        assert done == 0
        assert reason is not None or position < 4, "a longer record may only be cut short"
    done, reason = check_run(memoryview(record()), START, checks)
    assert (done, reason) == (0, "the CRC in its properties is missing or wrong")


def walked(
    data: bytes, size_bytes: int | None = None, *, step_bytes: int = 300
) -> tuple[bytes, RecordWalk]:
    """Walk a file in small steps; return the records and the walk."""
    host = SimulatedHost()
    file = host.fs.open(PATH, create=True)
    file.write(0, data)
    file.truncate(len(data) + 500 if size_bytes is None else size_bytes)
    walk = RecordWalk(file, PATH, START, 0, CHECKS, step_bytes=step_bytes)
    found = b""
    for position, view in walk.runs():
        assert position == len(found)
        found += view
    return found, walk


@pytest.mark.parametrize("step_bytes", [0, 64, 119, 300, 5000])
def test_a_walk_ends_where_nothing_was_written(step_bytes: int) -> None:
    """However large its steps are; a record longer than a step is read whole."""
    data = run(b"one", bytes(1000), b"", b"x" * 400)

    found, walk = walked(data, step_bytes=step_bytes)

    assert (found, walk.position, walk.is_padded) == (data, len(data), False)


def test_a_walk_ends_at_a_blank() -> None:
    """And tells that the file is full."""
    data = run(b"one", b"two")

    found, walk = walked(data + BLANK.pack(500, BLANK_MAGIC))

    assert (found, walk.position, walk.is_padded) == (data, len(data), True)


def test_a_walk_raises_where_something_else_stands() -> None:
    """With the file and the position."""
    good = run(b"one", b"two")
    for bad in (b"\x00\x00\x00\x00\x00\x00\x00\x01", b"noise" * 30, record()[:50]):
        with pytest.raises(CorruptEntryError) as caught:
            walked(good + bad)
        assert (caught.value.path, caught.value.position) == (PATH, len(good))


def test_a_wrong_length_reads_no_more_than_the_file() -> None:
    """It may say two gigabytes."""
    bad = replaced(record(), 0, struct.pack(">i", 2**31 - 1))

    with pytest.raises(CorruptEntryError, match="cut short"):
        walked(bad)


@pytest.mark.parametrize("slow_bytes_max", [0, 2000, 10**9])
def test_the_fast_check_agrees_with_the_slow_one(slow_bytes_max: int) -> None:
    """On good records, and on every kind of damage to any of them."""
    dice = random.Random(slow_bytes_max)
    fast = FastChecker(slow_bytes_max)
    bodies = [dice.randbytes(dice.choice((0, 1, 7, 8, 9, 30, 500))) for _ in range(23)]
    data = run(*bodies)
    assert fast(memoryview(data), START, CHECKS) == (len(data), None)
    for _ in range(400):
        position = dice.randrange(len(data))
        bad = replaced(data, position, bytes([data[position] ^ 1 << dice.randrange(8)]))
        expected = check_run(memoryview(bad), START, CHECKS)
        assert fast(memoryview(bad), START, CHECKS) == expected, position
        cut = memoryview(data)[: dice.randrange(len(data))]
        assert fast(cut, START, CHECKS) == check_run(cut, START, CHECKS)


@pytest.mark.parametrize(("case", "store"), pairs := stores(), ids=ids_of(pairs))
def test_every_record_of_the_real_brokers_is_believed(case: GoldenCase, store: Path) -> None:
    """Of both releases, with IPv4 and IPv6, of both versions, with and without property CRC."""
    del case
    fast = FastChecker(0)
    for stored in stored_records(store):
        data = memoryview(stored.data)
        place = stored.physical_offset
        assert check_run(data, place, CHECKS) == (len(data), None)
        assert fast(data, place, CHECKS) == (len(data), None)

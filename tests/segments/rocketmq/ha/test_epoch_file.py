"""The epoch file of 5.x's controller mode, read and written."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logstore.errors import CorruptFileError
from logstore.host import read_file, write_file
from logstore.segments.rocketmq.ha.epoch_file import (
    END_UNKNOWN,
    EpochEntry,
    EpochFile,
    decode_epochs,
    encode_epochs,
)
from logstore.testing.simulated_host import SimulatedHost

#: the text that Java writes for two epochs, without their CRC
TWO = b"2\n%d\n1-0\n2-4096\n"
PATH = "/store/epochFileCheckpoint"


def host_with(content: dict[str, bytes]) -> SimulatedHost:
    """Return a world with these files."""
    host = SimulatedHost(seed=1)
    host.fs.make_directory("/store")
    for path, data in content.items():
        write_file(host.fs, path, data)
    return host


def test_as_java_writes_it() -> None:
    """Count, CRC of the lines, and epoch-start lines; what is written is read again."""
    data = encode_epochs([EpochEntry(1, 0), EpochEntry(2, 4096)])
    lines = data.decode().split("\n")
    assert lines[0] == "2"
    assert lines[2:] == ["1-0", "2-4096", ""]
    assert decode_epochs(data) == [EpochEntry(1, 0, 4096), EpochEntry(2, 4096, END_UNKNOWN)]


def test_crc_of_zero_is_none() -> None:
    """A CRC of 0 means that there is none to check, as in Java."""
    assert len(decode_epochs(TWO % 0)) == 2


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "does not begin"),
        (b"1\n", "does not begin"),
        (b"x\n0\n", "does not begin"),
        (b"3\n0\n1-0\n", "says 3 epochs and has 1"),
        (b"1\n5\n1-0\n", "CRC"),
        (b"1\n0\n1:0\n", "line 3 is no epoch"),
        (b"1\n0\n1--5\n", "line 3 is no epoch"),
        (b"1\n0\n2147483648-0\n", "too large"),
    ],
)
def test_damage(data: bytes, reason: str) -> None:
    """Damage is told with file and line."""
    with pytest.raises(CorruptFileError, match=f"epochFileCheckpoint.*{reason}"):
        decode_epochs(data)


@given(st.binary(max_size=60))
def test_any_bytes(data: bytes) -> None:
    """Any bytes are epochs or damage."""
    try:
        found = decode_epochs(data)
    except CorruptFileError:
        found = []
    assert all(one.epoch >= 0 for one in found)


def test_every_flipped_byte() -> None:
    """No flipped byte goes unseen, but where it makes the CRC a zero that is not checked."""
    data = encode_epochs([EpochEntry(3, 10), EpochEntry(7, 99_000), EpochEntry(8, 100_000)])
    whole = decode_epochs(data)
    rng = random.Random(4)
    for position in range(len(data)):
        flipped = bytearray(data)
        flipped[position] ^= 1 << rng.randrange(8)
        try:
            found = decode_epochs(bytes(flipped))
        except CorruptFileError:
            continue
        assert found == whole, f"byte {position}"


def test_kept_in_a_file() -> None:
    """Epochs are in the file as soon as they are appended; older or overlapping ones are not."""
    host = host_with({})
    epochs = EpochFile(host, PATH)
    assert epochs.last_epoch == -1
    assert epochs.append(1, 0)
    assert epochs.append(3, 500)
    assert not epochs.append(3, 900)
    assert not epochs.append(4, 500)
    again = EpochFile(host, PATH)
    assert again.entries == [EpochEntry(1, 0, 500), EpochEntry(3, 500)]
    assert again.last_epoch == 3
    assert decode_epochs(read_file(host.fs, f"{PATH}.bak")) == [EpochEntry(1, 0)]


@pytest.mark.parametrize("damaged", [b"", b"nonsense", None])
def test_backup(damaged: bytes | None) -> None:
    """Where the file is missing, empty or damaged its backup is read."""
    host = host_with({f"{PATH}.bak": encode_epochs([EpochEntry(1, 7)])})
    if damaged is not None:
        write_file(host.fs, PATH, damaged)
    assert EpochFile(host, PATH).entries == [EpochEntry(1, 7)]


def test_both_damaged() -> None:
    """Two damaged files are an error that names the first."""
    with pytest.raises(CorruptFileError, match="epochFileCheckpoint: "):
        EpochFile(host_with({PATH: b"x", f"{PATH}.bak": b"y"}), PATH)


def test_truncation_and_search() -> None:
    """Epochs follow the log when it is cut at either end, and are found by physical offset."""
    epochs = EpochFile(host_with({}), PATH)
    epochs.replace([EpochEntry(1, 0), EpochEntry(2, 100), EpochEntry(5, 300)])
    assert epochs.epoch_of(99) == EpochEntry(1, 0, 100)
    assert epochs.epoch_of(100) == EpochEntry(2, 100, 300)
    epochs.truncate_above(300)
    assert epochs.entries[-1] == EpochEntry(2, 100)
    epochs.truncate_below(100)
    assert epochs.entries == [EpochEntry(2, 100)]
    assert epochs.epoch_of(99) is None
    assert EpochFile(epochs.host, PATH).entries == [EpochEntry(2, 100)]


@pytest.mark.parametrize(
    ("others", "expected"),
    [
        ([EpochEntry(1, 0, 100), EpochEntry(2, 100)], 180),
        ([EpochEntry(1, 0, 70), EpochEntry(2, 70)], 70),
        ([EpochEntry(1, 5)], -1),
        ([], -1),
    ],
)
def test_consistent_point(others: list[EpochEntry], expected: int) -> None:
    """Two logs are the same up to the end of the newest epoch that they share."""
    epochs = EpochFile(host_with({}), PATH)
    epochs.replace([EpochEntry(1, 0), EpochEntry(2, 100)])
    assert epochs.consistent_physical_offset(others, 200, 180) == expected

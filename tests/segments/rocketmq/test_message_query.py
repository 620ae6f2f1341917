"""Messages by key, by place and by id."""

from __future__ import annotations

import attrs
import pytest

from logstore.segments.rocketmq.reading.message_query import extent_at, message_at, query_message
from tests.segments.rocketmq.golden_case import GoldenCase, golden_cases
from tests.segments.rocketmq.memory_store import MemoryCommitLog


@attrs.frozen
class Answer:
    """What an index says."""

    physical_offsets: list[int]
    last_update_timestamp_ms: int = 7
    last_update_physical_offset: int = 8


@attrs.define
class Index:
    """An index that gives prepared answers and notes the questions."""

    answers: list[list[int]]
    asked: list[tuple[str, str, int, int, int]] = attrs.field(
        factory=list[tuple[str, str, int, int, int]]
    )

    def query(self, topic: str, key: str, count_max: int, begin_ms: int, end_ms: int) -> Answer:
        """Return the next answer."""
        self.asked.append((topic, key, count_max, begin_ms, end_ms))
        return Answer(self.answers[len(self.asked) - 1])


def log_of(*messages: bytes) -> MemoryCommitLog:
    """Return a commit log of these bytes."""
    return MemoryCommitLog.of_bytes(b"".join(messages), 4096)


def sized(size: int) -> bytes:
    """Return `size` bytes that begin with their number."""
    return size.to_bytes(4, "big") + bytes(size - 4)


def test_in_order_of_the_log() -> None:
    """Messages come in the order of the commit log, whatever the order of the index."""
    log = log_of(sized(100), sized(50), sized(60))
    result = query_message(Index([[150, 0, 100]]), log, "t", "k", 32, 0, 99)
    assert [(piece.position, piece.size_bytes) for piece in result.pieces] == [
        (0, 100),
        (100, 50),
        (150, 60),
    ]
    assert result.size_bytes == 210
    assert result.read() == log.read(0, 210)
    assert (result.last_update_timestamp_ms, result.last_update_physical_offset) == (7, 8)


def test_nothing() -> None:
    """A key that the index does not know gives nothing, after one question."""
    index = Index([[]])
    result = query_message(index, log_of(sized(100)), "t", "k", 5, 1, 9)
    assert not result.pieces
    assert index.asked == [("t", "k", 5, 1, 9)]


@pytest.mark.parametrize("case", golden_cases("plain", version="5.5.0"), ids=lambda one: one.id)
def test_asks_again_for_older_ones(case: GoldenCase) -> None:
    """If nothing that was found can be read, older messages are asked for, three times in all."""
    log = MemoryCommitLog.of_store(case.store, 1 << 40)
    far = 1 << 39
    index = Index([[far], [far], [far], [far]])
    result = query_message(index, MemoryCommitLog.of_bytes(b""), "t", "k", 5, 1, 1000)
    assert not result.pieces
    assert len(index.asked) == 3
    place = case.expected[0]["commitLogOffset"]
    again = Index([[far], [place]])
    found = query_message(again, MemoryCommitLog.of_store(case.store, 1 << 38), "t", "k", 5, 1, 9)
    assert [piece.read()[:4] for piece in found.pieces] == [log.read(place, 4)]


@pytest.mark.parametrize(
    ("physical_offset", "size_bytes"),
    [(-1, None), (97, None), (0, 101), (100, 4), (0, -1), (4096, 4)],
)
def test_no_extent(physical_offset: int, size_bytes: int | None) -> None:
    """What is not wholly in the commit log is not there."""
    assert extent_at(log_of(sized(100)), physical_offset, size_bytes) is None


def test_an_extent_of_nothing() -> None:
    """Where a 0 is read as a length stand no bytes, as with Java; no message is found there."""
    log = log_of(sized(100))
    extent = extent_at(log, 4)
    assert extent is not None
    assert extent.read() == b""
    assert message_at(log, 4) is None


def test_extent_over_the_end_of_a_file() -> None:
    """A size that leads into the next file is that of no message."""
    log = log_of(bytes(4000) + sized(200))
    assert extent_at(log, 4000) is None


@pytest.mark.parametrize(
    "case", golden_cases("plain", "ipv6", "properties"), ids=lambda one: one.id
)
def test_by_place(case: GoldenCase) -> None:
    """Each message of a real store is found at its physical offset, and only there."""
    log = MemoryCommitLog.of_store(case.store, 1 << 40)
    for expected in case.expected:
        message = message_at(log, expected["commitLogOffset"])
        assert message is not None
        assert message.offset_message_id == expected["offsetMsgId"]
        assert message.size_bytes == expected["storeSize"]
        assert message_at(log, expected["commitLogOffset"], expected["storeSize"]) == message
    place = case.expected[0]["commitLogOffset"]
    assert all(message_at(log, place + shift) is None for shift in range(1, 60))

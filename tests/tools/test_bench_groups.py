"""Requests about offsets made once, and their replies read by position."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from kafka.protocol.consumer import OffsetCommitRequest, OffsetFetchRequest

from logstore.tools.bench.frames import BenchError, EqualReplies
from logstore.tools.bench.group_frames import (
    COMMIT_VERSION,
    OFFSET_FETCH_VERSION,
    CommitReplies,
    OffsetReplies,
    commit_frame,
    fetch_offsets_frame,
)
from tests.tools.bench_replies import commit_reply, offset_fetch_reply

Reply = Callable[[str, Sequence[int]], bytes]


def decoded(message: Any, version: int, frame: bytes) -> Any:
    """Return the request that a server would read from this frame."""
    return message.decode(frame[4:], version=version, header=True)


def test_a_commit_says_what_it_was_made_of() -> None:
    """A server that decodes it finds group, topic, partitions and offset."""
    frame = commit_frame("readers", "bench", [3, 5], offset=9)
    request = decoded(OffsetCommitRequest, COMMIT_VERSION, frame)
    assert request.group_id == "readers"
    (topic,) = request.topics
    assert topic.name == "bench"
    assert [(one.partition_index, one.committed_offset) for one in topic.partitions] == [
        (3, 9),
        (5, 9),
    ]


def test_a_look_up_says_what_it_was_made_of() -> None:
    """As a commit does."""
    frame = fetch_offsets_frame("readers", "bench", range(4))
    request = decoded(OffsetFetchRequest, OFFSET_FETCH_VERSION, frame)
    assert request.group_id == "readers"
    (topic,) = request.topics
    assert (topic.name, topic.partition_indexes) == ("bench", [0, 1, 2, 3])


@pytest.mark.parametrize("count", [1, 126, 127, 1000])
@pytest.mark.parametrize(
    ("layout", "reply"),
    [(CommitReplies.about, commit_reply), (OffsetReplies.about, offset_fetch_reply)],
)
def test_replies_are_as_long_as_foreseen(
    layout: Callable[[str, int], EqualReplies], reply: Reply, count: int
) -> None:
    """Several good ones are counted, and an error in any place is told."""
    replies = layout("bench-topic", count)
    good = reply("bench-topic", [0] * count)
    assert len(good) == replies.size_bytes
    assert replies.check(good * 3 + good[:5], 3 * len(good) + 5) == 3
    bad = reply("bench-topic", [0] * (count - 1) + [16])
    with pytest.raises(BenchError, match="error 16"):
        replies.check(good + bad, 2 * len(good))

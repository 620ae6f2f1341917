"""Requests of consumers that keep their offsets at the broker, and what their replies look like."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
from kafka.protocol.consumer import OffsetCommitRequest, OffsetFetchRequest

from logstore.tools.bench.frames import EqualReplies, encoded

COMMIT_VERSION = 8
OFFSET_FETCH_VERSION = 7
_NO_GENERATION = -1
_ONE_BYTE_MAX = 126  # what a length takes one byte for


def commit_frame(group: str, topic: str, partitions: Sequence[int], offset: int = 7) -> bytes:
    """Return a whole OffsetCommit request of somebody who is no member of the group."""
    asked = OffsetCommitRequest.OffsetCommitRequestTopic
    request = OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=_NO_GENERATION,
        member_id="",
        group_instance_id=None,
        topics=[
            asked(
                name=topic,
                partitions=[
                    asked.OffsetCommitRequestPartition(
                        partition_index=index,
                        committed_offset=offset,
                        committed_leader_epoch=-1,
                        committed_metadata="",
                    )
                    for index in partitions
                ],
            )
        ],
        version=COMMIT_VERSION,
    )
    return encoded(request)


def fetch_offsets_frame(group: str, topic: str, partitions: Sequence[int]) -> bytes:
    """Return a whole OffsetFetch request."""
    request = OffsetFetchRequest(
        group_id=group,
        topics=[
            OffsetFetchRequest.OffsetFetchRequestTopic(
                name=topic, partition_indexes=list(partitions)
            )
        ],
        require_stable=True,
        version=OFFSET_FETCH_VERSION,
    )
    return encoded(request)


@attrs.frozen
class CommitReplies(EqualReplies):
    """
    Where things are in an OffsetCommit v8 reply about so many partitions of a topic.

    ::

        size 4 | correlation id 4 | tags 1 | throttle time 4 | topics 1 | name 1 + n
        | partitions 1 or 2, then, per partition: index 4 | error 2 | tags 1
        topic's tags 1 | tags 1
    """

    @classmethod
    def about(cls, topic: str, partition_count: int) -> CommitReplies:
        """Return the layout."""
        return cls(*_layout(4 + 4 + 1 + 4 + 1, topic, partition_count, each=7, error_at=4, end=2))


@attrs.frozen
class OffsetReplies(EqualReplies):
    """
    Where things are in an OffsetFetch v7 reply about so many partitions with empty metadata.

    ::

        size 4 | correlation id 4 | tags 1 | throttle time 4 | topics 1 | name 1 + n
        | partitions 1 or 2, then, per partition:
          index 4 | offset 8 | leader epoch 4 | metadata 1 | error 2 | tags 1
        topic's tags 1 | error 2 | tags 1
    """

    @classmethod
    def about(cls, topic: str, partition_count: int) -> OffsetReplies:
        """Return the layout."""
        return cls(*_layout(4 + 4 + 1 + 4 + 1, topic, partition_count, each=20, error_at=17, end=4))


def _layout(
    head_bytes: int, topic: str, partition_count: int, *, each: int, error_at: int, end: int
) -> tuple[int, tuple[int, ...]]:
    """Return how long a reply is, and where its errors stand."""
    assert len(topic) < _ONE_BYTE_MAX
    count_bytes = 1 if partition_count <= _ONE_BYTE_MAX else 2
    first = head_bytes + 1 + len(topic) + count_bytes
    errors = tuple(first + each * at + error_at for at in range(partition_count))
    return first + each * partition_count + end, errors

"""Requests of a share group's member, topics given by their ids."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from logstore.compat.kafka.share_reads.messages import (
    AcknowledgedBatch,
    ForgottenTopic,
    ShareAcknowledgeRequest,
    SharedPartition,
    SharedTopic,
    ShareFetchRequest,
)

FETCH, ACKNOWLEDGE = 78, 79
GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)
#: (first offset, last offset, types)
Said = tuple[int, int, tuple[int, ...]]
#: group and member
Asker = tuple[str | None, str | None]
SaidOf = Mapping[tuple[bytes, int], Sequence[Said]]
Partitions = Mapping[bytes, Sequence[int]]


def fetch_request(
    asker: Asker,
    epoch: int,
    topics: Partitions | None = None,
    *,
    said: SaidOf | None = None,
    forgotten: Partitions | None = None,
    **fields: Any,
) -> ShareFetchRequest:
    """Return a ShareFetch that wants all there is, and waits for half a second."""
    given: dict[str, Any] = {
        "max_wait_ms": 500,
        "min_bytes": 1,
        "max_records": 500,
        "batch_size": 500,
    }
    return ShareFetchRequest(
        group_id=asker[0],
        member_id=asker[1],
        share_session_epoch=epoch,
        topics=_topics(topics or {}, said or {}),
        forgotten_topics_data=tuple(
            ForgottenTopic(topic_id=uuid.UUID(bytes=topic_id), partitions=tuple(indexes))
            for topic_id, indexes in (forgotten or {}).items()
        ),
        **(given | fields),
    )


def acknowledge_request(
    asker: Asker, epoch: int, said: SaidOf, **fields: Any
) -> ShareAcknowledgeRequest:
    """Return a ShareAcknowledge."""
    return ShareAcknowledgeRequest(
        group_id=asker[0],
        member_id=asker[1],
        share_session_epoch=epoch,
        topics=_topics({}, said),
        **fields,
    )


def _topics(topics: Partitions, said: SaidOf) -> tuple[SharedTopic, ...]:
    keys = [(topic_id, index) for topic_id, indexes in topics.items() for index in indexes]
    by_topic: dict[bytes, list[SharedPartition]] = {}
    for topic_id, index in dict.fromkeys([*keys, *said]):
        batches = tuple(
            AcknowledgedBatch(first_offset=first, last_offset=last, acknowledge_types=types)
            for first, last, types in said.get((topic_id, index), [])
        )
        by_topic.setdefault(topic_id, []).append(
            SharedPartition(partition_index=index, acknowledgement_batches=batches)
        )
    return tuple(
        SharedTopic(topic_id=uuid.UUID(bytes=topic_id), partitions=tuple(partitions))
        for topic_id, partitions in by_topic.items()
    )

"""A conversation about share groups with a broker on a simulated disk."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

from logstore.compat.kafka.groups.modern.records import GroupChange
from logstore.compat.kafka.groups.share import records
from logstore.compat.kafka.groups.share.group import ShareGroup
from logstore.compat.kafka.groups.share.messages import ShareGroupHeartbeatResponse
from logstore.compat.kafka.share_state.topic import ShareStateTopic
from logstore.segments.kafka.record import decode_records
from tests.compat.kafka.groups.consumer.test_apis import GroupConversation
from tests.compat.kafka.groups.share.share_questions import ShareQuestions

#: how long the coordinator waits between assignments
INTERVAL_MS = 1000


class ShareConversation(GroupConversation, ShareQuestions):
    """Asks about share groups; with topics that it makes."""

    def made(self, name: str, partition_count: int) -> uuid.UUID:
        """Make a topic and return its id."""
        return uuid.UUID(bytes=self.create(name, partition_count))

    def pause(self, time_ms: int = INTERVAL_MS) -> None:
        """Let time pass, and what is due happen."""
        self.host.clock.advance(time_ms)
        self.broker.timers.run()

    def group(self, group_id: str = "g") -> ShareGroup:
        """Return a group, which must exist."""
        return self.broker.groups.share_groups[group_id]

    def changes(self) -> Iterator[GroupChange]:
        """Yield what stands in the log about share groups."""
        for partition in self.broker.topics["__consumer_offsets"].partitions.values():
            for batch in partition.batches():
                for record in decode_records(batch.data):
                    assert record.key is not None
                    change = records.KIND.decoded(record.key, record.value)
                    if change is not None:
                        yield change

    def state_record_count(self) -> int:
        """Return how many records of states there are."""
        return sum(1 for _ in ShareStateTopic(self.broker).replay())


def given(answer: ShareGroupHeartbeatResponse) -> dict[uuid.UUID, tuple[int, ...]]:
    """Return what a member was told to read; it must have been told."""
    assert answer.error_code == 0, answer
    assert answer.assignment is not None
    return {
        one.topic_id: tuple(sorted(one.partitions)) for one in answer.assignment.topic_partitions
    }

"""Members of a share group: what one of them has ended never comes again, all else comes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

import attrs

from logstore.compat.kafka.share_reads.messages import (
    FetchedSharePartition,
    ShareAcknowledgeResponse,
    ShareFetchResponse,
)
from logstore.segments.kafka.record import decode_records
from logstore.segments.kafka.record_batch import iterate_batches
from tests.compat.kafka.lives.clients import World
from tests.compat.kafka.lives.group_peer import GroupPeer, Partitions, assigned, sorted_names
from tests.compat.kafka.share_reads.share_requests import (
    ACCEPT,
    ACKNOWLEDGE,
    FETCH,
    GAP,
    REJECT,
    RELEASE,
    Said,
    acknowledge_request,
    fetch_request,
)

SHARE_GROUP = "sharers"
#: how often a record is delivered before it is given up
DELIVERIES_MAX = 5
LOCK_MS = 30_000
#: a partition of a topic of that id
Partition = tuple[bytes, int]


@attrs.define
class ShareTruth:
    """What members were told, for each partition by the values of its records."""

    #: accepted or rejected, and that was acknowledged
    ended: dict[Partition, set[bytes]] = attrs.field(factory=lambda: defaultdict(set[bytes]))
    #: asked to be ended, and nobody knows
    maybe: dict[Partition, set[bytes]] = attrs.field(factory=lambda: defaultdict(set[bytes]))
    #: the highest delivery count that anybody saw
    counts: dict[Partition, dict[bytes, int]] = attrs.field(
        factory=lambda: defaultdict(dict[bytes, int])
    )

    def deliver(self, partition: Partition, value: bytes, count: int, *, is_deleted: bool) -> None:
        """
        Take note that a member has a record.

        What was deleted by a request may come back with the log's old start after a crash; of such
        records the ends are not kept.
        """
        has_ended = value in self.ended[partition] and not is_deleted
        assert not has_ended, f"{partition}: {value!r} had ended, and comes"
        assert count <= DELIVERIES_MAX, f"{partition}: {value!r} comes for the {count}th time"
        self.maybe[partition].discard(value)
        self.counts[partition][value] = count

    def is_over(self, partition: Partition, value: bytes) -> bool:
        """Tell whether a record need not come any more."""
        is_ended = value in self.ended[partition] or value in self.maybe[partition]
        return is_ended or self.counts[partition].get(value, 0) >= DELIVERIES_MAX


@attrs.define(eq=False)
class _Delivery:
    """A record that a member has, and until when."""

    #: None for a marker, or what a compaction took
    value: bytes | None
    deadline_ms: int


class ShareMember:
    """Joins, fetches, and says of records what became of them."""

    def __init__(self, world: World, truth: ShareTruth, name: str) -> None:
        self.world = world
        self.truth = truth
        self.name = name
        #: what other members have is not ours
        self.others: list[ShareMember] = []
        self.had: dict[Partition, dict[int, _Delivery]] = defaultdict(dict)
        self.reconnect()

    def reconnect(self) -> None:
        """A session ends with its connection, and what its member had is free again."""
        self._peer = GroupPeer(self.world.broker)
        self.epoch = 0
        self._session = 0
        self._assigned: Partitions = {}
        self._fetched: Partitions = {}
        self._drop_deliveries()

    def forget(self, topic: str) -> None:
        """Topics have ids: one of the same name is another."""
        del topic

    def act(self) -> None:
        """Beat, fetch, or acknowledge."""
        dice = self.world.dice
        if not self.epoch or dice.random() < 0.15:
            self.beat()
        elif dice.random() < 0.03:
            self.leave()
        elif dice.random() < 0.5 or not any(self.had.values()):
            self.fetch()
        else:
            self.acknowledge()

    def beat(self) -> None:
        """Join, or say that it lives; with a subscription to all topics that there are."""
        names = sorted_names(self.world.chronicle.topics())
        answer = self._peer.share_beat(
            SHARE_GROUP, self.name, self.epoch, subscribed_topic_names=names
        )
        if answer.error_code:
            self.epoch = 0
            return
        self.epoch = answer.member_epoch
        given = assigned(answer)
        if given is not None:
            self._assigned = given

    def leave(self) -> None:
        """Leave the group, after the session: what it had is free."""
        if self._session:
            request = fetch_request((SHARE_GROUP, self.name), -1, max_wait_ms=0)
            self._peer.ask_ours(FETCH, 2, request, ShareFetchResponse)
        self._peer.share_beat(SHARE_GROUP, self.name, -1)
        self.reconnect()

    def fetch(self) -> int:
        """Take records; return how many there were."""
        wanted = {} if self._session and self._fetched == self._assigned else self._assigned
        gone: Partitions = {}
        if self._session:
            gone = _without(self._fetched, self._assigned)
        request = fetch_request(
            (SHARE_GROUP, self.name), self._session, wanted, forgotten=gone, max_wait_ms=0,
            max_records=self.world.dice.choice((1, 3, 20, 500)),
            batch_size=self.world.dice.choice((1, 5, 500)),
        )  # fmt: skip
        answer = self._peer.ask_ours(FETCH, 2, request, ShareFetchResponse)
        if answer.error_code:
            self._lose_session()
            return 0
        self._session += 1
        self._fetched = dict(self._assigned)
        return sum(
            self._take((topic.topic_id.bytes, part.partition_index), part)
            for topic in answer.responses
            for part in topic.partitions
        )

    def acknowledge(self, *, is_all: bool = False) -> None:
        """Say of some records, or of all, what became of them."""
        dice = self.world.dice
        partition = dice.choice([one for one, had in self.had.items() if had])
        offsets = sorted(self.had[partition])
        if not is_all:
            offsets = sorted(dice.sample(offsets, dice.randint(1, len(offsets))))
        said: list[Said] = []
        ending: set[bytes] = set()
        for offset in offsets:
            value = self.had[partition].pop(offset).value
            kind = ACCEPT if is_all else dice.choice((ACCEPT, ACCEPT, RELEASE, REJECT))
            if value is not None and kind != RELEASE:
                ending.add(value)
            said.append((offset, offset, (GAP if value is None else kind,)))
        self.truth.maybe[partition] |= ending
        if not self._session:
            return
        request = acknowledge_request((SHARE_GROUP, self.name), self._session, {partition: said})
        answer = self._peer.ask_ours(ACKNOWLEDGE, 2, request, ShareAcknowledgeResponse)
        if answer.error_code:
            self._lose_session()
            return
        self._session += 1
        ((told,),) = [topic.partitions for topic in answer.responses]
        if not told.error_code:
            self.truth.maybe[partition] -= ending
            self.truth.ended[partition] |= ending

    def drain(self, wait_a_moment: Callable[[], None]) -> None:
        """Take all that is left, and end it; the others are gone."""
        idle_count = 0
        while idle_count < 5:
            wait_a_moment()
            self.beat()
            assert self.epoch, "a member cannot join"
            idle_count = 0 if self.fetch() else idle_count + 1
            while any(self.had.values()):
                self.acknowledge(is_all=True)

    def _lose_session(self) -> None:
        """Begin another one; what it had may be somebody else's."""
        self._session = 0
        self._fetched = {}
        self._drop_deliveries()

    def _drop_deliveries(self) -> None:
        self.had.clear()

    def _take(self, partition: Partition, part: FetchedSharePartition) -> int:
        now_ms = self.world.now_ms()
        values = {
            record.offset: record.value or b""
            for batch in iterate_batches(memoryview(part.records or b""))
            if not batch.is_control
            for record in decode_records(batch.data)
        }
        count = 0
        deleted_below = self._deleted_below(partition)
        for some in part.acquired_records:
            for offset in range(some.first_offset, some.last_offset + 1):
                self._check_free(partition, offset, now_ms)
                value = values.get(offset)
                if value is not None:
                    is_deleted = offset < deleted_below
                    self.truth.deliver(partition, value, some.delivery_count, is_deleted=is_deleted)
                self.had[partition][offset] = _Delivery(value, now_ms + LOCK_MS)
                count += 1
        return count

    def _deleted_below(self, partition: Partition) -> int:
        for name, topic in self.world.broker.topics.items():
            if topic.topic_id == partition[0]:
                return self.world.chronicle.partitions[name, partition[1]].start
        return 0

    def _check_free(self, partition: Partition, offset: int, now_ms: int) -> None:
        for other in (self, *self.others):
            had = other.had.get(partition, {}).get(offset)
            assert had is None or had.deadline_ms <= now_ms, (
                f"{partition}: {offset} comes to {self.name}, and {other.name} has it"
            )
            other.had.get(partition, {}).pop(offset, None)


def _without(partitions: Partitions, kept: Partitions) -> Partitions:
    """Return what of `partitions` is not `kept`."""
    found = {
        topic_id: [index for index in indexes if index not in kept.get(topic_id, ())]
        for topic_id, indexes in partitions.items()
    }
    return {topic_id: indexes for topic_id, indexes in found.items() if indexes}

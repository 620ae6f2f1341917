"""Members of a consumer group: no two have a partition, and who is alive is not thrown out."""

from __future__ import annotations

import attrs

from logstore.compat.kafka.groups.consumer.messages import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from logstore.segments.kafka.internal_topics.consumer_group import TopicPartition
from tests.compat.kafka.lives.clients import World, commit_offset
from tests.compat.kafka.lives.group_peer import (
    GroupPeer,
    Partitions,
    as_uuid,
    assigned,
    sorted_names,
)

CONSUMER_GROUP = "consumers"
SESSION_MS = 45_000
#: how long a member may take to let go of what it shall not have any more
REBALANCE_MS = 300_000
UNKNOWN_MEMBER, FENCED_EPOCH, UNRELEASED = 25, 110, 111
STALE_EPOCH = 113


@attrs.define(eq=False)
class GroupMember:
    """Beats, takes what it is given, lets go of what it shall not have, and commits."""

    world: World
    name: str
    epoch: int = 0
    #: what it has; a partition is let go by the next heartbeat
    owned: Partitions = attrs.field(factory=dict[bytes, list[int]])
    others: list[GroupMember] = attrs.field(factory=list["GroupMember"])
    #: another has a partition of it: it must be told that it is out
    is_out: bool = False
    #: when it was last told that it is in
    _told_ms: int = 0
    #: a heartbeat was not answered, so that nobody knows what it did
    _is_unsure: bool = False

    def reconnect(self) -> None:
        """Members outlive the broker; those that lead a time without it may be late."""

    def forget(self, topic: str) -> None:
        """Topics have ids: one of the same name is another."""
        del topic

    def act(self) -> None:
        """Beat, commit, or leave."""
        dice = self.world.dice
        if not self.epoch or dice.random() < 0.6:
            self._beat()
        elif dice.random() < 0.05:
            self._leave()
        else:
            self._commit()

    def _ask(self, epoch: int) -> ConsumerGroupHeartbeatResponse:
        request = ConsumerGroupHeartbeatRequest(
            group_id=CONSUMER_GROUP, member_id=self.name, member_epoch=epoch,
            rebalance_timeout_ms=REBALANCE_MS,
            subscribed_topic_names=sorted_names(self.world.chronicle.topics()),
            topic_partitions=() if not epoch else tuple(
                TopicPartition(topic_id=as_uuid(topic_id), partitions=tuple(indexes))
                for topic_id, indexes in self.owned.items()
            ),
        )  # fmt: skip
        was_unsure, self._is_unsure = self._is_unsure, True
        peer = GroupPeer(self.world.broker)
        answer = peer.ask_ours(68, 1, request, ConsumerGroupHeartbeatResponse)
        self._is_unsure = was_unsure
        return answer

    def _beat(self) -> None:
        answer = self._ask(self.epoch)
        now_ms = self.world.now_ms()
        if answer.error_code in (UNKNOWN_MEMBER, FENCED_EPOCH):
            is_late = now_ms - self._told_ms >= SESSION_MS
            assert self.is_out or is_late or self._is_unsure, (
                f"{self.name} in epoch {self.epoch} is thrown out: {answer}"
            )
            self._go_out()
        elif answer.error_code:
            self._is_unsure = True  # a bad disk: what was written may count
        else:
            assert not self.is_out, f"{self.name} is in, and another has what it has"
            assert answer.member_epoch >= self.epoch, f"{self.name}: {answer} after {self.epoch}"
            self.epoch, self._told_ms, self._is_unsure = answer.member_epoch, now_ms, False
            self._take(assigned(answer))

    def _take(self, given: Partitions | None) -> None:
        if given is None:
            return
        self.owned = given
        for other in self.others:
            shared = [
                (topic_id, index)
                for topic_id, indexes in given.items()
                for index in indexes
                if index in other.owned.get(topic_id, ())
            ]
            other.is_out = other.is_out or bool(shared)

    def _go_out(self) -> None:
        self.epoch, self.owned, self.is_out, self._is_unsure = 0, {}, False, False

    def _leave(self) -> None:
        self._ask(-1)
        self._go_out()

    def _commit(self) -> None:
        world, topics = self.world, self.world.broker.topics
        names = {
            topics[name].topic_id: name
            for name in world.chronicle.topics() if name in topics
        }  # fmt: skip
        mine = [
            (names[topic_id], index) for topic_id, indexes in sorted(self.owned.items())
            if topic_id in names for index in indexes
        ]  # fmt: skip
        if not mine:
            return
        place, offset = world.dice.choice(mine), world.dice.randrange(1000)
        member = self.name, self.epoch
        code = commit_offset(world, CONSUMER_GROUP, place, offset, member, 9)
        if not code:
            assert not self.is_out, f"{self.name} commits, and another has what it has"
        elif code in (UNKNOWN_MEMBER, STALE_EPOCH):
            is_late = world.now_ms() - self._told_ms >= SESSION_MS
            assert self.is_out or is_late or self._is_unsure, f"{self.name} cannot commit: {code}"

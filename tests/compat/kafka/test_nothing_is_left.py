"""Clients, topics, groups and transactions that come and go leave nothing behind in a broker."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

import attrs
import pytest

from logstore.compat.kafka.broker import Broker
from logstore.compat.kafka.groups.consumer.messages import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from logstore.compat.kafka.groups.streams.messages import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    Topology,
)
from logstore.compat.kafka.share_reads.messages import ShareFetchResponse
from logstore.testing.manual_clock import ManualClock
from logstore.testing.simulated_host import SimulatedHost
from tests.compat.kafka.batches import batch
from tests.compat.kafka.groups.questioner import commit_fields, join_fields, sync_fields
from tests.compat.kafka.groups.streams.rehearsal import internal, subtopology
from tests.compat.kafka.lives.group_peer import GroupPeer
from tests.compat.kafka.peer import Peer, a_broker, fetch_fields
from tests.compat.kafka.share_reads.share_requests import FETCH, fetch_request
from tests.compat.kafka.transactions.producer import TransactionalClient
from tests.leftovers import left_behind

_DAY_MS = 24 * 3_600_000
#: longer than it takes to look for what is over, whatever it is
_ROUND_MS = 700_000
_CONSUMER_HEARTBEAT, _STREAMS_HEARTBEAT = 68, 88
_NO_SUCH_GROUP = 69
#: what stays, and why
_KEPT = {
    # a cache with a most that it holds
    "compat.kafka.produce.route.ProduceRoute",
    "compat.kafka.broker.Broker.produce_routes",
    *(
        f"compat.kafka.re2_machine.{name}"
        for name in (
            "Characters",
            "Characters.firsts",
            "Characters.lasts",
            "Then",
            "Either",
            "Repeated",
            "Place",
            "Nothing",
            "Machine",
            "Machine._states",
            "Machine._numbers",
            "Machine._sets",
            "_Set",
            "_Set.following",
        )
    ),
    # sixteen bytes each: what is found of them at the next start is rubbish
    "segments.kafka.cluster_metadata.image.MetadataImage.removed_ids",
    # indexes of logs, which grow
    "segments.kafka.offset_index.OffsetIndex._entries",
    "segments.kafka.time_index.TimeIndex._entries",
    "segments.kafka.transaction_index.TransactionIndex._entries",
}


@attrs.define
class World:
    """A broker, and a clock that moves only while somebody waits."""

    clock: ManualClock = attrs.field(factory=ManualClock)
    broker: Broker = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        settings = {
            "group_initial_rebalance_delay_ms": 0,
            "max_incremental_fetch_session_cache_slots": 8,
            "offsets_topic_num_partitions": 1,
            "transaction_state_log_num_partitions": 1,
            "share_coordinator_state_topic_num_partitions": 1,
        }
        self.broker = a_broker(SimulatedHost(clock=self.clock), **settings)
        self.broker.start_housekeeping()

    def pass_ms(self, delay_ms: float) -> None:
        """Let time pass, timer by timer."""
        timers, end_ms = self.broker.timers, self.clock.monotonic_ms() + delay_ms
        while (due_ms := timers.next_due_ms()) is not None and due_ms <= end_ms:
            self.clock.advance(max(due_ms - self.clock.monotonic_ms(), 0))
            timers.run()
        self.clock.advance(end_ms - self.clock.monotonic_ms())

    def make_topic(self, name: str) -> None:
        """Make a topic of two partitions."""
        topic = {"name": name, "num_partitions": 2, "replication_factor": 1}
        answer = Peer(self.broker).ask("CreateTopics", 5, {"topics": [topic], "timeout_ms": 1000})
        assert answer.message["topics"][0]["error_code"] == 0

    def drop(self, topic: str, *groups: str) -> None:
        """Delete a topic and groups."""
        peer = Peer(self.broker)
        if groups:
            answer = peer.ask("DeleteGroups", 2, {"groups_names": list(groups)}).message
            codes = {one["error_code"] for one in answer["results"]}
            assert codes <= {0, _NO_SUCH_GROUP}  # that of nobody may be gone already
        answer = peer.ask("DeleteTopics", 4, {"topic_names": [topic], "timeout_ms": 1000}).message
        assert [one["error_code"] for one in answer["responses"]] == [0]
        peer.connection.lost()


def produce_and_fetch(world: World, number: int) -> None:
    """A client with a name of its own writes, reads in a session, and hangs up."""
    topic = f"t{number}"
    world.make_topic(topic)
    peer = Peer(world.broker, f"client-{number}")
    told = peer.ask("InitProducerId", 4, {"transactional_id": None, "transaction_timeout_ms": 1,
                    "producer_id": -1, "producer_epoch": -1}).message  # fmt: skip
    data = batch(
        b"a", b"b", producer=(told["producer_id"], 0, 0), timestamp_ms=world.clock.wall_ms()
    )
    assert peer.produce([(topic, [(0, data)])]).partition["error_code"] == 0
    wanted = fetch_fields([(topic, [{"partition": 0, "fetch_offset": 0}])], 11, session_id=0,
                          session_epoch=0, rack_id="")  # fmt: skip
    assert peer.ask("Fetch", 11, wanted).message["error_code"] == 0
    peer.send("Fetch", 11, wanted | {"max_wait_ms": 20_000, "min_bytes": 1 << 20})
    peer.connection.lost()
    world.drop(topic)


def limit(world: World, number: int) -> None:
    """A client has limits, works within them, and they are taken away."""
    produce_and_fetch(world, number)
    for remove in (False, True):
        entry = {
            "entity": [{"entity_type": "client-id", "entity_name": f"client-{number}"}],
            "ops": [{"key": "producer_byte_rate", "value": 1e9, "remove": remove}],
        }
        fields = {"entries": [entry], "validate_only": False}
        answer = Peer(world.broker).ask("AlterClientQuotas", 1, fields).message
        assert answer["entries"][0]["error_code"] == 0
        produce_and_fetch(world, number)


def _joined(world: World, number: int) -> tuple[Peer, dict[str, Any]]:
    peer, group = Peer(world.broker, f"client-{number}"), f"g{number}"
    member_id = peer.ask("JoinGroup", 5, join_fields(group)).message["member_id"]
    peer.send("JoinGroup", 5, join_fields(group, member_id=member_id))
    world.pass_ms(10)
    member = peer.answer().message
    synced = {name: value for name, value in sync_fields(group, member).items()
              if not name.startswith("protocol")}  # fmt: skip
    assert peer.ask("SyncGroup", 3, synced).message["error_code"] == 0
    return peer, member


def consume_in_a_group(world: World, number: int) -> None:
    """A member joins, commits, and leaves or is silent; its group is deleted."""
    topic, group = f"t{number}", f"g{number}"
    world.make_topic(topic)
    peer, member = _joined(world, number)
    fields = commit_fields(group, 0, 1, name=topic, member_id=member["member_id"],
                           generation_id_or_member_epoch=member["generation_id"])  # fmt: skip
    peer.ask("OffsetCommit", 7, fields)
    if number % 2:
        leaving = [{"member_id": member["member_id"], "group_instance_id": None}]
        peer.ask("LeaveGroup", 3, {"group_id": group, "members": leaving})
    peer.connection.lost()
    world.pass_ms(60_000)
    world.drop(topic, group)


def commit_and_forget(world: World, number: int) -> None:
    """A group has offsets, and nobody ever asks for it again."""
    topic = f"t{number}"
    world.make_topic(topic)
    peer = Peer(world.broker, f"client-{number}")
    peer.ask("OffsetCommit", 7, commit_fields(f"g{number}", name=topic))
    peer.connection.lost()
    world.drop(topic)


def beat(world: World, number: int) -> None:
    """A member of a consumer group beats, leaves or is silent; its group is deleted."""
    topic, group = f"t{number}", f"g{number}"
    world.make_topic(topic)
    peer = GroupPeer(world.broker)
    for epoch in (0, -1) if number % 2 else (0,):
        request = ConsumerGroupHeartbeatRequest(
            group_id=group, member_id="m" * 22, member_epoch=epoch, rebalance_timeout_ms=60_000,
            subscribed_topic_names=(topic,), topic_partitions=(),
        )  # fmt: skip
        answer = peer.ask_ours(_CONSUMER_HEARTBEAT, 1, request, ConsumerGroupHeartbeatResponse)
        assert answer.error_code == 0
    world.pass_ms(120_000)
    world.drop(topic, group)


def follow_a_pattern(world: World, number: int) -> None:
    """A member of a consumer group wants what is called so, and nobody else does."""
    topic, group = f"t{number}", f"g{number}"
    world.make_topic(topic)
    peer = GroupPeer(world.broker)
    request = ConsumerGroupHeartbeatRequest(
        group_id=group, member_id="m" * 22, member_epoch=0, rebalance_timeout_ms=60_000,
        subscribed_topic_regex=f"t{number}.*", topic_partitions=(),
    )  # fmt: skip
    peer.ask_ours(_CONSUMER_HEARTBEAT, 1, request, ConsumerGroupHeartbeatResponse)
    peer.hang_up()
    world.pass_ms(120_000)
    world.drop(topic, group)


def stream(world: World, number: int) -> None:
    """A member of a streams group has tasks, leaves or is silent; its group is deleted."""
    topic, group = f"t{number}", f"g{number}"
    world.make_topic(topic)
    peer = GroupPeer(world.broker)
    steps = subtopology("0", topic, state_changelog_topics=(internal(f"{group}-kept"),))
    said: dict[int, dict[str, Any]] = {
        0: {"rebalance_timeout_ms": 1000, "process_id": f"p{number}", "active_tasks": (),
            "standby_tasks": (), "warmup_tasks": (),
            "topology": Topology(epoch=0, subtopologies=(steps,))},
        -1: {},
    }  # fmt: skip
    for epoch in (0, -1) if number % 2 else (0,):
        request = StreamsGroupHeartbeatRequest(
            group_id=group, member_id=f"m{number}", member_epoch=epoch
        )
        request = attrs.evolve(request, **said[epoch])
        answer = peer.ask_ours(_STREAMS_HEARTBEAT, 0, request, StreamsGroupHeartbeatResponse)
        assert answer.error_code == 0
        world.pass_ms(10_000)
    peer.hang_up()
    world.pass_ms(120_000)
    world.drop(topic, group)
    world.drop(f"{group}-kept")


def share(world: World, number: int) -> None:
    """A member of a share group takes records, and leaves or is silent; its group is deleted."""
    topic, group, member = f"t{number}", f"g{number}", str(uuid.UUID(int=number))
    world.make_topic(topic)
    topic_id = world.broker.topics[topic].topic_id
    peer = GroupPeer(world.broker)
    assert peer.share_beat(group, member, 0, subscribed_topic_names=(topic,)).error_code == 0
    asker = group, member
    wanted = {topic_id: [0, 1]}
    peer.ask_ours(FETCH, 2, fetch_request(asker, 0, wanted, max_wait_ms=0), ShareFetchResponse)
    data = batch(b"a", b"b", timestamp_ms=world.clock.wall_ms())
    Peer(world.broker).produce([(topic, [(0, data), (1, data)])])
    peer.ask_ours(FETCH, 2, fetch_request(asker, 1, max_wait_ms=0), ShareFetchResponse)
    if number % 2:
        peer.ask_ours(FETCH, 2, fetch_request(asker, -1, max_wait_ms=0), ShareFetchResponse)
        assert peer.share_beat(group, member, -1).error_code == 0
    peer.hang_up()
    world.pass_ms(120_000)
    world.drop(topic, group)


def transact(world: World, number: int) -> None:
    """A producer ends its transactions, or is silent in the middle of one."""
    topic = f"t{number}"
    world.make_topic(topic)
    client = TransactionalClient(world.broker, 1, f"tx{number}")
    assert client.init() == 0
    assert client.add(topic, 0) == [0]
    client.send(topic, 0, b"a")
    client.send_offset(topic, 0, 1)
    if number % 2:
        assert client.end(is_commit=number % 4 == 1) == 0
    client.peer.connection.lost()
    world.pass_ms(120_000)
    world.drop(topic)


@pytest.mark.parametrize(
    "deed",
    [
        produce_and_fetch,
        limit,
        consume_in_a_group,
        commit_and_forget,
        beat,
        follow_a_pattern,
        stream,
        share,
        transact,
    ],
    ids=lambda deed: deed.__name__,
)
def test_who_is_gone_is_forgotten(deed: Callable[[World, int], None]) -> None:
    """What may be remembered for a week (ids of transactions, offsets) is gone after nine days."""

    def wait(world: World) -> None:
        for _ in range(9):
            world.clock.advance(_DAY_MS)
            world.pass_ms(_ROUND_MS)

    left = left_behind(World, deed, wait)
    assert {name: count for name, count in left.items() if name not in _KEPT} == {}

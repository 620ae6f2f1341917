"""Guards of share groups and streams groups: what is served of a request, and what is refused."""

from __future__ import annotations

import struct
import uuid
from typing import Any

import pytest

from logstore.compat.kafka.groups.share.messages import (
    AlterOffsetsPartition,
    AlterOffsetsTopic,
    DeleteOffsetsTopic,
    DescribedOffsetsGroup,
    DescribeOffsetsGroup,
    DescribeOffsetsTopic,
)
from logstore.compat.kafka.groups.streams.messages import StreamsGroupHeartbeatResponse, Topology
from logstore.compat.kafka.groups.streams.states import StatusCode
from logstore.compat.kafka.registry import APIS
from logstore.compat.kafka.security.acl import Operation, ResourceType
from logstore.compat.kafka.security.principal import USER, Principal
from logstore.segments.kafka.internal_topics.codec import decode_message, encode_message
from logstore.segments.kafka.internal_topics.streams_group import StreamsTopic, Subtopology
from tests.compat.kafka.batches import batch
from tests.compat.kafka.conversation import joined
from tests.compat.kafka.own_messages import own_messages
from tests.compat.kafka.peer import Topics, produce_fields
from tests.compat.kafka.security.access import EVERY, GuardedConversation, creation
from tests.compat.kafka.share_reads.share_requests import acknowledge_request, fetch_request

TOPIC, GROUP, CLUSTER = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER
READ, DESCRIBE, CREATE = Operation.READ, Operation.DESCRIBE, Operation.CREATE
MISSING = StatusCode.MISSING_INTERNAL_TOPICS
ASSIGNMENT_INTERVAL_MS = 1000
ACCEPTED = (0, 0, (1,))
NO_ID = uuid.UUID(int=5).bytes


class GroupTalk(GuardedConversation):
    """A broker with the topics `ok` and `no`; `who` speaks of groups with messages of our own."""

    def __init__(self) -> None:
        super().__init__({"group.streams.initial.rebalance.delay.ms": "0"})
        self.ids = {name: self.create(name) for name in ("ok", "no")}

    def told(self, who: str, key: int, version: int, message: Any) -> Any:
        """Return the answer to somebody."""
        self.connection.client.principal = Principal(USER, who)
        header = struct.pack(">hhih", key, version, 7, 4) + b"test" + b"\0"
        payload = header + encode_message(message, version)
        frame = joined(self.connection.feed(struct.pack(">i", len(payload)) + payload))
        while not frame:
            self.host.clock.advance(100)
            self.broker.timers.run()
            frame = joined(self.connection.output)
            self.connection.output.clear()
        return decode_message(own_messages(APIS[key])[1], frame, version, 9)

    def asked(self, who: str, key: int, **fields: Any) -> Any:
        """Return the answer to the newest version of a request."""
        kind: Any = own_messages(APIS[key])[0]
        return self.told(who, key, APIS[key].version_max, kind(**fields))

    def share(self) -> None:
        """Let the group `g` read both topics from the start, with one record in each."""
        fields = {"group_id": "g", "member_id": "m", "subscribed_topic_names": ("ok", "no")}
        answer = self.asked("admin", 76, member_epoch=0, **fields)
        self.host.clock.advance(ASSIGNMENT_INTERVAL_MS)  # states have begun with the first one
        answer = self.asked("admin", 76, member_epoch=answer.member_epoch, **fields)
        assert len(answer.assignment.topic_partitions) == len(self.ids)
        assert not self.fetched("admin", 0).error_code
        for name in self.ids:
            records: Topics = [(name, [(0, batch(b"v"))])]
            self.as_user("admin", "Produce", 9, **produce_fields(records, 9, 1))

    def fetched(self, who: str, epoch: int, **fields: Any) -> Any:
        """Return the answer to a ShareFetch of both topics."""
        topics = dict.fromkeys(self.ids.values(), (0,))
        return self.told(who, 78, 2, fetch_request(("g", "m"), epoch, topics, **fields))

    def codes(self, answer: Any) -> dict[str, tuple[int, ...]]:
        """Return the codes of topics, first the fetch's, then the acknowledgement's."""
        names = {topic_id: name for name, topic_id in self.ids.items()} | {NO_ID: "?"}
        return {
            names[topic.topic_id.bytes]: (
                one.error_code, *([one.acknowledge_error_code] if hasattr(one, "records") else [])
            )
            for topic in answer.responses
            for one in topic.partitions
        }  # fmt: skip


def test_records_of_a_topic_that_may_not_be_read() -> None:
    """They are neither handed out nor acknowledged, those of others are; rights may change."""
    talk = GroupTalk()
    talk.share()
    assert talk.fetched("alice", 0).error_code == 30
    talk.allow(creation(GROUP, "g", READ), creation(TOPIC, "ok", READ))
    answer = talk.fetched("alice", 0)
    assert talk.codes(answer) == {"ok": (0, 0), "no": (29, 0)}
    acquired = {
        topic.topic_id.bytes: topic.partitions[0].acquired_records for topic in answer.responses
    }
    assert len(acquired[talk.ids["ok"]]) == 1
    assert acquired[talk.ids["no"]] == ()
    said = {(topic_id, 0): [ACCEPTED] for topic_id in talk.ids.values()}
    assert talk.codes(talk.fetched("alice", 1, said=said)) == {"ok": (0, 0), "no": (29, 29)}

    talk.allow(creation(TOPIC, "no", READ))
    assert talk.codes(talk.fetched("alice", 2)) == {"no": (0, 0)}
    talk.as_user("admin", "DeleteAcls", 3, filters=[EVERY])
    talk.allow(creation(GROUP, "g", READ))
    assert talk.codes(talk.fetched("alice", 3)) == {"ok": (29, 0), "no": (29, 0)}


def test_acknowledgements() -> None:
    """Each topic's are refused or taken; who may not read the group does not get so far."""
    talk = GroupTalk()
    talk.share()
    talk.allow(creation(GROUP, "g", READ), creation(TOPIC, "ok", READ))
    talk.fetched("alice", 0)
    said = {(topic_id, 0): [ACCEPTED] for topic_id in (*talk.ids.values(), NO_ID)}
    request = acknowledge_request(("g", "m"), 1, said)
    assert talk.told("bob", 79, 2, request).error_code == 30
    answer = talk.told("alice", 79, 2, request)
    assert talk.codes(answer) == {"ok": (0,), "no": (29,), "?": (100,)}
    unsound = acknowledge_request(("g", "m"), 2, {(talk.ids["no"], 0): [(1, 0, (1,))]})
    assert talk.codes(talk.told("alice", 79, 2, unsound)) == {"no": (42,)}


def test_what_cannot_be_is_refused_first() -> None:
    """A request without a group, or with a member that cannot be, is the handler's to refuse."""
    talk = GroupTalk()
    for key, request in (
        (78, fetch_request((None, "m"), 0)), (79, acknowledge_request((None, "m"), 0, {})),
    ):  # fmt: skip
        assert talk.told("alice", key, 2, request).error_code == 42
    talk.allow(creation(GROUP, "g", READ))
    beat = {"group_id": "g", "member_epoch": 0, "subscribed_topic_names": ("no",)}
    assert talk.asked("alice", 76, member_id="m" * 37, **beat).error_code == 42
    assert talk.asked("alice", 76, member_id="m", **beat).error_code == 29


@pytest.mark.parametrize(("allowed", "code"), [((), 30), (("g",), 29), (("g", "ok", "no"), 0)])
def test_described_share_group(allowed: tuple[str, ...], code: int) -> None:
    """Who may not describe all that its members read is not told of a group."""
    talk = GroupTalk()
    talk.share()
    talk.allow(
        *(creation(GROUP if name == "g" else TOPIC, name, DESCRIBE) for name in allowed)
    )  # fmt: skip
    fields = {"group_ids": ("g",), "include_authorized_operations": 1}
    (group,) = talk.asked("alice", 77, **fields).groups
    assert group.error_code == code
    assert len(group.members) == (code == 0)
    if not code:
        assert group.authorized_operations == 1 << DESCRIBE


def starts(talk: GroupTalk, *groups: DescribeOffsetsGroup) -> tuple[DescribedOffsetsGroup, ...]:
    """Return what alice is told of where groups start."""
    found: tuple[DescribedOffsetsGroup, ...] = talk.asked("alice", 90, groups=groups).groups
    return found


def test_described_offsets() -> None:
    """The groups keep their order; topics that were named are refused, others left out."""
    talk = GroupTalk()
    talk.share()
    talk.allow(creation(GROUP, "g", DESCRIBE), creation(TOPIC, "ok", DESCRIBE))
    named = tuple(
        DescribeOffsetsTopic(topic_name=name, partitions=(0, 1)[:count])
        for name, count in (("no", 2), ("ok", 1))
    )
    found = starts(
        talk,
        DescribeOffsetsGroup(group_id="x", topics=None),
        DescribeOffsetsGroup(group_id="g", topics=None),
        DescribeOffsetsGroup(group_id="x", topics=named),
        DescribeOffsetsGroup(group_id="g", topics=named),
    )
    assert [(one.group_id, one.error_code) for one in found] == [
        ("x", 30), ("g", 0), ("x", 30), ("g", 0),
    ]  # fmt: skip
    assert [topic.topic_name for topic in found[1].topics] == ["ok"]
    told = [
        (topic.topic_name, one.partition_index, one.start_offset, one.lag, one.error_code)
        for topic in found[3].topics
        for one in topic.partitions
    ]
    assert told[1:] == [("no", 0, -1, -1, 29), ("no", 1, -1, -1, 29)]
    assert told[0][0] == "ok"
    assert told[0][4] == 0


def subtopology() -> Subtopology:
    """Return what wants `made` made."""
    changelog = StreamsTopic(name="made", partitions=0, replication_factor=0, topic_configs=())
    return Subtopology(
        subtopology_id="0", source_topics=("ok",), source_topic_regex=(),
        state_changelog_topics=(changelog,), repartition_sink_topics=(),
        repartition_source_topics=(), copartition_groups=(),
    )  # fmt: skip


def joined_streams(talk: GroupTalk) -> StreamsGroupHeartbeatResponse:
    """Return the answer to alice, who joins a streams group."""
    answer: StreamsGroupHeartbeatResponse = talk.asked(
        "alice", 88, group_id="s", member_id="m", member_epoch=0, rebalance_timeout_ms=1000,
        topology=Topology(epoch=0, subtopologies=(subtopology(),)), active_tasks=(),
        standby_tasks=(), warmup_tasks=(), process_id="p", client_tags=(),
    )  # fmt: skip
    return answer


@pytest.mark.parametrize(("kind", "name"), [(TOPIC, "made"), (CLUSTER, "kafka-cluster")])
def test_internal_topics_are_made_for_who_may_create_them(kind: ResourceType, name: str) -> None:
    """A member that may not is told so, and its group waits; it is asked anew each time."""
    talk = GroupTalk()
    assert joined_streams(talk).error_code == 30
    talk.allow(creation(GROUP, "s", READ), creation(TOPIC, "ok", DESCRIBE))
    assert joined_streams(talk).error_code == 29
    talk.allow(creation(TOPIC, "made", DESCRIBE))
    answer = joined_streams(talk)
    assert answer.status is not None
    (detail,) = [one.status_detail for one in answer.status if one.status_code == MISSING]
    assert detail.endswith("; Unauthorized to CREATE on topics made.")
    assert "made" not in talk.broker.store.topics_by_name
    talk.allow(creation(kind, name, CREATE))
    assert joined_streams(talk).error_code == 0
    assert "made" in talk.broker.store.topics_by_name


@pytest.mark.parametrize(("version", "code"), [(5, 42), (6, 31)])
def test_coordinators_of_share_partitions(version: int, code: int) -> None:
    """They are for brokers; a version that has none of them is refused whoever asks."""
    key = f"g:{'A' * 21}Q:0"
    answer = GroupTalk().as_user(
        "alice", "FindCoordinator", version, key_type=2, coordinator_keys=[key]
    )
    assert [(one["key"], one["error_code"]) for one in answer["coordinators"]] == [(key, code)]


def test_altered_and_forgotten_offsets() -> None:
    """Topics that may not be read stay as they are; the others go, if the group may be changed."""
    talk = GroupTalk()
    partitions = (AlterOffsetsPartition(partition_index=0, start_offset=7),)
    starts = tuple(AlterOffsetsTopic(topic_name=name, partitions=partitions) for name in talk.ids)
    gone = tuple(DeleteOffsetsTopic(topic_name=name) for name in talk.ids)
    assert talk.asked("alice", 91, group_id="g", topics=starts).error_code == 30
    assert talk.asked("alice", 92, group_id="g", topics=gone).error_code == 30

    talk.allow(creation(GROUP, "g", READ), creation(TOPIC, "ok", READ))
    answer = talk.asked("alice", 91, group_id="g", topics=starts)
    assert talk.codes(answer) == {"no": (29,), "ok": (0,)}
    assert known(talk) == {"ok": 7}
    assert talk.asked("alice", 92, group_id="g", topics=gone).error_code == 30

    assert not talk.asked("admin", 91, group_id="g", topics=starts).error_code
    talk.allow(creation(GROUP, "g", Operation.DELETE))
    answer = talk.asked("alice", 92, group_id="g", topics=gone)
    assert [(one.topic_name, one.error_code) for one in answer.responses] == [("no", 29), ("ok", 0)]
    assert known(talk) == {"no": 7}


def known(talk: GroupTalk) -> dict[str, int]:
    """Return where the group starts, by topic."""
    every = DescribeOffsetsGroup(group_id="g", topics=None)
    (group,) = talk.asked("admin", 90, groups=(every,)).groups
    return {topic.topic_name: topic.partitions[0].start_offset for topic in group.topics}


def test_a_pattern_finds_no_topics_that_one_may_not_describe() -> None:
    """Who reads by a pattern is given what the rules let it see."""
    talk = GroupTalk()
    talk.allow(creation(GROUP, "g", READ), creation(TOPIC, "ok", DESCRIBE))
    answer = talk.asked(
        "alice", 68, group_id="g", member_id="m", member_epoch=0, rebalance_timeout_ms=1000,
        subscribed_topic_regex=".*", topic_partitions=(),
    )  # fmt: skip
    assert [one.topic_id.bytes for one in answer.assignment.topic_partitions] == [talk.ids["ok"]]

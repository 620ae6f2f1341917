"""The same said to a real Kafka's share groups and to ours: the same answers, the same records."""

from __future__ import annotations

import base64
import uuid
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from logstore.compat.kafka.groups.share.messages import ShareGroupHeartbeatResponse
from logstore.compat.kafka.share_state.messages import StateToBegin
from logstore.segments.kafka.batch_walk import iterate_entries
from logstore.segments.kafka.internal_topics.record_types import (
    GROUP_RECORDS,
    SHARE_RECORDS,
    RecordTypes,
    decode_internal_record,
)
from logstore.segments.kafka.record import decode_records
from tests.compat.kafka.groups.questioner import SUBSCRIPTION, Line
from tests.interop.conftest import new_topic, start_real
from tests.interop.eventually import eventually
from tests.interop.group_wire import Numbered
from tests.interop.our_broker import OurBroker
from tests.interop.share_wire import ShareWire

pytestmark = pytest.mark.interop

SETTINGS: dict[str, object] = {
    "group.share.assignment.interval.ms": 0,
    "group.share.max.size": 3,
    "offsets.topic.num.partitions": 1,
    "share.coordinator.state.topic.num.partitions": 1,
    "share.coordinator.state.topic.min.isr": 1,
    "share.coordinator.snapshot.update.records.per.snapshot": 3,
}
FOUR, TWO = "four", "two"
INVALID: list[tuple[str, int, dict[str, Any]]] = [
    ("A", 0, {}),
    ("A", 0, {"subscribed_topic_names": ()}),
    ("A", 1, {}),
    ("A", -1, {}),
    ("A", -2, {}),
    ("A", 0, {"subscribed_topic_names": (FOUR,), "rack_id": ""}),
    ("", 0, {"subscribed_topic_names": (FOUR,)}),
    ("A" * 37, 0, {"subscribed_topic_names": (FOUR,)}),
    ("", -1, {}),
]
#: fields that are something else each time: of these only whether they are zero counts
VARYING = ("assignment_timestamp", "create_timestamp", "write_timestamp", "metadata_hash")
NOT_THERE = uuid.UUID(int=77)
SECONDS_MAX = 60
UNKNOWN_GROUP = 69


class Heard:
    """What a broker answers."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self.wire = ShareWire(bootstrap)
        self.line = Line(bootstrap)
        self.answers: list[Any] = []
        self._numbered = Numbered()

    def note(self, question: str, answer: Any) -> Any:
        """Note an answer, and return it."""
        self.answers.append((question, counted(self._numbered.plain(answer))))
        return answer

    def beat(self, member: str, epoch: int, **fields: Any) -> ShareGroupHeartbeatResponse:
        """Send a heartbeat and note the answer."""
        group = fields.pop("group", "g")
        answer = self.wire.share_beat(group, member, epoch, **fields)
        self.note(f"{member} in {epoch}", answer)
        return answer

    def describe(self, *groups: str) -> None:
        """Describe groups."""
        self.note(f"described {groups}", self.wire.describe_share(*groups))

    def starts(self, *question: Any) -> None:
        """Ask where a group starts."""
        self.note(f"starts {question}", self.wire.starts(*question))

    def ask(self, api: str, version: int, **fields: Any) -> None:
        """Ask what a library knows."""
        self.answers.append((api, self.line.ask(api, version, **fields)))

    def await_states(self, group: str, count: int) -> None:
        """Wait until the states of so many partitions have begun: a real broker answers before."""

        def begun() -> bool:
            topics = self.wire.starts(group).topics
            return sum(len(topic.partitions) for topic in topics) == count

        eventually(begun, what=f"{count} states", seconds=SECONDS_MAX)


def counted(value: Any) -> Any:
    """Return an answer with how many partitions in place of which: the topic's id says which."""
    if isinstance(value, dict):
        found = {name: counted(part) for name, part in value.items()}
        indexes = found.get("partitions")
        if isinstance(indexes, list) and all(isinstance(index, int) for index in indexes):
            found["partitions"] = len(indexes)
        return found
    return [counted(part) for part in value] if isinstance(value, list) else value


def invalid(heard: Heard) -> None:
    """Heartbeats that contradict themselves, and groups that are not there."""
    for member, epoch, fields in INVALID:
        heard.beat(member, epoch, **fields)
    heard.beat("A", 0, group="", subscribed_topic_names=(FOUR,))
    heard.describe("none", "")
    heard.starts("none")
    heard.starts("none", {FOUR: (2, 0), "no.such": (3,)})
    heard.starts("none", {FOUR: ()})
    heard.starts("none", {})
    heard.note("altered", heard.wire.alter("", {FOUR: {0: 0}}))
    heard.note("forgotten", heard.wire.forget("none", FOUR))
    heard.note("forgotten", heard.wire.forget("", FOUR))


def sharing(heard: Heard) -> None:
    """Members come, share what there is, subscribe to something else, and go."""
    heard.beat("A", 0, subscribed_topic_names=(FOUR,), rack_id="r")
    heard.await_states("g", 4)
    epoch = heard.beat("A", 2).member_epoch
    heard.describe("g")
    heard.beat("A", 2)
    heard.beat("A", 9)
    heard.beat("A", 1)
    heard.beat("Z", 2)
    heard.beat("B", 0, subscribed_topic_names=(FOUR,))
    heard.beat("A", epoch)
    heard.beat("C", 0, subscribed_topic_names=(TWO, FOUR))
    heard.beat("D", 0, subscribed_topic_names=(TWO,))
    heard.await_states("g", 6)
    for member in ("A", "B", "C"):
        heard.beat(member, 0, subscribed_topic_names=(FOUR,) if member != "C" else (TWO, FOUR))
    heard.describe("g", "none")
    heard.ask("ListGroups", 5, states_filter=["stable"], types_filter=["share"])
    heard.ask("DeleteGroups", 2, groups_names=["g"])
    heard.note("altered", heard.wire.alter("g", {FOUR: {0: 0}}))
    heard.note("forgotten", heard.wire.forget("g", FOUR))
    for member in ("A", "B", "C", "C"):
        heard.beat(member, -1)
    heard.describe("g")
    heard.starts("g")


def other_kinds(heard: Heard) -> None:
    """A share group is no other group, and another group no share group."""
    heard.beat("A", 0, group="o", subscribed_topic_names=(TWO,))
    heard.await_states("o", 2)
    heard.note("beat", heard.wire.beat("o", "A", 1))
    heard.note(
        "beat",
        heard.wire.beat(
            "o", "A", 0, rebalance_timeout_ms=9, topic_partitions=(), subscribed_topic_names=(TWO,)
        ),
    )
    heard.note("described", heard.wire.describe("o"))
    protocol = {"name": "range", "metadata": SUBSCRIPTION}
    heard.ask(
        "JoinGroup", 9, group_id="o", session_timeout_ms=10_000, rebalance_timeout_ms=9,
        member_id="", group_instance_id=None, protocol_type="consumer", protocols=[protocol],
        reason="",
    )  # fmt: skip
    heard.ask("Heartbeat", 4, group_id="o", generation_id=1, member_id="A", group_instance_id=None)
    heard.ask("DescribeGroups", 6, groups=["o"], include_authorized_operations=False)
    partition = {"partition_index": 0, "committed_offset": 1, "committed_metadata": ""}
    topic = {"name": TWO, "partitions": [partition]}
    commit = {"group_id": "o", "group_instance_id": None, "topics": [topic]}
    for version in (8, 9):
        heard.ask("OffsetCommit", version, generation_id_or_member_epoch=-1, member_id="", **commit)
    wanted = {"group_id": "o", "member_id": None, "member_epoch": -1}
    topics = [{"name": TWO, "partition_indexes": [0]}]
    heard.ask("OffsetFetch", 9, groups=[{**wanted, "topics": topics}], require_stable=False)
    topics = [{"name": TWO, "partitions": [{"partition_index": 0}]}]
    heard.ask("OffsetDelete", 0, group_id="o", topics=topics)
    heard.line.ask(
        "OffsetCommit", 8, generation_id_or_member_epoch=-1, member_id="",
        **commit | {"group_id": "classic"},
    )  # fmt: skip
    heard.beat("A", 0, group="classic", subscribed_topic_names=(TWO,))
    heard.beat("A", 1, group="classic")
    heard.beat("A", -1, group="classic")
    heard.describe("classic")
    heard.note("altered", heard.wire.alter("classic", {TWO: {0: 0}}))
    heard.note("forgotten", heard.wire.forget("classic", TWO))
    heard.beat("A", -1, group="o")
    heard.ask("DeleteGroups", 2, groups_names=["o"])
    heard.describe("o")


def administration(heard: Heard) -> None:
    """The starts of a group without members are moved, told and forgotten."""
    wire = heard.wire
    heard.note("altered", wire.alter("a", {FOUR: {0: 5, 1: 0, 4: 0}, "no.such": {0: 0, 1: 1}}))
    heard.await_states("a", 2)
    heard.starts("a")
    heard.starts("a", {FOUR: (3, 0), "no.such": (1,)}, 0)
    heard.note("altered", wire.alter("a", {FOUR: {0: 7}, TWO: {1: -1}}))
    heard.await_states("a", 3)
    heard.starts("a")
    heard.note("altered", wire.alter("a", {"no.such": {0: 0}}))
    heard.note("altered", wire.alter("a", {}))
    heard.describe("a")
    heard.note("forgotten", wire.forget("a", TWO, "no.such"))
    heard.note("forgotten", wire.forget("a", TWO))
    heard.note("forgotten", wire.forget("a"))
    heard.starts("a")
    heard.ask("DeleteGroups", 2, groups_names=["a", "none"])
    heard.starts("a")
    heard.ask("FindCoordinator", 6, key_type=2, coordinator_keys=["a", "a:b", "g:x:1", "::"])


def states(heard: Heard) -> None:
    """States begin, are written, fenced, merged, read and forgotten."""
    wire = heard.wire
    topic = topic_id(heard.line, TWO)

    def begin(*states: tuple[int, int, int], topic: uuid.UUID = topic) -> None:
        wanted = [
            StateToBegin(partition=index, state_epoch=epoch, start_offset=start)
            for index, epoch, start in states
        ]
        heard.note(f"begun {states}", wire.begin_state("s", topic, *wanted))

    def write(*batches: tuple[int, int, int, int], **fields: Any) -> None:
        heard.note(
            f"written {batches} {fields}", wire.write_state("s", topic, 0, *batches, **fields)
        )

    def read(leader_epoch: int, partition: int = 0) -> None:
        heard.note("read", wire.read_state("s", topic, partition, leader_epoch))

    read(1)
    write((0, 1, 0, 1))
    begin((0, 3, -1), (1, 3, 10), (2, 3, -1))
    begin((0, 2, -1), (0, 3, 4), (-1, 3, 4))
    begin((0, 1, 0), topic=NOT_THERE)
    begin()
    heard.note("read", wire.read_state("", topic, 0, 1))
    read(2)
    read(2)
    read(1)
    read(-1)
    write((4, 9, 0, 1), (6, 7, 2, 1), epochs=(3, 2), done=2)
    write((4, 4, 2, 1), epochs=(2, 2))
    write((4, 4, 2, 1), epochs=(3, 1))
    write((4, 4, 2, 1), epochs=(-1, -1), done=3)
    write((5, 12, 4, 2), (20, 21, 2, 1), epochs=(3, 5), start=5, done=9)
    read(2)
    write((13, 19, 4, 2), epochs=(3, 5), done=9)
    write((13, 14, 0, 3), epochs=(3, 5), start=11, done=9)
    read(-1)
    read(7)
    heard.note("summary", wire.summarise_state("s", topic, 0, 1, 2))
    heard.note("summary", wire.summarise_state("none", topic, 0, -1))
    begin((0, 5, 2))
    read(-1)
    heard.note("summary", wire.summarise_state("s", topic, 0))
    heard.note("deleted", wire.delete_state("s", topic, 0, 0, 9, -1))
    heard.note("deleted", wire.delete_state("s", NOT_THERE, 0))
    read(-1)


SCENES: list[Callable[[Heard], None]] = [invalid, sharing, other_kinds, administration, states]
Story = tuple[dict[str, list[Any]], dict[str, list[Any]]]


@pytest.fixture(scope="module")
def stories(tmp_path_factory: pytest.TempPathFactory) -> tuple[Story, Story]:
    """Return what ours and the real broker answered, scene by scene, and wrote, by topic."""
    directory: Path = tmp_path_factory.mktemp("same")
    ours = OurBroker(directory / "ours", SETTINGS).start()
    try:
        mine = told(ours)
    finally:
        ours.stop()
    real = start_real(directory / "real", settings=SETTINGS)
    try:
        theirs = told(real)
    finally:
        real.stop()
    return (mine, written(ours.data)), (theirs, written(real.data))


def told(broker: Any) -> dict[str, list[Any]]:
    """Return the answers of a broker, scene by scene."""
    new_topic(broker.bootstrap, FOUR, 4)
    new_topic(broker.bootstrap, TWO, 2)
    is_loaded(broker.bootstrap)
    answers: dict[str, list[Any]] = {}
    for scene in SCENES:
        heard = Heard(broker.bootstrap)
        with closing(heard.wire):
            scene(heard)
        answers[scene.__name__] = heard.answers
    return answers


def is_loaded(bootstrap: str) -> None:
    """Wait until a broker has the topics of groups; a real one makes them when it is asked."""
    line = Line(bootstrap)
    key = "g:AAAAAAAAAAAAAAAAAAAAAA:0"
    with closing(ShareWire(bootstrap)) as wire:

        def knows_nobody() -> bool:
            line.ask("FindCoordinator", 4, key_type=0, coordinator_keys=["g"])
            line.ask("FindCoordinator", 6, key_type=2, coordinator_keys=[key])
            (state,) = wire.delete_state("g", NOT_THERE, 0).results
            is_there = state.partitions[0].error_code == 3
            return is_there and wire.share_beat("g", "A", 1).error_code == UNKNOWN_GROUP

        eventually(knows_nobody, what="the coordinators", seconds=SECONDS_MAX)


def topic_id(line: Line, name: str) -> uuid.UUID:
    """Return the id of a topic."""
    answer = line.ask(
        "Metadata", 12, topics=[{"name": name, "topic_id": uuid.UUID(int=0)}],
        allow_auto_topic_creation=False, include_topic_authorized_operations=False,
    )  # fmt: skip
    found = answer["topics"][0]["topic_id"]
    return uuid.UUID(str(found))


def written(data: Path) -> dict[str, list[Any]]:
    """
    Return what a broker has written about share groups, by group, without times and hashes.

    States are told topic by topic: which of two comes first is a matter of their ids.
    """
    numbered, found = Numbered(), dict[str, list[Any]]()
    for path in sorted(data.glob("[!_]*-0/partition.metadata")):
        topic_id = path.read_text().split()[-1]
        numbered.plain(uuid.UUID(bytes=base64.urlsafe_b64decode(topic_id + "==")))
    kinds: dict[str, RecordTypes] = {
        "__consumer_offsets": {key: it for key, it in GROUP_RECORDS.items() if 10 <= key <= 15},
        "__share_group_state": SHARE_RECORDS,
    }
    for topic, types in kinds.items():
        for path in sorted((data / f"{topic}-0").glob("*.log")):
            for batch in iterate_entries(memoryview(path.read_bytes())):
                for record in decode_records(batch.data):
                    assert record.key is not None
                    if int.from_bytes(record.key[:2], "big") not in types:
                        continue
                    told = decode_internal_record(types, record.key, record.value)
                    key, value = numbered.plain(told.key), counted(numbered.plain(told.value))
                    for name in VARYING:
                        if value is not None and name in value:
                            value[name] = bool(value[name])
                    about = f"{topic} {key['group_id']} {key.get('topic_id', '')}"
                    found.setdefault(about, []).append((told.record_type, key, value))
    return found


@pytest.mark.parametrize("scene", [scene.__name__ for scene in SCENES])
def test_the_same_answers(scene: str, stories: tuple[Story, Story]) -> None:
    """Whatever is said, both brokers say the same."""
    (ours, _), (theirs, _) = stories
    assert len(ours[scene]) == len(theirs[scene]) > 3
    for mine, other in zip(ours[scene], theirs[scene], strict=True):
        assert mine == other


def test_the_same_records(stories: tuple[Story, Story]) -> None:
    """Both write the same records about groups and about states, in the same order."""
    (_, ours), (_, theirs) = stories
    assert ours.keys() == theirs.keys()
    assert len(ours) > 3
    for about, mine in ours.items():
        for record, other in zip(mine, theirs[about], strict=False):
            assert record == other, about
        assert len(mine) == len(theirs[about]), about

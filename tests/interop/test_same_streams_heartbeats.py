"""The same heartbeats of streams groups to a real Kafka and to ours: the same answers."""

from __future__ import annotations

import random
from collections.abc import Callable, Generator
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from typing import Any

import attrs
import pytest
from confluent_kafka.admin import AdminClient

from logstore.compat import TestBroker
from logstore.compat.kafka.groups.streams.messages import StreamsGroupHeartbeatResponse
from logstore.segments.kafka.internal_topics.schema import Message
from logstore.segments.kafka.internal_topics.streams_group import Endpoint, KeyValue
from tests.compat.kafka.groups.questioner import Line, commit_fields, fetch_fields, join_fields
from tests.interop.conftest import led_partitions, new_topic, start_real
from tests.interop.eventually import eventually
from tests.interop.group_wire import change_group
from tests.interop.streams_wire import (
    StreamsWire,
    internal,
    joining,
    owned,
    subtopology,
    tasks,
    together,
    topology,
)
from tests.interop.test_same_heartbeats import is_loaded

pytestmark = pytest.mark.interop

SETTINGS: dict[str, object] = {
    "group.streams.assignment.interval.ms": 0,
    "group.streams.initial.rebalance.delay.ms": 0,
    "group.streams.max.size": 5,
    "offsets.topic.num.partitions": 1,
}
FOUR, TWO, COPIED = "four", "two", "copied"
SECONDS_MAX = 60
#: a topology of one subtopology without internal topics, and one with state, whose topic is there
PLAIN = topology(subtopology("0", FOUR))
STATEFUL = topology(
    subtopology("0", FOUR), subtopology("1", TWO, state_changelog_topics=(internal(COPIED),))
)
ENDPOINT, OTHER_ENDPOINT = Endpoint(host="one", port=1), Endpoint(host="two", port=65535)
STATUSES_OF_CREATION = {3}
STEPS = 250


class Heard:
    """What a broker answers, so that it compares."""

    def __init__(self, wire: StreamsWire, bootstrap: str) -> None:
        self.wire = wire
        self.bootstrap = bootstrap
        self.answers: list[Any] = []

    def live(self, member: str, epoch: int, **fields: Any) -> StreamsGroupHeartbeatResponse:
        """Send a heartbeat and note the answer."""
        answer = self.wire.live(fields.pop("group", "g"), member, epoch, **fields)
        self.answers.append((member, epoch, plain(answer)))
        return answer

    def describe(self, group: str) -> None:
        """Ask for a group once the broker shows what it has answered, and note it."""

        def is_shown() -> list[Any]:
            seen = [self.wire.describe_streams(group) for _ in range(3)]
            return [seen[0]] if seen[0] == seen[2] else []

        (found,) = eventually(is_shown, what="a group at rest", seconds=SECONDS_MAX)
        self.answers.append(("described", group, plain(found[0])))

    def ask(self, api: str, version: int, **fields: Any) -> None:
        """Ask something else, and note the answer; groups are listed in no order."""
        answer = Line(self.bootstrap).ask(api, version, **fields)
        if api == "ListGroups":
            answer["groups"].sort(key=str)
        self.answers.append((api, answer))


def plain(value: Any) -> Any:
    """Return a message without what a broker is free to order as it likes."""
    if isinstance(value, Message):
        return {
            field.name: plain(getattr(value, field.name)) for field in attrs.fields(type(value))
        }
    if isinstance(value, tuple):
        parts: tuple[Any, ...] = value
        return sorted((plain(part) for part in parts), key=str)
    return value


def invalid(heard: Heard) -> None:
    """Heartbeats that contradict themselves, and groups that are not there."""
    full = joining(PLAIN)
    for epoch in (1, -1, -2, -3):
        heard.live("A", epoch)
    for changes in (
        {"instance_id": "i"}, {"instance_id": ""}, {"rack_id": ""}, {"rack_id": " "},
        {"group": ""}, {"rebalance_timeout_ms": -1}, {"topology": None},
        {"active_tasks": None}, {"standby_tasks": tasks(s0=[1])}, {"warmup_tasks": tasks(s0=[1])},
        {"task_offsets": ()}, {"task_end_offsets": ()},
    ):  # fmt: skip
        heard.live("A", 0, **full | changes)
    heard.live("", 0, **full)
    heard.live("A", 1, active_tasks=())
    heard.live("A", 1, topology=PLAIN)
    heard.live("A", 1, instance_id="i")
    heard.live("A", -2, instance_id="i")
    heard.describe("none")
    heard.describe("")


def impossible(heard: Heard) -> None:
    """Topologies that cannot be."""
    copied = internal(COPIED, 3)
    joined = {"copartition_groups": (together([0, 7]),)}
    for number, subtopologies in enumerate((
        [subtopology("0", FOUR, source_topic_regex=("f.*",))],
        [subtopology("0", FOUR, state_changelog_topics=(copied,))],
        [subtopology("0", "__consumer_offsets", TWO)],
        [subtopology("0", "no good", "x" * 250)],
        [subtopology("0", FOUR), subtopology("0", TWO)],
        [subtopology("0")],
        [],
        [subtopology("0", FOUR, repartition_source_topics=(internal("never"),))],
        [subtopology("0", repartition_source_topics=(internal("round"),),
                     repartition_sink_topics=("round",))],
        [subtopology("0", FOUR, **joined)],
        [subtopology("0", FOUR, state_changelog_topics=(internal("a"), internal("a")))],
    )):  # fmt: skip
        heard.live("A", 0, group=f"impossible-{number}", **joining(topology(*subtopologies)))
    heard.live("A", 0, **joining(topology(subtopology("0", FOUR), epoch=-1)))
    tags = (KeyValue(key="a", value="1"), KeyValue(key="a", value="2"))
    heard.live("A", 0, **joining(PLAIN, client_tags=tags))


def unfit(heard: Heard) -> None:
    """Topics are missing, or have the wrong number of partitions: no error, but a status."""
    missing = topology(subtopology("0", FOUR, "b", "a"), subtopology("1", "d", "c"))
    heard.live("A", 0, group="missing", **joining(missing))
    heard.live("A", 1, group="missing")
    heard.describe("missing")
    heard.live("A", 0, group="e", **joining(missing, user_endpoint=ENDPOINT))
    joined = {"copartition_groups": (together([0, 1]),)}
    apart = topology(subtopology("0", FOUR, TWO, **joined))
    heard.live("A", 0, group="apart", **joining(apart))
    heard.live("A", 1, group="apart", **owned())
    heard.describe("apart")
    fixed = {"repartition_source_topics": (internal("r", 3),)}
    mixed = {"copartition_groups": (together([0], [0]),), **fixed}
    heard.live("A", 0, group="mixed", **joining(topology(subtopology("0", FOUR, **mixed))))
    unequal = subtopology(
        "0", copartition_groups=(together((), [0, 1]),),
        repartition_source_topics=(internal("r", 3), internal("s", 2)),
    )  # fmt: skip
    heard.live("A", 0, group="unequal", **joining(topology(unequal)))
    wrong = subtopology("0", FOUR, state_changelog_topics=(internal(COPIED),))
    heard.live("A", 0, group="wrong", **joining(topology(wrong)))
    heard.live("B", 0, group="wrong", **joining(topology(wrong)))
    heard.live("A", -1, group="wrong")
    heard.describe("wrong")


def moving(heard: Heard) -> None:
    """Tasks move from one process to another; epochs that are right, old and wrong."""
    heard.live("A", 0, **joining(PLAIN, "p1"))
    heard.live("A", 2)
    heard.live("A", 5)
    heard.live("Z", 2)
    heard.live("B", 0, **joining(PLAIN, "p2"))
    heard.live("B", 3)
    heard.live("A", 2)
    heard.live("A", 2, **owned(tasks(s0=[0, 1, 2, 3])))
    heard.live("A", 2, **owned(tasks(s0=[0, 1, 9])))
    heard.live("A", 2, **owned(tasks(s0=[0, 1], s7=[0])))
    heard.live("A", 2, **owned(tasks(s0=[0, 1])))
    heard.live("B", 3)
    heard.live("A", 2, **owned(tasks(s0=[0, 1])))
    heard.live("A", 2)
    heard.live("A", 3, rack_id="r", **owned(tasks(s0=[0, 1])))
    heard.describe("g")
    heard.live("B", 0, **joining(PLAIN, "p2"))
    heard.live("C", 0, **joining(PLAIN, "p1"))
    for member in ("D", "E", "F"):
        heard.live(member, 0, **joining(PLAIN, "p1"))
    heard.live("A", 0, **joining(PLAIN, "p1"))
    heard.describe("g")
    for member in ("A", "B", "C", "D", "E"):
        heard.live(member, -1)
    heard.live("A", -1)
    heard.describe("g")


def copies(heard: Heard) -> None:
    """A group with standbys: never two of a task in one process."""
    change_group(heard.bootstrap, "s", "streams.num.standby.replicas=1")
    heard.live("A", 0, group="s", **joining(STATEFUL, "p1"))
    heard.describe("s")
    heard.live("B", 0, group="s", **joining(STATEFUL, "p2"))
    heard.live("A", 2, group="s", **owned(tasks(s0=[0, 1, 2, 3], s1=[0, 1])))
    heard.describe("s")
    heard.live("A", 2, group="s", **owned(tasks(s0=[0, 1], s1=[0])))
    heard.live("B", 3, group="s")
    heard.live("B", 3, group="s", **owned(tasks(s0=[2, 3], s1=[1])))
    heard.live("A", 3, group="s")
    heard.describe("s")
    heard.live("C", 0, group="s", **joining(STATEFUL, "p2"))
    heard.describe("s")
    heard.live("B", -1, group="s")
    heard.live("C", 5, group="s", **owned())
    heard.describe("s")
    change_group(heard.bootstrap, "s", "streams.num.standby.replicas=0")
    heard.live("A", 3, group="s")
    heard.describe("s")


def topologies(heard: Heard) -> None:
    """A member that is behind is told so; another topology is refused."""
    newer, older = topology(subtopology("0", FOUR), epoch=3), topology(subtopology("0", TWO))
    heard.live("A", 0, group="t", **joining(newer))
    heard.live("B", 0, group="t", **joining(older))
    heard.live("B", 3, group="t")
    heard.live("C", 0, group="t", **joining(topology(subtopology("0", TWO), epoch=3)))
    heard.live("C", 0, group="t", **joining(topology(subtopology("0", FOUR), epoch=4)))
    heard.describe("t")


def endpoints(heard: Heard) -> None:
    """Where tasks can be asked for is told whenever that has changed."""
    heard.live("A", 0, group="e2", **joining(STATEFUL, "p1", user_endpoint=ENDPOINT))
    heard.live("A", 2, group="e2")
    heard.live("A", 2, group="e2", endpoint_information_epoch=0)
    heard.live("B", 0, group="e2", **joining(STATEFUL, "p2", user_endpoint=OTHER_ENDPOINT))
    heard.live("A", 2, group="e2", endpoint_information_epoch=1)
    mine = owned(tasks(s0=[0, 1], s1=[0]))
    heard.live("A", 2, group="e2", endpoint_information_epoch=1, **mine)
    heard.live("A", 3, group="e2", endpoint_information_epoch=9, user_endpoint=OTHER_ENDPOINT)
    heard.describe("e2")


def shutdown(heard: Heard) -> None:
    """Whoever asks for it, everybody is told to shut down, until the group is empty."""
    heard.live("A", 0, group="d", shutdown_application=1, **joining(PLAIN, "p1"))
    heard.live("A", 2, group="d")
    heard.live("A", 2, group="d", shutdown_application=1)
    heard.live("B", 0, group="d", **joining(PLAIN, "p2"))
    heard.live("B", -1, group="d", shutdown_application=1)
    heard.live("A", 4, group="d")
    heard.live("A", -1, group="d")
    heard.live("A", 0, group="d", **joining(PLAIN, "p1"))
    heard.live("B", 0, group="d", shutdown_application=1, **joining(PLAIN, "p2"))
    heard.live("A", 6, group="d")


def delayed(heard: Heard) -> None:
    """A new group waits for its members, and between two assignments passes some time."""
    change_group(heard.bootstrap, "w", "streams.initial.rebalance.delay.ms=600000")
    heard.live("A", 0, group="w", **joining(PLAIN, "p1"))
    heard.live("B", 0, group="w", **joining(PLAIN, "p2"))
    heard.live("A", 1, group="w")
    heard.describe("w")
    change_group(heard.bootstrap, "i", "streams.assignment.interval.ms=15000")
    heard.live("A", 0, group="i", **joining(PLAIN, "p1"))
    heard.live("B", 0, group="i", **joining(PLAIN, "p2"))
    heard.live("A", 2, group="i")
    heard.describe("i")


def created(heard: Heard) -> None:
    """Internal topics are made, those that cannot be are told of."""
    full = topology(
        subtopology("0", FOUR, repartition_sink_topics=("c-repartition",)),
        subtopology(
            "1", repartition_source_topics=(internal("c-repartition", retention_ms="-1"),),
            state_changelog_topics=(internal("c-changelog", cleanup_policy="compact"),),
        ),
    )  # fmt: skip
    heard.live("A", 0, group="c", **joining(full))
    admin = AdminClient({"bootstrap.servers": heard.bootstrap})
    for name in ("c-repartition", "c-changelog"):
        eventually(partial(led_partitions, admin, name), what=name)
    eventually(lambda: not heard.wire.live("c", "A", 2).status, what="tasks", seconds=SECONDS_MAX)
    (group,) = heard.wire.describe_streams("c")
    heard.answers.append((plain(group.topology), plain(group.members[0].assignment)))
    bad = internal("c-bad", cleanup_policy="nonsense")
    told = topology(subtopology("0", FOUR, state_changelog_topics=(bad,)))
    first = heard.live("A", 0, group="bad", **joining(told))
    assert {one.status_code for one in first.status or ()} == STATUSES_OF_CREATION

    def is_told() -> bool:
        status = heard.wire.live("bad", "A", first.member_epoch).status or ()
        return any("Creation failed: c-bad (" in one.status_detail for one in status)

    eventually(is_told, what="what keeps the topic from being made", seconds=SECONDS_MAX)


def offsets(heard: Heard) -> None:
    """Members commit and ask in their epoch, or for what they were given before."""
    heard.live("A", 0, group="o", **joining(PLAIN, "p1"))
    heard.live("B", 0, group="o", **joining(PLAIN, "p2"))
    heard.live("A", 2, group="o", **owned(tasks(s0=[0, 1, 2, 3])))
    heard.live("A", 2, group="o", **owned(tasks(s0=[0, 1])))
    for member, epoch, version in (
        ("A", 3, 9), ("A", 2, 9), ("A", 1, 9), ("A", 4, 9), ("A", 3, 8), ("Z", 3, 9), ("", -1, 9),
    ):  # fmt: skip
        commit = commit_fields(
            "o", 0, 3, name=FOUR, member_id=member, generation_id_or_member_epoch=epoch
        )
        heard.ask("OffsetCommit", version, **commit)
    wanted = [{"name": FOUR, "partition_indexes": [0, 3]}]
    for who in ({"member_id": "A", "member_epoch": 3}, {"member_id": "A", "member_epoch": 2}, {}):
        fields = fetch_fields(9, "o", wanted)
        fields["groups"][0] |= who
        heard.ask("OffsetFetch", 9, **fields)
    topics = [{"name": name, "partitions": [{"partition_index": 0}]} for name in (FOUR, TWO)]
    heard.ask("OffsetDelete", 0, group_id="o", topics=topics)


def wandering(heard: Heard) -> None:
    """Members come, go, give back, are late and forget to say what they have, in any order."""
    rng = random.Random(4310)
    told = topology(
        subtopology("0", FOUR), subtopology("1", TWO, state_changelog_topics=(internal(COPIED),)),
        subtopology("2", FOUR, TWO),
    )  # fmt: skip
    for standbys in (0, 1, 2):
        group = f"wanders-{standbys}"
        change_group(heard.bootstrap, group, f"streams.num.standby.replicas={standbys}")
        epochs: dict[str, int] = {}
        has: dict[str, dict[str, Any]] = {}
        for _ in range(STEPS):
            member = rng.choice("ABCDE")
            process = f"p{ord(member) % 3}"
            chance = rng.random()
            if member not in epochs or chance < 0.03:
                answer = heard.live(member, 0, group=group, **joining(told, process))
            elif chance < 0.1:
                heard.live(member, -1, group=group)
                del epochs[member]
                continue
            else:
                says = has[member] if rng.random() < 0.8 else {}
                stale = rng.random() < 0.05
                answer = heard.live(member, epochs[member] - stale, group=group, **says)
            if answer.error_code:
                continue
            epochs[member] = answer.member_epoch
            if answer.active_tasks is not None:
                has[member] = owned(answer.active_tasks, answer.standby_tasks or ())
        heard.describe(group)


def others(heard: Heard) -> None:
    """What groups of different kinds say of each other."""
    heard.live("A", 0, group="k", **joining(PLAIN))
    full: dict[str, Any] = {
        "rebalance_timeout_ms": 1000, "topic_partitions": (), "subscribed_topic_names": (FOUR,),
    }  # fmt: skip
    for epoch in (0, 1):
        heard.answers.append(plain(heard.wire.beat("k", "A", epoch, **full)))
    heard.answers.append(plain(heard.wire.describe("k")[0]))
    heard.ask("JoinGroup", 5, **join_fields("k"))
    heard.ask("DescribeGroups", 5, groups=["k"])
    heard.ask("Heartbeat", 3, group_id="k", member_id="A", generation_id=1)
    heard.ask("LeaveGroup", 3, group_id="k", members=[{"member_id": "A"}])
    heard.ask("DeleteGroups", 1, groups_names=["k"])
    for states, types in ((["stable"], ["streams"]), (["Not_Ready"], []), (["NotReady"], [])):
        heard.ask("ListGroups", 5, states_filter=states, types_filter=types)
    heard.live("A", -1, group="k")
    heard.ask("OffsetCommit", 9, **commit_fields("k", 0, name=FOUR))
    heard.ask("DeleteGroups", 1, groups_names=["k"])
    heard.describe("k")
    assert heard.wire.beat("c848", "A", 0, **full).error_code == 0
    heard.live("A", 0, group="c848", **joining(PLAIN))
    heard.live("A", 1, group="c848")
    heard.describe("c848")
    heard.ask("OffsetCommit", 8, **commit_fields("simple", 0, name=FOUR))
    heard.live("A", 1, group="simple")
    heard.live("A", 0, group="simple", **joining(PLAIN))
    heard.ask("OffsetFetch", 7, **fetch_fields(7, "simple", None))
    heard.describe("simple")


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Generator[tuple[str, str]]:
    """Return the addresses of our broker and of a real one, with the same topics."""
    directory: Path = tmp_path_factory.mktemp("same")
    settings = {name: str(value) for name, value in SETTINGS.items()}
    with ExitStack() as stack:
        ours = stack.enter_context(TestBroker(settings=settings))
        real = start_real(directory, settings=SETTINGS)
        stack.callback(real.stop)
        for bootstrap in (ours.bootstrap, real.bootstrap):
            for name, count in ((FOUR, 4), (TWO, 2), (COPIED, 2)):
                new_topic(bootstrap, name, count)
            is_loaded(bootstrap)
        yield ours.bootstrap, real.bootstrap


SCENES = [
    invalid, impossible, unfit, moving, copies, topologies, endpoints, shutdown, delayed, created,
    wandering, offsets, others,
]  # fmt: skip


@pytest.mark.parametrize("scene", SCENES)
def test_the_same_answers(scene: Callable[[Heard], None], both: tuple[str, str]) -> None:
    """Whatever a member says, both brokers say the same."""
    answers: list[list[Any]] = []
    for bootstrap in both:
        with closing(StreamsWire(bootstrap)) as wire:
            heard = Heard(wire, bootstrap)
            scene(heard)
        answers.append(heard.answers)
    ours, theirs = answers
    assert len(ours) == len(theirs) > 2
    for number, (mine, other) in enumerate(zip(ours, theirs, strict=True)):
        assert mine == other, number

"""The same heartbeats to a real Kafka and to ours: the same answers, and groups described alike."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Generator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from logstore.compat import TestBroker
from logstore.compat.kafka.groups.consumer.messages import ConsumerGroupHeartbeatResponse
from logstore.segments.kafka.internal_topics.consumer_group import TopicPartition
from tests.compat.kafka.groups.questioner import Line
from tests.interop.conftest import new_topic, start_real
from tests.interop.eventually import eventually
from tests.interop.group_wire import GroupWire, Numbered, change_group

pytestmark = pytest.mark.interop

#: partitions are assigned once a second otherwise
SETTINGS: dict[str, object] = {
    "group.consumer.assignment.interval.ms": 0,
    "offsets.topic.num.partitions": 1,
}
FOUR, TWO = "four", "two"
FULL: dict[str, Any] = {
    "rebalance_timeout_ms": 60_000,
    "topic_partitions": (),
    "subscribed_topic_names": (FOUR,),
}
INVALID: list[tuple[int, dict[str, Any]]] = [
    (1, {}),
    (-1, {}),
    (-2, {}),
    (-3, {}),
    (0, FULL | {"rebalance_timeout_ms": -1}),
    (0, FULL | {"topic_partitions": None}),
    (0, FULL | {"subscribed_topic_names": None}),
    (0, FULL | {"server_assignor": "x"}),
    (0, FULL | {"instance_id": ""}),
    (0, FULL | {"rack_id": ""}),
    (0, FULL | {"group_id": ""}),
    (0, FULL | {"member_id": ""}),
]
GROUP_ID_NOT_FOUND = 69
SECONDS_MAX = 60


class Heard:
    """What a broker answers."""

    def __init__(self, bootstrap: str, wire: GroupWire) -> None:
        self.bootstrap = bootstrap
        self.wire = wire
        self.answers: list[Any] = []
        self._numbered = Numbered()

    def beat(self, member: str, epoch: int, **fields: Any) -> ConsumerGroupHeartbeatResponse:
        """Send a heartbeat and note the answer."""
        answer = self.wire.beat(fields.pop("group", "g"), member, epoch, **fields)
        self.answers.append((member, epoch, self._numbered.plain(answer)))
        return answer

    def describe(self, group: str = "g") -> None:
        """Ask for a group once the broker shows what it has answered, and note it."""

        def is_shown() -> list[Any]:
            seen = [self.wire.describe(group) for _ in range(3)]
            return [seen[0]] if seen[0] == seen[2] else []

        (found,) = eventually(is_shown, what="a group at rest", seconds=SECONDS_MAX)
        self.answers.append(("described", group, self._numbered.plain(found[0])))


def topic_of(answer: ConsumerGroupHeartbeatResponse) -> uuid.UUID:
    """Return the topic of the first partitions that a member was given."""
    assert answer.assignment is not None
    return answer.assignment.topic_partitions[0].topic_id


def invalid(heard: Heard) -> None:
    """Heartbeats that contradict themselves, and groups that are not there."""
    for epoch, fields in INVALID:
        heard.beat("A", epoch, **fields)
    heard.describe("none")


def moving(heard: Heard) -> None:
    """Partitions move from one member to another; epochs that are right, old and wrong."""
    topic = topic_of(heard.beat("A", 0, **FULL))
    heard.beat("A", 2)
    heard.beat("A", 5)
    heard.beat("Z", 2)
    heard.beat("B", 0, **FULL)
    heard.beat("B", 3)
    heard.beat("A", 2)
    for indexes in ((0, 1, 2, 3), (0, 1)):
        heard.beat("A", 2, topic_partitions=(TopicPartition(topic_id=topic, partitions=indexes),))
    heard.beat("B", 3)
    mine = (TopicPartition(topic_id=topic, partitions=(0, 1)),)
    heard.beat("A", 2, topic_partitions=mine)
    heard.beat("A", 2)
    heard.beat("A", 3, **FULL | {"topic_partitions": mine})
    heard.describe()
    heard.beat("A", 3, subscribed_topic_names=(TWO,))
    heard.beat("A", 3, topic_partitions=())
    heard.beat("B", 3, topic_partitions=())
    heard.beat("A", -1)
    heard.beat("A", -1)
    heard.describe()


def static(heard: Heard) -> None:
    """An instance joins, goes for a while, comes back under another id, and leaves."""
    instance = {"group": "s", "instance_id": "i"}
    heard.beat("C", 0, **FULL | instance)
    heard.beat("D", 0, **FULL | instance)
    heard.beat("D", 2, **instance)
    heard.beat("C", -2, **instance)
    heard.describe("s")
    heard.beat("D", 0, **FULL | instance)
    heard.beat("C", 2, **instance)
    heard.beat("C", 2, group="s")
    heard.beat("D", 2, group="s", instance_id="j")
    heard.describe("s")
    heard.beat("C", -1, **instance)
    heard.beat("D", -1, **instance)
    heard.describe("s")


def ranges(heard: Heard) -> None:
    """Members ask for runs of partitions of both topics."""
    wants = FULL | {"subscribed_topic_names": (FOUR, TWO), "server_assignor": "range"}
    for member in ("E", "F", "G"):
        heard.beat(member, 0, group="r", **wants)
    heard.describe("r")


def paused(heard: Heard) -> None:
    """Between two assignments passes some time: who comes in it waits, who wants less has less."""
    change_group(heard.bootstrap, "p", "consumer.assignment.interval.ms=15000")
    topic = topic_of(heard.beat("A", 0, group="p", **FULL))
    owned = {"topic_partitions": (TopicPartition(topic_id=topic, partitions=(0, 1, 2, 3)),)}
    heard.beat("B", 0, group="p", **FULL)
    heard.beat("A", 2, group="p", **owned)
    heard.beat("B", 2, group="p", topic_partitions=())
    heard.describe("p")
    heard.beat("A", 2, group="p", subscribed_topic_names=(TWO,))
    heard.beat("A", 2, group="p", topic_partitions=())
    heard.beat("A", 2, group="p")
    heard.describe("p")
    heard.beat("B", -1, group="p")
    heard.describe("p")
    change_group(heard.bootstrap, "p", "consumer.assignment.interval.ms=0")
    heard.beat("A", 2, group="p")
    heard.describe("p")


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
            new_topic(bootstrap, FOUR, 4)
            new_topic(bootstrap, TWO, 2)
            is_loaded(bootstrap)
        yield ours.bootstrap, real.bootstrap


def is_loaded(bootstrap: str) -> None:
    """Wait until a broker has the topic of groups; a real one makes it when it is asked for."""
    line = Line(bootstrap)
    with closing(GroupWire(bootstrap)) as wire:

        def knows_nobody() -> bool:
            line.ask("FindCoordinator", 4, key_type=0, coordinator_keys=["g"])
            return wire.beat("g", "A", 1).error_code == GROUP_ID_NOT_FOUND

        eventually(knows_nobody, what="a coordinator", seconds=SECONDS_MAX)


@pytest.mark.parametrize("scene", [invalid, moving, static, ranges, paused])
def test_the_same_answers(scene: Callable[[Heard], None], both: tuple[str, str]) -> None:
    """Whatever a member says, both brokers say the same."""
    answers: list[list[Any]] = []
    for bootstrap in both:
        with closing(GroupWire(bootstrap)) as wire:
            heard = Heard(bootstrap, wire)
            scene(heard)
        answers.append(heard.answers)
    ours, theirs = answers
    assert len(ours) == len(theirs) > 3
    for mine, other in zip(ours, theirs, strict=True):
        assert mine == other

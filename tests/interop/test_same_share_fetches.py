"""The same ShareFetch and ShareAcknowledge said to a real Kafka and to ours: the same answers."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import attrs
import pytest

from logstore.compat.kafka.share_reads.messages import (
    ShareAcknowledgeResponse,
    ShareFetchResponse,
)
from tests.compat.kafka.batches import batch
from tests.compat.kafka.groups.questioner import Line
from tests.compat.kafka.peer import produce_fields
from tests.compat.kafka.share_reads.share_requests import (
    ACCEPT,
    ACKNOWLEDGE,
    FETCH,
    GAP,
    REJECT,
    RELEASE,
    RENEW,
    Asker,
    acknowledge_request,
    fetch_request,
)
from tests.interop.conftest import new_topic, start_real
from tests.interop.eventually import eventually
from tests.interop.group_wire import Numbered
from tests.interop.our_broker import OurBroker
from tests.interop.share_wire import ShareWire
from tests.interop.test_share_consumers import SHARE_SETTINGS

pytestmark = pytest.mark.interop

SETTINGS = SHARE_SETTINGS | {
    "group.share.assignment.interval.ms": 0,
    "group.share.max.size": 10,
    "group.share.max.share.sessions": 10,
}
GROUP_RESOURCE, SET = 32, 0
NOT_THERE = uuid.UUID(int=77).bytes
NOTHING = {"min_bytes": 0, "max_bytes": 0, "max_records": 0, "max_wait_ms": 0, "is_renew_ack": 1}


class Heard:
    """A member of a share group at one broker, and what it is answered."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.bootstrap = bootstrap
        self.wire = ShareWire(bootstrap)
        self.asker: Asker = (f"group-{topic}", f"member-{topic}")
        self.topic = topic
        self.answers: list[Any] = []
        self._numbered = Numbered()
        new_topic(bootstrap, topic, 2)
        try:
            self.topic_id = self._join()
        except BaseException:
            self.close()
            raise
        self.wanted = {self.topic_id: [0, 1]}

    def close(self) -> None:
        """Hang up."""
        self.wire.close()

    def _join(self) -> bytes:
        """Join the group; return the topic's id once all states have begun."""
        group, member = self.asker
        assert group is not None
        assert member is not None
        line = Line(self.bootstrap)
        line.ask("FindCoordinator", 4, key_type=0, coordinator_keys=[group])

        def has_joined() -> bool:
            answer = self.wire.share_beat(group, member, 0, subscribed_topic_names=(self.topic,))
            return answer.error_code == 0

        eventually(has_joined, what="a coordinator")

        def begun() -> bool:
            has_joined()
            return [len(topic.partitions) for topic in self.wire.starts(group).topics] == [2]

        eventually(begun, what="states")
        asked = {"topics": [{"topic_id": uuid.UUID(int=0), "name": self.topic}]}
        (topic,) = line.ask("Metadata", 12, **asked)["topics"]
        found: bytes = topic["topic_id"].bytes
        return found

    def read_from_the_start(self) -> None:
        """Let the group begin with the first record."""
        line, name = Line(self.bootstrap), "share.auto.offset.reset"
        resource = {"resource_type": GROUP_RESOURCE, "resource_name": self.asker[0]}
        change = {"name": name, "config_operation": SET, "value": "earliest"}
        line.ask(
            "IncrementalAlterConfigs", 1,
            resources=[resource | {"configs": [change]}], validate_only=False,
        )  # fmt: skip
        asked = [resource | {"configuration_keys": [name]}]

        def is_known() -> bool:
            answer = line.ask("DescribeConfigs", 1, resources=asked, include_synonyms=False)
            ((entry,),) = (result["configs"] for result in answer["results"])
            return bool(entry["value"] == "earliest")

        eventually(is_known, what="the group's setting")

    def produce(self, *counts: int, partition: int = 0) -> None:
        """Append a batch for each number, of so many records."""
        line = Line(self.bootstrap)
        for count in counts:
            records = batch(*[b"value"] * count)
            fields = produce_fields([(self.topic, [(partition, records)])], 9, 1)
            answer = line.ask("Produce", 9, **fields)
            assert answer["responses"][0]["partition_responses"][0]["error_code"] == 0

    def fetch(self, epoch: int, *question: Any, version: int = 2, **fields: Any) -> Any:
        """Fetch, and note the answer; of records only how many bytes there are."""
        asker = fields.pop("asker", self.asker)
        request = fetch_request(asker, epoch, *question, **fields)
        answer = self.wire.ask_ours(FETCH, version, request, ShareFetchResponse)
        shown = attrs.evolve(
            answer,
            responses=tuple(
                attrs.evolve(
                    topic,
                    partitions=tuple(
                        attrs.evolve(one, records=b"%d" % len(one.records))
                        for one in topic.partitions
                    ),
                )
                for topic in answer.responses
            ),
        )
        said = list(fields.get("said", {}).values())
        self.answers.append((f"fetch {epoch} {said}", self._numbered.plain(shown)))
        return answer

    def say(self, epoch: int, *said: Any, version: int = 2, **fields: Any) -> None:
        """Acknowledge offsets of partition 0, and note the answer."""
        partition = fields.pop("partition", 0)
        topic_id = fields.pop("topic_id", self.topic_id)
        asker = fields.pop("asker", self.asker)
        request = acknowledge_request(asker, epoch, {(topic_id, partition): said}, **fields)
        answer = self.wire.ask_ours(ACKNOWLEDGE, version, request, ShareAcknowledgeResponse)
        self.answers.append((f"say {epoch} {said}", self._numbered.plain(answer)))


def refused(heard: Heard) -> None:
    """
    Who asks wrongly, or for what is not there.

    A fetch of a topic that nobody knows is left out: a real broker stumbles over it (-1).
    """
    for asker in ((None, "m"), ("g", None), ("g", ""), ("g", "m" * 37)):
        heard.fetch(0, heard.wanted, asker=asker)
        heard.say(1, asker=asker)
    heard.fetch(1)
    heard.fetch(-1)
    heard.say(1)
    heard.say(-1)
    heard.fetch(0, heard.wanted, said={(heard.topic_id, 0): [(0, 1, (ACCEPT,))]})
    heard.fetch(0, {heard.topic_id: [7]})
    heard.fetch(0, heard.wanted, asker=("nobody", "m"))
    heard.fetch(1, asker=("nobody", "m"))
    heard.fetch(0, heard.wanted, **(NOTHING | {"min_bytes": 1}))
    heard.fetch(0, heard.wanted, max_records=0)
    heard.say(0)
    heard.say(2)
    heard.fetch(2)


def acknowledged(heard: Heard) -> None:
    """Everything that can be said of records, right and wrong."""
    epochs = itertools.count()
    heard.fetch(next(epochs), heard.wanted)
    heard.produce(4, 4, 4)
    heard.fetch(next(epochs), max_records=6)
    heard.say(next(epochs), (0, 1, (ACCEPT,)), (2, 3, (RELEASE, REJECT)))
    heard.fetch(next(epochs))
    heard.say(next(epochs), (4, 7, (ACCEPT, GAP, RELEASE, ACCEPT)))
    heard.fetch(next(epochs))
    for said in (
        [(3, 2, (ACCEPT,))],
        [(8, 9, (ACCEPT,)), (7, 8, (ACCEPT,))],
        [(8, 9, ())],
        [(8, 9, (ACCEPT, ACCEPT, ACCEPT))],
        [(8, 9, (5,))],
        [(8, 9, (-1,))],
        [(8, 9, (RENEW,))],
        [(0, 1, (ACCEPT,))],
        [(4, 4, (ACCEPT,))],
        [(11, 14, (ACCEPT,))],
        [(100, 101, (ACCEPT,))],
        [],
    ):
        heard.say(next(epochs), *said)
    heard.say(next(epochs), (8, 8, (ACCEPT,)), topic_id=NOT_THERE)
    heard.say(next(epochs), (0, 1, (ACCEPT,)), partition=1)
    heard.say(next(epochs), (8, 8, (ACCEPT,)), partition=9)
    heard.say(next(epochs), (8, 8, (RENEW,)), is_renew_ack=1)
    heard.fetch(next(epochs), said={(heard.topic_id, 0): [(8, 11, (ACCEPT,)), (20, 30, (ACCEPT,))]})
    heard.fetch(next(epochs), said={(heard.topic_id, 0): [(8, 8, (RENEW,))]}, **NOTHING)
    heard.fetch(next(epochs), said={(heard.topic_id, 0): [(8, 11, (ACCEPT,))]})
    heard.fetch(next(epochs), forgotten={heard.topic_id: [1]})
    heard.fetch(next(epochs), {heard.topic_id: [1]})
    heard.fetch(next(epochs))
    heard.fetch(-1, said={(heard.topic_id, 0): [(2, 2, (ACCEPT,))]})
    heard.fetch(next(epochs))


def limited(heard: Heard) -> None:
    """Limits of records and bytes, in both modes and versions."""
    heard.fetch(0, heard.wanted)
    heard.produce(*[3] * 8)
    heard.fetch(1, max_records=4, version=1)
    heard.fetch(2, max_records=4, share_acquire_mode=1)
    heard.fetch(3, max_records=7, batch_size=2)
    heard.fetch(4, max_bytes=1)
    heard.say(5, (0, 5, (RELEASE,)), version=1)
    heard.fetch(6, max_records=5, share_acquire_mode=1)
    heard.fetch(7, max_records=100, batch_size=3)
    heard.say(-1)


def opened(heard: Heard) -> None:
    """A first fetch has what the first state to be read gives; which one that is nobody knows."""
    heard.read_from_the_start()
    for partition in (0, 1):
        heard.produce(3, partition=partition)
    first, second = heard.fetch(0, heard.wanted), heard.fetch(1)
    heard.answers = [
        [len(one.acquired_records) for one in topic.partitions if one.acquired_records]
        for answer in (first, second)
        for topic in answer.responses
    ]


SCENARIOS = (refused, acknowledged, limited, opened)


@pytest.fixture(scope="module")
def bootstraps(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A real broker and ours."""
    directory: Path = tmp_path_factory.mktemp("same-share-fetches")
    real = start_real(directory / "real", settings=SETTINGS)
    try:
        with OurBroker(directory / "ours", SETTINGS) as ours:
            yield real.bootstrap, ours.bootstrap
    finally:
        real.stop()


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_answers_are_the_same(
    bootstraps: tuple[str, str], scenario: Callable[[Heard], None]
) -> None:
    """Codes, messages, acquired records and the sizes of what comes with them."""
    answers: list[list[Any]] = []
    for bootstrap in bootstraps:
        with closing(Heard(bootstrap, scenario.__name__)) as heard:
            scenario(heard)
            answers.append(heard.answers)
    for real, ours in zip(*answers, strict=True):
        assert ours == real

"""The short way of a produce request answers as the long one does, byte for byte."""

from __future__ import annotations

import uuid
from typing import Any

import attrs
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from logstore.compat.kafka.broker import Broker
from logstore.segments.kafka.compression import Codec
from logstore.testing.simulated_host import SimulatedHost
from tests.compat.kafka.batches import NOW_MS, altered, batch, old_message
from tests.compat.kafka.peer import Peer, a_broker, produce_fields

VERSIONS = range(3, 14)
NO_ID = uuid.UUID(int=1)
GOOD = batch(b"a", b"b")
BATCHES: dict[str, bytes | None] = {
    "good": GOOD,
    "large": batch(bytes(20_000)),
    "too large": batch(bytes(40_000)),
    "zstd": batch(codec=Codec.ZSTD),
    "lz4": batch(codec=Codec.LZ4),
    "keyless": batch(key=None),
    "future": batch(timestamp_ms=2 * NOW_MS),
    "cut": GOOD[:-1],
    "corrupt": altered(GOOD, 17, "I", 1, mend_crc=False),
    "two": GOOD + GOOD,
    "trailing": GOOD + b"x",
    "old": old_message(1),
    "null": None,
    "empty": b"",
    **{f"number {n}": batch(producer=(5, 0, n)) for n in range(4)},
    "old epoch": batch(producer=(5, -1, 0)),
    "transactional": batch(producer=(5, 0, 0), is_transactional=True),
}
#: topics by what is special about them
TOPICS = {
    "plain": {"max.message.bytes": "30000"},
    "timed": {"message.timestamp.type": "LogAppendTime"},
    "compact": {"cleanup.policy": "compact"},
    "lz4": {"compression.type": "lz4"},
    "tiny": {"internal.segment.bytes": "300"},
    "flushed": {"flush.messages": "1"},
}


@attrs.frozen
class Step:
    """One thing that happens: a request, or a change of the topic."""

    topic: str
    kind: str
    index: int = 0
    acks: int = 1
    is_deletion: bool = False


def steps_on(topics: list[str]) -> st.SearchStrategy[list[Step]]:
    """Return what happens to these topics; a few of them, so that ways are learned and left."""
    return st.lists(
        st.builds(
            Step,
            topic=st.sampled_from(topics),
            kind=st.sampled_from([*BATCHES, *["good"] * 8]),
            index=st.sampled_from([0, 0, 0, 1, 7, -1]),
            acks=st.sampled_from([1, 1, 1, -1, 0, 3]),
            is_deletion=st.sampled_from([False] * 9 + [True]),
        ),
        max_size=12,
    )


steps = st.lists(
    st.sampled_from([*TOPICS, "unknown"]), min_size=1, max_size=2, unique=True
).flatmap(steps_on)


class Twin:
    """One of two brokers that live through the same; this one may be denied the short way."""

    def __init__(self, *, has_routes: bool) -> None:
        self.host = SimulatedHost()
        self.broker = a_broker(self.host)
        for name, settings in TOPICS.items():
            self.broker.create_topic(name, 2, settings)
        self.peer = Peer(self.broker)
        self._has_routes = has_routes

    def ask(self, frame: bytes) -> tuple[bytes, bool]:
        """Return what comes of the bytes, and whether the connection is to be closed."""
        if not self._has_routes:
            self.peer.connection.client.produce_route = None
        answer = b"".join(bytes(chunk) for chunk in self.peer.connection.feed(frame))  # type: ignore[arg-type]
        is_closing = self.peer.connection.is_closing
        if is_closing:
            self.peer = Peer(self.broker)
        return answer, is_closing

    def delete(self, topic: str) -> None:
        """Delete a topic and create it again."""
        self.broker.delete_topic(self.broker.topics[topic])
        self.broker.create_topic(topic, 2, TOPICS[topic])

    def logs(self) -> dict[tuple[str, int], list[bytes]]:
        """Return all that stands in the logs."""
        return {
            (partition.topic, partition.index): [bytes(b.data) for b in partition.batches()]
            for partition in self.broker.store.partitions()
        }


def named(broker: Broker, topic: str, version: int) -> Any:
    """Return what a request of this version calls the topic."""
    if version < 13:
        return topic
    found = broker.topics.get(topic)
    return NO_ID if found is None else uuid.UUID(bytes=found.topic_id)


def frame_of(twin: Twin, step: Step, version: int) -> bytes:
    """Return the request of a step."""
    topics = [(named(twin.broker, step.topic, version), [(step.index, BATCHES[step.kind])])]
    return twin.peer.encoded("Produce", version, produce_fields(topics, version, step.acks))


@pytest.mark.parametrize("version", [4, 5, 8, 10, 13])
@given(steps=steps)
def test_both_ways_give_the_same_bytes(version: int, steps: list[Step]) -> None:
    """Whatever is sent in whatever order, answers and logs are those of a broker with no routes."""
    short, long = Twin(has_routes=True), Twin(has_routes=False)
    for step in steps:
        if step.is_deletion and step.topic in TOPICS:
            short.delete(step.topic)
            long.delete(step.topic)
        frame = frame_of(short, step, version)
        assert frame == frame_of(long, step, version)
        assert short.ask(frame) == long.ask(frame)
    assert short.logs() == long.logs()


@given(
    version=st.sampled_from(VERSIONS),
    topic=st.sampled_from([*TOPICS]),
    changes=st.lists(st.tuples(st.integers(14, 400), st.integers(0, 255)), max_size=3),
    cut_bytes=st.sampled_from([0, 0, 0, 1, 2, 3, 30]),
    tail=st.sampled_from([b"", b"", b"", b"\0", b"\1\2\3"]),
)
@example(version=9, topic="plain", changes=[(299, 16)], cut_bytes=0, tail=b"")
def test_both_ways_see_the_same_damage(
    version: int, topic: str, changes: list[tuple[int, int]], cut_bytes: int, tail: bytes
) -> None:
    """A request that is damaged anywhere is answered alike after a good one, or closes alike."""
    short, long = Twin(has_routes=True), Twin(has_routes=False)
    step = Step(topic, "good")
    for twin in (short, long):
        twin.ask(frame_of(twin, step, version))
    damaged = bytearray(frame_of(short, step, version))[4:]
    frame_of(long, step, version)  # counts its correlation id
    for position, value in changes:
        damaged[position % len(damaged) if position % len(damaged) >= 8 else 8] = value
    del damaged[len(damaged) - cut_bytes :]
    damaged += tail
    frame = len(damaged).to_bytes(4, "big") + damaged

    assert short.ask(bytes(frame)) == long.ask(bytes(frame))
    assert short.logs() == long.logs()


@pytest.mark.parametrize("version", VERSIONS)
def test_the_way_is_learned_from_the_first_good_request(version: int) -> None:
    """From version 5 on; it stays known, and another partition of the topic goes it too."""
    twin = Twin(has_routes=True)
    twin.ask(frame_of(twin, Step("plain", "cut"), version))
    assert twin.peer.connection.client.produce_route is None
    twin.ask(frame_of(twin, Step("plain", "good"), version))
    route = twin.peer.connection.client.produce_route
    assert (route is not None) == (version >= 5)
    twin.ask(frame_of(twin, Step("plain", "good", index=1), version))
    assert twin.peer.connection.client.produce_route is route


@pytest.mark.parametrize("version", range(5, 14))
def test_a_deleted_topic_ends_the_way(version: int) -> None:
    """No batch enters the log of a topic that is gone; the one created anew gets them."""
    twin = Twin(has_routes=True)
    request = frame_of(twin, Step("plain", "good"), version)
    twin.ask(request)
    old = twin.broker.topics["plain"]
    log = old.partitions[0]
    twin.broker.delete_topic(old)
    topic: Any = uuid.UUID(bytes=old.topic_id) if version >= 13 else "plain"
    answer = twin.peer.produce([(topic, [(0, GOOD)])], version=version)
    assert answer.partition["error_code"] == (100 if version >= 13 else 3)
    assert log.end_offset == 2

    twin.broker.create_topic("plain", 1)
    answer = twin.peer.produce(
        [(named(twin.broker, "plain", version), [(0, GOOD)])], version=version
    )
    assert (answer.partition["error_code"], answer.partition["base_offset"]) == (0, 0)


def test_a_topic_that_is_to_be_flushed_leaves_the_way() -> None:
    """Settings count from the request after their change on: the answer waits for a flush."""
    twin = Twin(has_routes=True)
    assert twin.peer.produce([("plain", [(0, GOOD)])]).partition["error_code"] == 0
    partition = twin.broker.topics["plain"].partitions[0]
    assert partition.log.recovery_point == 0
    twin.broker.store.change_settings(twin.broker.topics["plain"], {"flush.messages": "1"})
    assert twin.peer.produce([("plain", [(0, GOOD)])]).partition["error_code"] == 0
    assert partition.log.recovery_point == 4


def test_connections_share_what_they_have_learned() -> None:
    """Hundreds of clients of one topic have one route, also after the topic was made anew."""
    broker = a_broker()
    broker.create_topic("plain", 1)
    peers = [Peer(broker), Peer(broker)]
    for _ in range(2):
        for peer in peers:
            assert peer.produce([("plain", [(0, GOOD)])]).partition["error_code"] == 0
        first, second = (peer.connection.client.produce_route for peer in peers)
        assert first is not None
        assert first is second
        assert first.partitions is broker.topics["plain"].partitions
        broker.delete_topic(broker.topics["plain"])
        broker.create_topic("plain", 1)


def test_routes_to_share_are_not_kept_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients that name topic after topic leave no more than so many behind."""
    monkeypatch.setattr("logstore.compat.kafka.produce.route._ROUTES_MAX", 3)
    broker = a_broker()
    peer = Peer(broker)
    for number in range(10):
        broker.create_topic(f"t{number}", 1)
        assert peer.produce([(f"t{number}", [(0, GOOD)])]).partition["error_code"] == 0
        assert 1 <= len(broker.produce_routes) <= 3
